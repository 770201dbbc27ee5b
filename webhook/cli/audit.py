"""`lease-webhook audit`: what is wrong with the leases that are stored, and how to fix it."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import click
from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from webhook.admission.policy.file import load
from webhook.admission.rules.limits import Limits
from webhook.analysis.audit.leases import Inventory, Subject
from webhook.analysis.audit.registry import report_problem
from webhook.analysis.audit.tokens import TokenCheck
from webhook.analysis.claims.arguments import convert_finding
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import make_claim_json
from webhook.analysis.claims.words import format_count
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.items import AboutInput, FenceReport, InputKind, Item, Observation, OtherObject, Unreadable
from webhook.analysis.rights import AccessControl
from webhook.cli import reading
from webhook.cli.absence import explain_absence, name_source
from webhook.cli.grants import WRITERS_HELP, format_overview, read_access, refuse_writers
from webhook.cli.lease_table import SEVERITY_COLORS
from webhook.cli.options import Command, format_option, parse_moment, policy_option
from webhook.cli.progress import Progress
from webhook.cli.selection import Selection, check_option, labels_option, parse_checks, parse_labels
from webhook.cli.terminal import (
    Failure,
    encode_line,
    format_advice,
    indent,
    needing_the_server,
    print_message,
    style,
    wrap_on_terminal,
)
from webhook.findings import ORDER, ObjectName, ReportFinding, Severity
from webhook.kubernetes.objects import Lease, LeaseCandidate
from webhook.text import yaml_writer
from webhook.text.quoting import escape, quote, truncate

_DESCRIPTION = """\
Examines Leases and LeaseCandidates as they are stored: values that an API server refuses or that freeze a lease,
forged or missing times of the API server, leaders that are gone, leases that several programs share, timings that a
short outage breaks.

The input is any input of `why`; without one, kubectl is run. Pods and Nodes in it show which holders are gone. A watch
or an audit log shows more: lost leaders, steals, late renewals, shared identities.
"""

_EPILOG = """\
Exit codes:
  0  nothing found, or nothing as severe as --fail-on
  1  something that severe was found
  2  something could not be read, there was nothing to examine, or wrong usage

Examples:
  kubectl get leases,leasecandidates -A -o json --show-managed-fields |
    lease-webhook audit --input -
  kubectl lease audit --severity info
"""

FORMATS: Final = ("text", "json", "yaml", "name")
MAX_EQUAL: Final = 20
"""Findings of one check that are listed one by one."""
_MARGIN: Final = 9
_MAX_NAME: Final = 400
"""More than a kind, a namespace and a name that an API server stored."""

_NO_LEASE: Final = (
    "{} is not expected: audit examines the cluster, or --input; `why NAMESPACE/NAME` has the findings of one lease"
)
_SEVERITIES: Final = click.Choice([*map(str, Severity)])
_FAIL_ON: Final = "exit with 1 for findings of this severity or above"
_SEVERITY: Final = "show findings of this severity or above as text, and count those below"
_FENCE: Final = (
    "also find objects with an old token of a fence; the input, or kubectl's list, has them too; needs --policy"
)
_POLICY: Final = "a policy file: where `stamps` are believed, the numbers of its rules, and the fences of --fence"
_METRICS: Final = "write a gauge of the findings for Prometheus, replacing the file at once"


@click.command("audit", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("words", metavar="", nargs=-1)
@reading.input_option
@click.option("--now", type=parse_moment, metavar="RFC3339", help="evaluate the leases as of this time")
@click.option("--severity", type=_SEVERITIES, default=Severity.WARNING.value, show_default=True, help=_SEVERITY)
@click.option("--fail-on", type=_SEVERITIES, default=Severity.WARNING.value, show_default=True, help=_FAIL_ON)
@click.option("--with-pods", is_flag=True, help="let kubectl list pods and nodes too, to find holders that are gone")
@click.option("--in-cluster", is_flag=True, help="list leases with the service account of this pod, without kubectl")
@click.option("--fence", "with_tokens", is_flag=True, help=_FENCE)
@click.option("--writers", is_flag=True, help=WRITERS_HELP)
@click.option("--metrics", metavar="FILE", help=_METRICS)
@policy_option(_POLICY, metavar="FILE")
@reading.cluster_and_input_options
@check_option
@labels_option
@format_option("json: a line for each finding; name: NAMESPACE/NAME of each object with one", FORMATS)
def command(
    *,
    words: tuple[str, ...],
    inputs: tuple[str, ...],
    now: int | None,
    severity: str,
    fail_on: str,
    with_pods: bool,
    in_cluster: bool,
    with_tokens: bool,
    writers: bool,
    metrics: str | None,
    policy: str | None,
    cluster: Cluster,
    checks: tuple[str, ...],
    labels: str,
    output: str,
) -> int:
    _refuse(words)
    selection = Selection(checks=parse_checks(checks), labels=parse_labels(labels), selector=labels)
    in_force = load(policy) if policy else None
    inventory = Inventory(
        reading.find_evaluation_time(now, inputs, None).at, frozenset(in_force.stamps if in_force else ())
    )
    tokens = TokenCheck([one for one in in_force.fences if one.has_token] if in_force and with_tokens else [])
    histories = reading.make_cluster_history(in_force)
    only = reading.find_namespace(cluster)
    audit = Audit(inventory, tokens, Severity(fail_on), now, inputs, only, selection, histories)
    if inputs:
        _refuse_listing(with_pods=with_pods, in_cluster=in_cluster)
    if in_cluster:
        reading.refuse_inside(cluster)
    if with_tokens and (in_cluster or not tokens.fences):
        raise Failure("--fence needs a --policy with a fence that has a token, and works without --in-cluster")
    if writers:
        refuse_writers(inputs, is_listed=output == "name")
        if in_cluster:
            raise Failure("--writers runs kubectl, or reads --input: without --in-cluster")
    resources = sorted({replace(one, subresource="") for fence in tokens.fences for one in fence.resources})
    progress = Progress()
    items = reading.read_for_history(
        *(inputs, reading.widen_to_all_namespaces(cluster), policy),
        with_pods=with_pods,
        is_in_cluster=in_cluster,
        resources=[*map(str, resources)],
        progress=progress,
    )
    _print(audit.run(items), Severity(severity), output, is_whole=bool(checks))
    for note in audit.list_complaints():
        print_message(note)
    if output == "text":
        print("\n".join(summarize(audit, Severity(severity))))
    if writers:
        _print_writers(audit, read_access(inputs, cluster, audit.only), output)
    if metrics:
        _write_gauges(metrics, audit)
    return progress.exit_code(audit.exit_code)


def _print(findings: Iterator[ReportFinding], least: Severity, output: str, *, is_whole: bool) -> None:
    """Print findings: for a program each as soon as it is known, for people the errors first, and equal ones together.

    `is_whole`: all of the equal ones.
    """
    if output == "json":
        for finding in findings:
            print(encode_line(make_finding_json(finding)))
    elif output == "yaml":
        for finding in findings:
            print(yaml_writer.write_stream([make_finding_json(finding)]), end="")
    elif output == "name":
        subjects = {one.subject for one in findings if one.severity.is_at_least(least)}
        for namespace, name in sorted({(one.namespace, one.name) for one in subjects}):
            print(escape(truncate(f"{namespace}/{name}", _MAX_NAME)))
    else:
        for group in _group_findings(findings, least, math.inf if is_whole else MAX_EQUAL):
            print("\n".join(group.format_lines()))


class _Group(Struct):
    """The findings of one check and severity; of many only the first ones."""

    findings: list[ReportFinding] = field(default_factory=list)
    number: int = 0

    def format_lines(self) -> Iterator[str]:
        """Yield the lines of each, or of the first as an example of all."""
        if self.number == len(self.findings):
            for finding in self.findings:
                yield from _format_finding(finding)
            return
        first = self.findings[0]
        yield from _format_finding(first, f"{self.number:,} findings, such as ")
        yield f"{' ' * _MARGIN}{style(f'--check {first.check} lists all of them', dim=True)}"


def _group_findings(findings: Iterator[ReportFinding], least: Severity, most: float) -> list[_Group]:
    """Return findings in groups, the errors first; of a check with more than `most`, only the first is kept."""
    groups: dict[tuple[str, Severity], _Group] = {}
    for finding in findings:
        if finding.severity.is_at_least(least):
            group = groups.setdefault((finding.check, finding.severity), _Group())
            group.number += 1
            if group.number <= most:
                group.findings.append(finding)
    return [groups[key] for key in sorted(groups, key=lambda key: ORDER[key[1]])]


def _refuse(words: Sequence[str]) -> None:
    """Raise UsageError for an argument: there are none."""
    reading.refuse_files(words)
    if words:
        raise click.UsageError(_NO_LEASE.format(quote(truncate(words[0], _MAX_NAME))))


def _refuse_listing(*, with_pods: bool, in_cluster: bool) -> None:
    """Raise Failure for options that say how to list a cluster, where an input is read."""
    if with_pods:
        raise Failure("--with-pods is for kubectl: pods and nodes of --input are examined in any case")
    if in_cluster:
        raise Failure("give either --input or --in-cluster")


class Audit(Struct):
    """An audit in progress: objects of a dump are examined as they are read, a history when it ends."""

    inventory: Inventory
    tokens: TokenCheck
    fail_on: Severity
    now: int | None
    paths: Sequence[str]
    only: str  # the namespace to report on; "" for all
    selection: Selection
    histories: ClusterHistory = field(default_factory=ClusterHistory)
    examined: int = 0
    by_check: Counter[tuple[str, Severity]] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    piped_late: str = ""
    """As of when a history is examined that was piped long after its end; "" for any other input."""
    labeled: set[Key] = field(default_factory=set)
    """The objects that have the labels of the selection."""
    unlabeled: int = 0
    """How many other leases and candidates there are."""
    unasked: Counter[Severity] = field(default_factory=Counter)
    """Findings of checks that the selection leaves out."""

    @property
    def leases(self) -> list[Key]:
        """The leases that were examined, by namespace and name."""
        selected = self.labeled if self.selection.labels else self.inventory.leases.keys()
        return sorted(key for key in self.inventory.leases.keys() & selected if self.only in {"", key[0]})

    def run(self, items: Iterable[Item]) -> Iterator[ReportFinding]:
        """Yield every finding as soon as it is certain."""
        for finding in chain(chain.from_iterable(map(self._examine, items)), self._finish()):
            subject = finding.subject
            is_here = not self.only or subject.namespace in {"", self.only}
            if not (is_here and self._is_labeled(subject.namespace, subject.name)):
                continue
            if not self.selection.has_check([finding]):
                self.unasked[finding.severity] += 1
                continue
            self.by_check[finding.check, finding.severity] += 1
            yield finding

    def _is_labeled(self, namespace: str, name: str) -> bool:
        return not self.selection.labels or (namespace, name) in self.labeled

    def count(self, severity: Severity) -> int:
        """Return the number of findings of one severity."""
        return sum(number for (_, found), number in self.by_check.items() if found is severity)

    @property
    def is_about_something(self) -> bool:
        """True if it examined a lease or a candidate, or found something in other objects."""
        return bool(self.examined or self.by_check)

    @property
    def exit_code(self) -> int:
        """2 if something could not be read or nothing was examined, 1 if something severe was found, else 0."""
        if self.unreadable or not self.is_about_something:
            return 2
        return 1 if any(one.is_at_least(self.fail_on) for _, one in self.by_check) else 0

    def list_complaints(self) -> Iterator[str]:
        """Yield what the input does not show."""
        if not self.examined and not self.unreadable:
            nothing = f"no lease and no candidate{f' of namespace {self.only}' if self.only else ''}"
            if self.unlabeled:
                yield f"{nothing} has the labels {truncate(self.selection.selector, _MAX_NAME)}"
            else:
                hint = "" if self.only else explain_absence(self.paths)
                yield f"{nothing} is in {name_source(self.paths)}{hint}"
        if self.inventory.leases and not (self.inventory.has_managed_fields or self.histories.has_managed_fields):
            yield "the input has no managedFields, so stamps are not examined; kubectl needs --show-managed-fields"
        if self.piped_late:
            yield self.piped_late
        yield from self.tokens.list_complaints()

    def _examine(self, item: Item) -> Iterator[ReportFinding]:
        self.tokens.observe(item)
        if self.selection.labels and isinstance(item, Observation) and self.selection.has_labels(item.object):
            self.labeled.add((item.namespace, item.name))
        if isinstance(item, FenceReport):
            self.histories.add(item)
        elif isinstance(item, Unreadable):
            self.unreadable += 1
        elif isinstance(item, OtherObject):
            if item.kind == "Pod":
                self.inventory.pods.setdefault(item.namespace, set()).add(item.name)
            elif item.kind == "Node":
                self.inventory.nodes.add(item.name)
            else:
                self.skipped[item.kind] += 1
        elif isinstance(item, AboutInput) or not _is_stored_still(item):
            self.histories.add(item)
        else:
            yield from self._examine_stored(item)

    def _examine_stored(self, item: Observation) -> Iterator[ReportFinding]:
        self._count_examined(item.namespace, item.name)
        if item.object is None:
            subject = ObjectName(item.kind, item.namespace, item.name)
            yield report_problem("object-types", item.problem, subject, source=str(item.place))
            return
        limits = self._find_limits(item.object, item.namespace, item.name)
        place = str(item.place)
        stored = Subject(item.object, item.namespace, item.name, self.inventory.now, source=place, limits=limits)
        yield from self.inventory.add(stored)

    def _find_limits(self, stored: Lease | LeaseCandidate, namespace: str, name: str) -> Limits:
        """Return the numbers for an object: for a candidate, those of the lease that it names."""
        lease = (stored.spec.lease_name or "") if isinstance(stored, LeaseCandidate) else name
        return self.histories.find_limits(namespace, lease)

    def _count_examined(self, namespace: str, name: str) -> None:
        if self.only in {"", namespace}:
            is_labeled = self._is_labeled(namespace, name)
            self.examined += is_labeled
            self.unlabeled += not is_labeled

    def _finish(self) -> Iterator[ReportFinding]:
        """Yield findings that need the whole history, or all objects."""
        if self.histories.leases or self.histories.candidates:
            as_of = reading.find_evaluation_time(
                self.now, self.paths, self.histories.bounds.until, self.histories.bounds.shown
            )
            at = as_of.at
            self.histories.bounds.is_over = reading.is_over(self.now, self.paths, self.histories)
            self.piped_late = as_of.text if as_of.is_piped_late else ""
            self.inventory.now = at if not self.inventory.leases else self.inventory.now
            for (namespace, name), history in sorted(self.histories.leases.items(), key=itemgetter(0)):
                self._count_examined(namespace, name)
                account = make_account(self.histories, history, at, as_of.seen_until)
                if account.status is not None and history.lease is not None:
                    self.inventory.note_lease((namespace, name), account.status)
                yield from account.findings
            for (namespace, name), candidate in sorted(self.histories.candidates.items(), key=itemgetter(0)):
                self._count_examined(namespace, name)
                limits = self._find_limits(candidate, namespace, name)
                yield from self.inventory.add(Subject(candidate, namespace, name, at, limits=limits))
        yield from self.inventory.finish()
        yield from self.tokens.check()


def _is_stored_still(seen: Observation) -> bool:
    """Return whether a list shows an object: what only a read of a log shows may have been changed, or be gone."""
    return seen.input_kind is InputKind.DUMP and seen.read_at is None and not seen.is_deleted_later


def _format_finding(finding: ReportFinding, lead: str = "") -> Iterator[str]:
    who = style(escape(truncate(str(finding.subject), _MAX_NAME)), bold=True)
    severity = style(f"{finding.severity.value:<8}", fg=SEVERITY_COLORS[finding.severity])
    yield wrap_on_terminal(f"{severity} {lead}{who}  {finding.check}", _MARGIN)
    yield indent(escape(finding.message), _MARGIN)
    yield format_advice("->", escape(finding.fix), _MARGIN, _MARGIN + 3)


def make_finding_json(finding: ReportFinding) -> dict[str, Any]:
    """Return a finding as a JSON object."""
    claim = convert_finding(finding)
    texts = {"check": claim.check, "severity": claim.severity, "message": claim.message, "fix": claim.fix}
    return {**to_builtins(claim.subject), **texts, "source": claim.place, **make_claim_json(claim)}


def summarize(audit: Audit, severity: Severity) -> Iterator[str]:
    """Yield how much was examined and found; `severity` is that down to which findings are shown."""
    found = [_format_count(number, one) for one in Severity if (number := audit.count(one))]
    checks = sorted(audit.selection.checks)
    unasked = sum(number for one, number in audit.unasked.items() if one.is_at_least(severity))
    others = f"; {format_count(unasked, 'finding')} of other checks not shown" if unasked else ""
    nothing = f"none of {', '.join(checks)}" if checks else "nothing found"
    skipped = f"; {reading.format_skipped(audit.skipped)}" if audit.skipped else ""
    result = f": {', '.join(found) or nothing}{others}" if audit.is_about_something else ""
    yield f"{audit.examined} examined{result}{skipped}"
    hidden = sum(audit.count(one) for one in Severity if not one.is_at_least(severity))
    if hidden:
        yield f"{hidden} below {severity.value} not shown: --severity info shows all"


def _format_count(number: int, severity: Severity) -> str:
    """Return `1 error`, `5 warnings`, `3 info`."""
    return f"{number} info" if severity is Severity.INFO else format_count(number, severity.value)


def _print_writers(audit: Audit, access: AccessControl, output: str) -> None:
    """Print who may write each lease that was examined."""
    if output == "text":
        print("\n".join(("", *format_overview(access, audit.leases))))
        return
    for namespace, name in audit.leases:
        rights = to_builtins(access.find_rights(namespace, name))
        print(encode_line({"namespace": namespace, "name": name, "rights": rights}))


def _write_gauges(path: str, audit: Audit) -> None:
    """Write the findings of each check as gauges, for the textfile collector of node_exporter; replace the file."""
    with needing_the_server("--metrics"):
        from prometheus_client import CollectorRegistry, Gauge, write_to_textfile  # noqa: PLC0415
    registry = CollectorRegistry()
    labels = ("check", "severity")
    findings = Gauge("lease_audit_findings", "Findings of the last audit of leases.", labels, registry=registry)
    for (check, severity), number in audit.by_check.items():
        findings.labels(check, severity.value).set(number)
    Gauge("lease_audit_examined", "Objects that the last audit examined.", registry=registry).set(audit.examined)
    timestamp = Gauge("lease_audit_timestamp_seconds", "Timestamp of the last audit.", registry=registry)
    timestamp.set(audit.inventory.now / 1_000_000)
    try:
        write_to_textfile(path, registry)
    except OSError as error:
        # The error has the name of the temporary file.
        raise Failure(f"{path}: {error.strerror}") from error
