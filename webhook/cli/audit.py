"""`lease-webhook audit`: what is wrong with the leases that are stored, and how to fix it."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict

from webhook import __version__
from webhook.api.text import escape, truncate
from webhook.audit.inventory import Inventory, subject_of
from webhook.audit.leases import homes_of
from webhook.audit.subject import NOT_APPLICABLE
from webhook.cli.options import Command, cluster_options, evaluation_time, everywhere, files, format_option
from webhook.cli.reading import InputProgress, observe_all
from webhook.cli.terminal import Failure, Paint, indent, json_line, needing_the_server, paint_for, print_message
from webhook.explanation.account import interval_of
from webhook.explanation.findings import incidents
from webhook.history.follow import Follower
from webhook.inputs import cluster as clusters
from webhook.inputs.cluster import Cluster
from webhook.inputs.items import Fenced, Foreign, InputKind, Item, LogEnd, Observation, Unreadable
from webhook.reports.junit import junit
from webhook.reports.model import Check, Examination, Finding, Location, ObjectName, Report, Severity
from webhook.reports.sarif import sarif
from webhook.rules.registry import RULES

_DESCRIPTION = """\
Examines Leases and LeaseCandidates as they are stored: values that an API server refuses or that freeze a lease,
forged or missing times of the API server, leaders that are gone, leases without an owner, leases that several programs
share, names that a generator proposed, candidates that cannot agree, timings that a short outage breaks.

PATH is any input of `why`; without one, kubectl is run. Pods and Nodes in the same input show which holders are gone.
A watch or an audit log shows more: lost leaders, steals, late renewals, shared identities.
"""

_EPILOG = """\
Exit codes:
  0  nothing found, or nothing as severe as --fail-on
  1  something that severe was found
  2  something could not be read, or wrong usage

Examples:
  kubectl get leases,leasecandidates -A -o json --show-managed-fields | lease-webhook audit -
  kubectl lease audit -A
  lease-webhook audit --format json dump.json > known.jsonl
  lease-webhook audit --baseline known.jsonl dump.json      # fails for new findings only
"""

_MAX_NAME: Final = 400
"""More than a kind, a namespace and a name that an API server stored."""

_NOT_APPLICABLE: Final = (
    f"not applicable to what is stored: {len(NOT_APPLICABLE)} rules about a change or its writer, which "
    f"lease-webhook replay applies to recorded reviews: {', '.join(NOT_APPLICABLE)}"
)
_FAIL_ON: Final = "exit with 1 for findings of this severity or above; text only counts those below"
_BASELINE: Final = "JSON of an earlier audit: findings in it are skipped"
_METRICS: Final = "write a gauge of the findings for Prometheus, replacing the file at once"


@click.command("audit", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="[PATH]...", nargs=-1, shell_complete=files)
@click.option("--now", metavar="RFC3339", help="evaluate the leases as of this time")
@click.option("--fail-on", type=click.Choice([*map(str, Severity)]), default=Severity.WARNING.value, help=_FAIL_ON)
@click.option("--baseline", metavar="FILE", help=_BASELINE, shell_complete=files)
@click.option("--with-pods", is_flag=True, help="let kubectl list pods and nodes too, to find holders that are gone")
@click.option("--in-cluster", is_flag=True, help="list leases with the service account of this pod, without kubectl")
@click.option("--metrics", metavar="FILE", help=_METRICS)
@cluster_options
@format_option("json prints one line per finding", ("text", "json", "sarif", "junit", "openreports"))
def command(
    *,
    paths: tuple[str, ...],
    now: str | None,
    fail_on: str,
    baseline: str | None,
    with_pods: bool,
    in_cluster: bool,
    metrics: str | None,
    cluster: Cluster,
    output: str,
) -> int:
    """Examine everything and print what was found."""
    known = _known_findings(baseline) if baseline else frozenset()
    audit = _Audit(Inventory(evaluation_time(now, paths, None).at), Severity(fail_on), known, now, paths)
    notes: list[str] = []
    if paths and in_cluster:
        raise Failure("give either PATH or --in-cluster")
    items: Iterable[Item] = observe_all(paths)
    if in_cluster:
        items = clusters.listed_inside(notes, namespace=cluster.namespace, with_pods=with_pods)
    elif not paths:
        items = clusters.listed(everywhere(cluster), notes, with_pods=with_pods)
    progress = InputProgress("objects")
    paint = paint_for(sys.stdout)
    kept: list[Finding] = []
    for finding in audit.run(progress.watch(items)):
        if output == "text":
            progress.print(*_lines(finding, audit.fail_on, paint))
        elif output == "json":
            progress.print(json_line(_as_json(finding)))
        else:
            kept.append(finding)
    for note in (*audit.complaints(), *notes):
        print_message(note)
    _finish(output, kept, audit)
    if metrics:
        _write_gauges(Path(metrics), audit.by_check, len(audit.examined), audit.inventory.now)
    return audit.exit_code


class _Audit(Struct):
    """An audit in progress: objects of a dump are examined as they are read, a history when it ends."""

    inventory: Inventory
    fail_on: Severity
    known: frozenset[str]
    now: str | None
    paths: Sequence[str]
    history: Follower = field(default_factory=Follower)
    examined: list[tuple[str, str]] = field(default_factory=list)
    """(name, source) of everything that was examined, in order."""
    by_check: Counter[tuple[str, Severity]] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unreadable: list[Unreadable] = field(default_factory=list)
    passed_over: int = 0

    def run(self, items: Iterable[Item]) -> Iterator[Finding]:
        """Yield every finding that is not in the baseline, each as soon as it is certain."""
        for finding in chain(chain.from_iterable(map(self._take, items)), self._rest()):
            if finding.fingerprint in self.known:
                self.passed_over += 1
            else:
                self.by_check[finding.check, finding.severity] += 1
                yield finding

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(number for (_, found), number in self.by_check.items() if found is severity)

    @property
    def exit_code(self) -> int:
        """2 if something could not be read, 1 if something severe was found, else 0."""
        if self.unreadable or not (self.examined or self.skipped):
            return 2
        return int(any(one.is_at_least(self.fail_on) for _, one in self.by_check))

    def complaints(self) -> Iterator[str]:
        """Yield what the input does not show."""
        if not self.examined and not self.unreadable:
            yield "no lease and no candidate is in the input"
        if self.inventory.leases and not self.inventory.has_managed_fields:
            yield "the input has no managedFields, so stamps are not examined; kubectl needs --show-managed-fields"

    def _take(self, item: Item) -> Iterator[Finding]:
        if isinstance(item, Fenced):
            return  # it is about another object
        if isinstance(item, Unreadable):
            self.unreadable.append(item)
        elif isinstance(item, Foreign):
            self.skipped[item.kind] += 1
            if item.kind == "Pod":
                self.inventory.pods.setdefault(item.namespace, set()).add(item.name)
            elif item.kind == "Node":
                self.inventory.nodes.add(item.name)
        elif isinstance(item, LogEnd) or item.input_kind is not InputKind.DUMP:
            self.history.feed(item)
        else:
            yield from self._stored(item)

    def _stored(self, item: Observation) -> Iterator[Finding]:
        name = f"{item.kind} {item.namespace}/{item.name}"
        self.examined.append((name, item.place.path))
        if item.object is None:
            fix = "correct the type in the manifest; an API server refuses the object"
            subject = ObjectName(item.kind, item.namespace, item.name)
            yield Finding("object-types", Severity.ERROR, item.problem, fix, str(item.place), subject)
            return
        stored = subject_of(item.object, item.namespace, item.name, self.inventory.now, source=str(item.place))
        yield from self.inventory.add(stored)

    def _rest(self) -> Iterator[Finding]:
        """Yield findings that need the whole history, or all objects."""
        if self.history.leases or self.history.candidates:
            at = evaluation_time(self.now, self.paths, self.history.until).at
            self.inventory.now = at if not self.inventory.leases else self.inventory.now
            for (namespace, name), history in sorted(self.history.leases.items(), key=itemgetter(0)):
                self.examined.append((f"Lease {namespace}/{name}", ", ".join(self.paths)))
                if history.lease is not None and not history.is_deleted:
                    interval, homes = interval_of(history), homes_of(history)
                    subject = subject_of(history.lease, namespace, name, at, interval=interval, homes=homes)
                    yield from self.inventory.add(subject)
                yield from incidents(self.history, history, at)
            for (namespace, name), candidate in sorted(self.history.candidates.items(), key=itemgetter(0)):
                self.examined.append((f"LeaseCandidate {namespace}/{name}", ", ".join(self.paths)))
                yield from self.inventory.add(subject_of(candidate, namespace, name, at))
        yield from self.inventory.rest()


def _finish(output: str, kept: Sequence[Finding], audit: _Audit) -> None:
    """Print the summary, or the document."""
    if output == "text":
        print("\n".join(_summary(audit)))
    elif output == "json":
        print_message(_NOT_APPLICABLE)
    elif output == "openreports":
        for document in _open_reports(kept, audit.inventory.now):
            print(json_line(document))
    else:
        report = _report(kept, audit)
        print(sarif(report, __version__) if output == "sarif" else junit(report, audit.fail_on))


def _lines(finding: Finding, fail_on: Severity, paint: Paint) -> Iterator[str]:
    if finding.severity.is_at_least(fail_on):
        color = paint.red if finding.severity is Severity.ERROR else paint.yellow
        who = escape(truncate(str(finding.subject), _MAX_NAME))
        yield f"{color(f'{finding.severity.value:<8}')} {paint.bold(who)}  {finding.check}"
        yield indent(escape(finding.message), 9)
        # Not wrapped: it is there to be copied.
        yield f"         -> {escape(finding.fix)}"


def _as_json(finding: Finding) -> dict[str, Any]:
    fields: dict[str, Any] = to_builtins(finding)
    return {**fields.pop("subject"), **{"source" if key == "place" else key: text for key, text in fields.items()}}


def _summary(audit: _Audit) -> Iterator[str]:
    found = [f"{number} {one.value}" for one in Severity if (number := audit.count(one))]
    known = f", {audit.passed_over} known from the baseline" if audit.passed_over else ""
    skipped = f"; {sum(audit.skipped.values())} other objects skipped" if audit.skipped else ""
    yield f"{len(audit.examined)} examined: {', '.join(found) or 'nothing found'}{known}{skipped}"
    hidden = sum(audit.count(one) for one in Severity if not one.is_at_least(audit.fail_on))
    if hidden:
        yield f"{hidden} below {audit.fail_on.value} not shown: --fail-on info shows all"
    yield indent(_NOT_APPLICABLE, 2).strip()


def _report(findings: Sequence[Finding], audit: _Audit) -> Report:
    """Return everything that was examined, including objects without findings."""
    by_object: dict[str, list[Finding]] = {}
    for one in findings:
        by_object.setdefault(str(one.subject), []).append(one)
    results = [Examination(name, Location(path), tuple(by_object.pop(name, ()))) for name, path in audit.examined]
    results += [Examination("", Location(one.place.path), error=one.error) for one in audit.unreadable]
    checks = [Check(id_, RULES[id_].texts.summary) for id_ in sorted({one.check for one in findings} & RULES.keys())]
    return Report("audit", tuple(results), tuple(checks))


_RESULTS: Final = {Severity.ERROR: "fail", Severity.WARNING: "warn", Severity.INFO: "pass"}
_SEVERITIES: Final = {Severity.ERROR: "high", Severity.WARNING: "medium", Severity.INFO: "info"}


def _open_reports(findings: Sequence[Finding], now: int) -> Iterator[dict[str, Any]]:
    """Yield one Report of openreports.io for each namespace, to be applied with kubectl.

    Source: openreports/reports-api `apis/openreports.io/v1alpha1/report_types.go`.
    """
    by_namespace: dict[str, list[Finding]] = {}
    for one in findings:
        by_namespace.setdefault(one.subject.namespace, []).append(one)
    labels = {"app.kubernetes.io/managed-by": "lease-webhook"}
    for namespace, found in sorted(by_namespace.items()):
        counts = Counter(_RESULTS[one.severity] for one in found)
        yield {
            "apiVersion": "openreports.io/v1alpha1",
            "kind": "Report",
            "metadata": {"name": "lease-webhook-audit", "namespace": namespace, "labels": labels},
            "source": "lease-webhook",
            "summary": {result: counts[result] for result in ("pass", "fail", "warn", "error", "skip")},
            "results": [_open_result(one, now) for one in found],
        }


def _open_result(one: Finding, now: int) -> dict[str, Any]:
    version = "coordination.k8s.io/v1" if one.subject.kind == "Lease" else "coordination.k8s.io/v1beta1"
    return {
        "policy": "leases",
        "rule": one.check,
        "category": "Leader election",
        "severity": _SEVERITIES[one.severity],
        "result": _RESULTS[one.severity],
        "scored": True,
        "timestamp": {"seconds": now // 1_000_000, "nanos": 0},
        "message": escape(truncate(one.message, 1000)),
        "properties": {"fix": escape(truncate(one.fix, 1000))},
        "resources": [{"apiVersion": version, **asdict(one.subject)}],
    }


def _write_gauges(path: Path, counts: Mapping[tuple[str, Severity], int], examined: int, now: int) -> None:
    """Write the findings of each check as gauges, for the textfile collector of node_exporter; replace the file."""
    with needing_the_server("--metrics"):
        from prometheus_client import CollectorRegistry, Gauge, write_to_textfile  # noqa: PLC0415
    registry = CollectorRegistry()
    labels = ("check", "severity")
    findings = Gauge("lease_audit_findings", "Findings of the last audit of leases.", labels, registry=registry)
    for (check, severity), number in counts.items():
        findings.labels(check, severity.value).set(number)
    Gauge("lease_audit_examined", "Objects that the last audit examined.", registry=registry).set(examined)
    time = Gauge("lease_audit_timestamp_seconds", "Timestamp of the last audit.", registry=registry)
    time.set(now / 1_000_000)
    write_to_textfile(str(path), registry)


def _known_findings(path: str) -> frozenset[str]:
    """Return the fingerprints in the JSON lines that an earlier `audit --format json` printed; raises Failure."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    return frozenset(_fingerprint(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _fingerprint(path: str, number: int, line: bytes) -> str:
    try:
        one = json.loads(line)
        parts = [one[key] for key in ("kind", "namespace", "name", "check")]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Failure(f"{path}, line {number}: not a finding; write it with `audit --format json`") from None
    return "/".join(map(str, parts))
