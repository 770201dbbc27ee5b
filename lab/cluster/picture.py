"""Drawing of the results of the dashboard's queries, panel by panel: `python picture.py DATA.json.gz TARGET.svg`.

It is drawn without Grafana, in the colors of the color scheme in which it is looked at. It runs in the environment of
lab/bench/requirements.txt and imports nothing of the project.
"""

import gzip
import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]  # lives in the environment of lab/bench

mpl.use("svg")
from matplotlib import pyplot as plt  # after the choice of the backend

UNITS = {"s": "seconds", "reqps": "reviews per second", "ops": "per second", "short": "number"}
DAY = 86400
CAPTION = "Answers of Prometheus to the queries of the dashboard, drawn by matplotlib: not Grafana's own rendering"
THEME = """<style>
svg { --ink: #1f2328; --paper: #ffffff; --rule: #d0d7de; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --paper: #0d1117; --rule: #30363d; } }
text { fill: var(--ink); }
</style>
"""
INK, PAPER, RULE = "#010203", "#040506", "#070809"
"""Colors that nothing else has: in the file they are those of the theme."""
LINES = ["#2f81d7", "#d1700c", "#2da44e", "#cf4a52", "#8a63d2", "#9a6b4f", "#d254a4", "#6e7781"]
"""They can be told apart on either ground."""
MAX_LINES = 8
"""In a legend; the others are drawn too."""
MUCH_MORE = 30
"""Lines that are so far apart are drawn on a logarithmic scale."""
mpl.rcParams.update(
    {
        "svg.hashsalt": "lease-webhook",  # the same numbers draw the same bytes
        "svg.fonttype": "none",
        "font.size": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": PAPER,
        "axes.facecolor": PAPER,
        "axes.edgecolor": INK,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": RULE,
        "grid.linewidth": 0.6,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.prop_cycle": mpl.cycler(color=LINES),
    }
)


def draw_panel(axes: Any, panel: dict[str, Any], begin: float, end: float) -> None:
    """Draw one panel: each line over the minutes since the beginning."""
    # Those that are zero all the time would lie upon each other.
    lines = sorted(filter(_find_highest, panel["lines"]), key=_find_highest, reverse=True) or panel["lines"][:1]
    unit, scale = UNITS[panel["unit"]], 1.0
    if panel["unit"] == "s" and min(map(_find_highest, lines)) > DAY:
        unit, scale = "days", float(DAY)
    for index, line in enumerate(lines):
        minutes, values = _insert_gaps(line["values"], begin)
        label = line["name"] if index < MAX_LINES and _find_highest(line) else None
        axes.plot(minutes, [value / scale for value in values], linewidth=1.2, label=label, zorder=3 - index / 1000)
    highest = [_find_highest(line) for line in lines]
    if all(map(_find_lowest, lines)) and max(highest) > MUCH_MORE * min(highest):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_title(panel["title"], loc="left", fontweight="bold", fontsize=10, pad=20)
    axes.set_xlim(0, (end - begin) / 60)
    axes.set_xlabel("minutes since the beginning of the run")
    axes.set_ylabel(unit)
    if any(map(_find_highest, lines)):
        # Above the lines, which none of it hides.
        place = {"loc": "lower left", "bbox_to_anchor": (-0.01, 0.98), "borderaxespad": 0.2}
        legend = axes.legend(frameon=False, fontsize=6.5, ncols=4, columnspacing=0.9, handlelength=1.2, **place)
        legend.set_in_layout(False)


def _insert_gaps(samples: list[list[Any]], begin: float) -> tuple[list[float], list[float]]:
    """Return minutes and values, with a hole where there was no sample for longer than usual."""
    moments = [float(moment) for moment, _ in samples]
    step = min((later - one for one, later in itertools.pairwise(moments)), default=0.0)
    minutes: list[float] = []
    values: list[float] = []
    for index, (moment, text) in enumerate(samples):
        if index and float(moment) - moments[index - 1] > 1.5 * step:
            minutes.append((moments[index - 1] - begin) / 60)
            values.append(math.nan)
        minutes.append((float(moment) - begin) / 60)
        values.append(float(text))
    return minutes, values


def _find_highest(line: dict[str, Any]) -> float:
    # A quantile of nothing is not a number; it leaves a gap in the line.
    return max((value for _, text in line["values"] if math.isfinite(value := float(text))), default=0.0)


def _find_lowest(line: dict[str, Any]) -> float:
    return min((value for _, text in line["values"] if math.isfinite(value := float(text))), default=0.0)


def main(source: Path, target: Path) -> None:
    """Draw all panels, two in a row as on the dashboard."""
    data = json.loads(gzip.decompress(source.read_bytes()))
    panels = data["panels"]
    rows = math.ceil(len(panels) / 2)
    figure, grid = plt.subplots(rows, 2, figsize=(12, 2.7 * rows + 0.4))
    for axes, panel in zip(grid.flat, panels, strict=False):
        draw_panel(axes, panel, data["begin"], data["end"])
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    figure.text(0.012, 0.995, CAPTION, va="top", fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.985), h_pad=1.6)
    figure.savefig(target, metadata={"Date": None})
    target.write_text(apply_theme(target.read_text()))


def apply_theme(text: str) -> str:
    """Return an SVG whose ground and texts follow the color scheme."""
    for color, name in ((INK, "ink"), (PAPER, "paper"), (RULE, "rule")):
        text = text.replace(color, f"var(--{name})")
    head, defs, rest = text.partition(" <defs>\n")
    return f"{head}{THEME}{defs}{rest}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
