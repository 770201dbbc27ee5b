"""The queries of the dashboard, run by Prometheus on what it has scraped, and kept for the picture in docs/.

`python -m lab.cluster.dashboard` draws the picture again from what is kept.
"""

import gzip
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.bench.results import create_drawing_environment
from lab.cluster.monitoring import Monitoring
from lab.e2e.world import Row

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "components" / "monitoring" / "dashboard.json"
PICTURE = ROOT / "docs" / "images" / "dashboard.svg"
KEPT = ROOT / "build" / "dashboard-data.json.gz"
"""The data of a run, until it has ended."""
DATA = Path(__file__).with_name("dashboard-data.json.gz")
"""What is drawn."""
RATE_INTERVAL = "12s"
"""What Grafana would put in place of $__rate_interval: four times the interval of the slowest scrape."""
STEP = 2.0


def run_queries(prometheus: Monitoring, begin: float, end: float) -> Iterator[Row]:
    """Run every query of every panel between two moments, in Unix time. A row says which gave nothing."""
    panels: list[dict[str, Any]] = []
    empty, queries = [], 0
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        lines = []
        # The recorder does not run there with its metrics: lab/rendered/test_lease_alerts.py plays them.
        for target in (one for one in panel["targets"] if "lease_webhook_leader_" not in one["expr"]):
            expression = target["expr"].replace("$__rate_interval", RATE_INTERVAL)
            # A query that Prometheus cannot read raises.
            series = prometheus.query_range(expression, begin, end, STEP)
            queries += 1
            if not series:
                empty.append(f"{panel['title']} {target['refId']}")
            lines += [
                {"name": _format_legend(target["legendFormat"], one["metric"]), "values": one["values"]}
                for one in series
            ]
        if lines:
            unit = panel["fieldConfig"]["defaults"]["unit"]
            panels.append({"title": panel["title"], "unit": unit, "lines": lines})
    KEPT.parent.mkdir(exist_ok=True)
    data = json.dumps({"begin": begin, "end": end, "panels": panels}, separators=(",", ":"))
    KEPT.write_bytes(gzip.compress(data.encode(), mtime=0))
    lines_seen = sum(len(panel["lines"]) for panel in panels)
    observation = (
        f"no data: {', '.join(empty)}" if empty else f"{queries} queries of {len(panels)} panels: {lines_seen} lines"
    )
    yield Row("the queries of the dashboard", observation, passed=queries > 0 and not empty)


def draw() -> None:
    """Draw the results of the latest run into docs/images. Needs a network the first time."""
    if KEPT.exists():
        KEPT.replace(DATA)
    subprocess.run([create_drawing_environment(), Path(__file__).parent / "picture.py", DATA, PICTURE], check=True)


def _format_legend(text: str, labels: dict[str, str]) -> str:
    """Return the legend as Grafana writes it: a label that a line does not have is empty."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), text).strip()


if __name__ == "__main__":
    draw()
