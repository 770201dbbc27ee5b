"""Time series for Prometheus' own rule tester, and what the webhook really exposes before and after an event."""

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.e2e.toolchain import build_promtool
from webhook.server.metrics import Metrics

EVENT = 60
"""The minute in which something happens."""
MINUTES = 90

Series = dict[str, str]
"""What promtool calls input_series: name with labels, and values at each minute."""


def constant(value: float, minutes: int = MINUTES) -> str:
    return f"{value:g}x{minutes}"


def born(value: float, *later: float) -> str:
    """A series that does not exist before the event, then takes these values, a minute each."""
    values = [value, *later]
    return " ".join([f"_x{EVENT}", *(f"{one:g}" for one in values[:-1]), constant(values[-1], MINUTES)])


def exposed(metrics: Metrics) -> dict[str, float]:
    """The samples of a scrape now; `exposition` would show those of up to a second ago."""
    lines = metrics._exposition().decode().splitlines()
    samples = [re.fullmatch(r"(\w+(?:\{.*\})?) (\S+)", line) for line in lines if not line.startswith("#")]
    return {one[1]: float(one[2]) for one in samples if one and "_created" not in one[1]}


def scrape_around(event: Callable[[Metrics], object]) -> Series:
    """Return what a Prometheus stores of a webhook that starts, waits an hour, and meets an event."""
    metrics = Metrics()
    before = exposed(metrics)
    event(metrics)
    after = exposed(metrics)
    return {
        name: born(after[name]) if name not in before else f"{before[name]:g}x{EVENT - 1} {constant(after[name])}"
        for name in after
    }


def firing(rules: Mapping[str, Any], series: Series, moments: Mapping[int, Iterable[str]], directory: Path) -> str:
    """Return what promtool reports if exactly these alerts should fire at these minutes; "" if they do."""
    expected = [
        {
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)],
        }
        for minute, alerts in moments.items()
    ]
    return evaluated(rules, series, expected, directory)


def evaluated(rules: Mapping[str, Any], series: Series, expected: Sequence[Mapping[str, Any]], directory: Path) -> str:
    """Return what promtool complains about where expressions do not have the expected samples; "" where they do."""
    (directory / "rules.yaml").write_text(yaml.safe_dump(dict(rules)))
    test = {
        "rule_files": ["rules.yaml"] if rules else [],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [*expected],
            }
        ],
    }
    (directory / "test.yaml").write_text(yaml.safe_dump(test))
    done = subprocess.run(
        [build_promtool(), "test", "rules", "test.yaml"], cwd=directory, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
