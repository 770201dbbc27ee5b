"""Draws what the queries of the dashboard gave, panel by panel: `python picture.py DATA.json TARGET.svg`.

This is no picture of Grafana. It runs in the environment of tests/bench/requirements.txt and imports nothing of the
project.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found]  # lives in the environment of tests/bench

mpl.use("svg")
from matplotlib import pyplot as plt  # after the choice of the backend

UNITS = {"s": "seconds", "reqps": "reviews/s", "ops": "1/s", "short": ""}
MOST_LINES = 8
"""In a legend; the others are drawn too."""
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
    for index, line in enumerate(sorted(shown["lines"], key=_highest, reverse=True)):
        minutes = [(float(moment) - begin) / 60 for moment, _ in line["values"]]
        label = line["name"] if index < MOST_LINES else None
        axes.plot(minutes, [float(value) for _, value in line["values"]], linewidth=1, label=label)
    axes.set_title(shown["title"], loc="left", fontweight="bold")
    axes.set_xlim(0, (end - begin) / 60)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(UNITS[shown["unit"]])
    axes.legend(frameon=False, fontsize=6, loc="upper right")


def _highest(line: dict[str, Any]) -> float:
    # A quantile of nothing is not a number; it leaves a gap in the line.
    return max((value for _, text in line["values"] if math.isfinite(value := float(text))), default=0.0)


def main(source: Path, target: Path) -> None:
    """All panels, two in a row as on the dashboard."""
    data = json.loads(source.read_text())
    panels = data["panels"]
    figure, grid = plt.subplots(math.ceil(len(panels) / 2), 2, figsize=(12, 2.3 * math.ceil(len(panels) / 2)))
    for axes, shown in zip(grid.flat, panels, strict=True):
        panel(axes, shown, data["begin"], data["end"])
    for axes in grid[-1]:
        axes.set_xlabel("minutes")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
