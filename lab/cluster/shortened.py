"""Our monitoring in less time: spans of time in rules and monitors are divided by one factor, thresholds are not."""

import re
from typing import Any

import yaml

FACTOR = 20
"""Ten minutes become 30 s, an hour three minutes, a scrape every 30 s one every 1.5 s."""
UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000}
SPAN = re.compile(r"(?P<before>\[|offset )(?P<span>\d+[smh])(?=\]|\b)")


def shorten(text: str) -> str:
    """Return the manifests with the time spans of PrometheusRules and ServiceMonitors divided."""
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        if document["kind"] == "PrometheusRule":
            for rule in (rule for group in document["spec"]["groups"] for rule in group["rules"]):
                _shorten_rule(rule)
        if document["kind"] == "ServiceMonitor":
            for endpoint in document["spec"]["endpoints"]:
                endpoint["interval"] = divide_span(endpoint["interval"])
    return yaml.safe_dump_all(documents)


def divide_span(span: str) -> str:
    """Return `30000ms` for `10m`.

    Raises ValueError for a span that FACTOR does not divide into milliseconds.
    """
    whole, rest = divmod(int(span[:-1]) * UNITS[span[-1]], FACTOR)
    if rest:
        raise ValueError(f"{span} is not a multiple of {FACTOR} ms")
    return f"{whole}ms"


def _shorten_rule(rule: dict[str, Any]) -> None:
    rule["expr"] = SPAN.sub(lambda match: match["before"] + divide_span(match["span"]), rule["expr"])
    if "for" in rule:
        rule["for"] = divide_span(rule["for"])
