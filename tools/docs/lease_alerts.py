"""The alerts on leases without limits of their own, as deploy/ ships them."""

from typing import Final

from tools.docs.pages import ROOT
from webhook.analysis.alerts import make_prometheus_rules, make_recorder_rule
from webhook.text.yaml_writer import write_stream

FILE: Final = ROOT / "deploy" / "lease-alerts" / "prometheus-rule.yaml"
RECORDER: Final = ROOT / "deploy" / "components" / "recorder-metrics" / "prometheus-rule.yaml"
_HEADER: Final = """\
# Written by make docs from webhook/analysis/alerts.py. With a limit for each lease: lease-webhook export alerts
"""


def make_text() -> str:
    """Return the text of the file."""
    return _HEADER + write_stream(make_prometheus_rules(()))


def make_recorder_text() -> str:
    """Return the text of the file of the component recorder-metrics."""
    rule = make_recorder_rule()
    rule["metadata"] = {"name": rule["metadata"]["name"], "namespace": "lease-webhook", **rule["metadata"]}
    return "# Written by make docs from webhook/analysis/alerts.py.\n" + write_stream([rule])
