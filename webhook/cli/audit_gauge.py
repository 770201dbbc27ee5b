"""The findings of an audit as gauges in a file, for the textfile collector of node_exporter."""

from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile


def write_gauge(path: Path, counts: Mapping[tuple[str, str], int], examined: int, now: int) -> None:
    """Write how many findings there are of each check, how many objects were examined, and when.

    Args:
        path: the file; it is replaced as a whole.
        counts: by check and severity.
        examined: objects.
        now: microseconds since 1970.

    """
    registry = CollectorRegistry()
    findings = Gauge(
        "lease_audit_findings", "Findings of the last audit of leases.", ("check", "severity"), registry=registry
    )
    for (check, severity), number in counts.items():
        findings.labels(check, severity).set(number)
    Gauge("lease_audit_examined", "Objects that the last audit examined.", registry=registry).set(examined)
    Gauge("lease_audit_timestamp_seconds", "As of when the last audit looked at the leases.", registry=registry).set(
        now / 1_000_000
    )
    write_to_textfile(str(path), registry)
