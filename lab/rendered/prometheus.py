"""Time series for Prometheus' own rule tester, and the metrics of the webhook before and after an event."""

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


def make_constant(value: float, minutes: int = MINUTES) -> str:
    return f"{value:g}x{minutes}"


def make_new_series(value: float, *later: float) -> str:
    """Return a series that does not exist before the event, then takes these values, a minute each."""
    values = [value, *later]
    return " ".join([f"_x{EVENT}", *(f"{one:g}" for one in values[:-1]), make_constant(values[-1], MINUTES)])


def read_samples(metrics: Metrics) -> dict[str, float]:
    """Return the samples of a scrape now; `render` would show those of up to a second ago."""
    lines = metrics._render().decode().splitlines()
    samples = [re.fullmatch(r"(\w+(?:\{.*\})?) (\S+)", line) for line in lines if not line.startswith("#")]
    return {one[1]: float(one[2]) for one in samples if one and "_created" not in one[1]}


def scrape_around(event: Callable[[Metrics], object]) -> Series:
    """Return the series that Prometheus stores of a webhook that starts, waits an hour, and meets an event."""
    metrics = Metrics()
    before = read_samples(metrics)
    event(metrics)
    after = read_samples(metrics)
    return {
        name: make_new_series(after[name])
        if name not in before
        else f"{before[name]:g}x{EVENT - 1} {make_constant(after[name])}"
        for name in after
    }


def check_firing(
    rules: Mapping[str, Any], series: Series, moments: Mapping[int, Iterable[str]], directory: Path
) -> str:
    """Return the report of promtool if exactly these alerts should fire at these minutes; "" if they do."""
    expected = [
        {
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)],
        }
        for minute, alerts in moments.items()
    ]
    return check_samples(rules, series, expected, directory)


def check_samples(
    rules: Mapping[str, Any], series: Series, expected: Sequence[Mapping[str, Any]], directory: Path
) -> str:
    """Return the complaint of promtool where expressions do not have the expected samples; "" where they do."""
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
    result = subprocess.run(
        [build_promtool(), "test", "rules", "test.yaml"], cwd=directory, capture_output=True, text=True, check=False
    )
    return "" if result.returncode == 0 else result.stdout + result.stderr
