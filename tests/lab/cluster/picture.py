"""Draws what the queries of the dashboard gave, panel by panel: `python picture.py DATA.json TARGET.svg`.

It is drawn without Grafana. It runs in the environment of tests/lab/bench/requirements.txt and imports nothing of the
project.
"""

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]  # lives in the environment of tests/lab/bench

mpl.use("svg")
from matplotlib import pyplot as plt  # after the choice of the backend

UNITS = {"s": "seconds", "reqps": "reviews/s", "ops": "1/s", "short": ""}
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
        "figure.facecolor": "white",
    }
)


def panel(axes: Any, shown: dict[str, Any], begin: float, end: float) -> None:
    """One panel: each line over the minutes since the beginning."""
    lines = sorted(shown["lines"], key=_highest, reverse=True)
    for index, line in enumerate(lines):
        minutes, values = _with_gaps(line["values"], begin)
        label = line["name"] if index < MAX_LINES and _highest(line) else None
        axes.plot(minutes, values, linewidth=1, label=label)
    highest = [_highest(line) for line in lines]
    if min(highest) > 0 and max(highest) > MUCH_MORE * min(highest):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_title(shown["title"], loc="left", fontweight="bold")
    axes.set_xlim(0, (end - begin) / 60)
    axes.set_ylabel(UNITS[shown["unit"]])
    if any(map(_highest, lines)):
        axes.legend(frameon=False, fontsize=6, loc="upper right")


def _with_gaps(samples: list[list[Any]], begin: float) -> tuple[list[float], list[float]]:
    """Minutes and values, with a hole where there was no sample for longer than usual."""
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


def _highest(line: dict[str, Any]) -> float:
    # A quantile of nothing is not a number; it leaves a gap in the line.
    return max((value for _, text in line["values"] if math.isfinite(value := float(text))), default=0.0)


def main(source: Path, target: Path) -> None:
    """All panels, two in a row as on the dashboard."""
    data = json.loads(source.read_text())
    panels = data["panels"]
    figure, grid = plt.subplots(math.ceil(len(panels) / 2), 2, figsize=(12, 2.3 * math.ceil(len(panels) / 2)))
    for axes, shown in zip(grid.flat, panels, strict=False):
        panel(axes, shown, data["begin"], data["end"])
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
