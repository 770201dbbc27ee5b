"""The plots of RESULTS.md and docs/figures.md, drawn from results.json: `python plots.py DIRECTORY`.

It runs in an environment of its own (requirements.txt beside it), so it imports nothing of the project.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]  # lives in the environment of requirements.txt

mpl.use("svg")
from matplotlib import pyplot as plt  # after the choice of the backend

OURS = "#1f6fb4"
OTHERS = "#9aa5b1"
PALETTE = (OURS, "#d9822b", "#3a9d5d")
mpl.rcParams.update(
    {
        "svg.hashsalt": "lease-webhook",  # the same numbers draw the same bytes
        "svg.fonttype": "none",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "white",
    }
)


def draw_servers(tables: dict[str, Any], target: Path) -> None:
    """Draw CPU per review by server, and latency under bursts."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=(1.2, 1))
    series = {name: points for name, points in tables["cpu"]["series"].items() if not name.isdecimal()}
    names = list(series)[::-1]
    for offset, which, shade in ((0.2, 0, 1.0), (-0.2, 1, 0.55)):
        values = [series[name][which][1] for name in names]
        bars = left.barh(
            [row + offset for row in range(len(names))],
            values,
            height=0.38,
            color=[OURS if name == "lease-webhook" else OTHERS for name in names],
            alpha=shade,
        )
        left.bar_label(bars, fmt="%.0f", padding=3)
    left.set_yticks(range(len(names)), names)
    left.set_xlabel("CPU, microseconds per review (dark: 2.4 KB, light: 4.5 KB)")
    left.set_title("CPU per review, one core")
    colors = iter(PALETTE)
    for name, points in tables["open-loop"]["series"].items():
        load, _, server = name.partition(": ")
        if load.startswith("bursts"):
            right.plot(
                [str(q) for q, _ in points], [ms for _, ms in points], marker="o", label=server, color=next(colors)
            )
    right.set_ylim(bottom=0)
    right.set_xlabel("percentile")
    right.set_ylabel("milliseconds")
    right.set_title("Latency under bursts of 30 at 500/s")
    right.legend(frameon=False)
    _save(figure, target)


def draw_growth(tables: dict[str, Any], target: Path) -> None:
    """Draw CPU per review against review size, policy length and workers."""
    figure, (size, policy, workers) = plt.subplots(1, 3, figsize=(12, 3.6), width_ratios=(1.3, 1.3, 0.7))
    for color, (name, points) in zip(PALETTE, tables["growth-review"]["series"].items(), strict=False):
        size.loglog([x for x, _ in points], [y for _, y in points], marker="o", label=name, color=color)
    first = tables["growth-review"]["series"]["many managedFields entries"]
    start, end = first[3], first[-1]
    size.loglog([start[0], end[0]], [start[1], start[1] * end[0] / start[0]], "--", color=OTHERS, label="linear")
    size.set_xlabel("bytes of the review")
    size.set_ylabel("CPU, microseconds")
    size.set_title("against the review")
    for color, (name, points) in zip(PALETTE, tables["growth-policy"]["series"].items(), strict=False):
        policy.plot([x for x, _ in points], [y for _, y in points], marker="o", label=name, color=color)
    policy.set_xscale("symlog", linthresh=10)
    policy.set_ylim(0, 1.3 * policy.get_ylim()[1])
    policy.set_xlabel("entries of the policy")
    policy.set_title("against the policy (pure function)")
    points = tables["growth-workers"]["series"]["workers"]
    bars = workers.bar([str(int(x)) for x, _ in points], [y for _, y in points], color=OURS, width=0.5)
    workers.bar_label(bars, fmt="%.0f")
    workers.set_xlabel("workers")
    workers.set_title("against the workers")
    for axes in (size, policy):
        axes.legend(frameon=False, fontsize=9)
    _save(figure, target)


def _save(figure: Any, target: Path) -> None:
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


PLOTS = {
    "servers": (draw_servers, {"cpu", "open-loop"}),
    "growth": (draw_growth, {"growth-review", "growth-policy", "growth-workers"}),
}

if __name__ == "__main__":
    directory = Path(sys.argv[1])
    measured = json.loads((directory / "results.json").read_text())
    for name, (draw, needed) in PLOTS.items():
        if needed <= measured.keys():
            draw(measured, directory / "plots" / f"{name}.svg")
