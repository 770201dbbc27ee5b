"""Findings as Report objects of openreports.io, which dashboards of policies show.

Source: openreports/reports-api `apis/openreports.io/v1alpha1/report_types.go`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from webhook.api.text import cut, escape
from webhook.audit.finding import Finding
from webhook.reports.model import Severity

NAME: Final = "lease-webhook-audit"
_RESULTS: Final = {Severity.ERROR: "fail", Severity.WARNING: "warn", Severity.INFO: "pass"}
_SEVERITIES: Final = {Severity.ERROR: "high", Severity.WARNING: "medium", Severity.INFO: "info"}


def reports_of(findings: Sequence[Finding], now: int) -> Iterator[dict[str, Any]]:
    """One Report for each namespace, to be applied with kubectl; `now` in microseconds since 1970."""
    by_namespace: dict[str, list[Finding]] = {}
    for one in findings:
        by_namespace.setdefault(one.namespace, []).append(one)
    for namespace in sorted(by_namespace):
        found = by_namespace[namespace]
        counts = Counter(_RESULTS[one.severity] for one in found)
        yield {
            "apiVersion": "openreports.io/v1alpha1",
            "kind": "Report",
            "metadata": {
                "name": NAME,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "lease-webhook"},
            },
            "source": "lease-webhook",
            "summary": {result: counts[result] for result in ("pass", "fail", "warn", "error", "skip")},
            "results": [_result(one, now) for one in found],
        }


def _result(one: Finding, now: int) -> dict[str, Any]:
    version = "coordination.k8s.io/v1" if one.kind == "Lease" else "coordination.k8s.io/v1beta1"
    return {
        "policy": "leases",
        "rule": one.check,
        "category": "Leader election",
        "severity": _SEVERITIES[one.severity],
        "result": _RESULTS[one.severity],
        "scored": True,
        "timestamp": {"seconds": now // 1_000_000, "nanos": 0},
        "message": escape(cut(one.message, 1000)),
        "properties": {"repair": escape(cut(one.repair, 1000))},
        "resources": [{"apiVersion": version, "kind": one.kind, "namespace": one.namespace, "name": one.name}],
    }
