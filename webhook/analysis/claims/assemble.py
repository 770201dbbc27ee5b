"""Put together what is known of a lease: from its history, or from the state that a list shows."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from webhook.analysis.audit.leases import Subject, check_stamps, check_stored_object
from webhook.analysis.audit.registry import report_problem
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.diagnosis import Blame, Diagnosis
from webhook.analysis.claims.evidence.contenders.askers import find_askers
from webhook.analysis.claims.evidence.contenders.surroundings import find_surroundings
from webhook.analysis.claims.evidence.coordination.election_facts import find_election_facts
from webhook.analysis.claims.evidence.input_coverage import find_input_coverage
from webhook.analysis.claims.evidence.machines.named_nodes import find_named_node
from webhook.analysis.claims.evidence.machines.renamed_nodes import RenamedNode
from webhook.analysis.claims.evidence.pods.pod_facts import find_pod_facts
from webhook.analysis.claims.evidence.pods.pods_while_free import find_refused_pods
from webhook.analysis.claims.evidence.silent_holders import causes, other_leases
from webhook.analysis.claims.evidence.silent_holders.expiry_doubts import ExpiryDoubt, find_expiry_doubt
from webhook.analysis.claims.evidence.silent_holders.silent_together import find_silent_together
from webhook.analysis.claims.evidence.silent_holders.silent_writers import find_silent_writer
from webhook.analysis.claims.evidence.silent_holders.write_pauses import find_write_pause
from webhook.analysis.claims.evidence.unshown_durations import find_unshown_duration
from webhook.analysis.claims.evidence.writers.related_writes import find_related_writes
from webhook.analysis.claims.evidence.writers.stored_copies import has_old_renew_time, list_managers_of_copies
from webhook.analysis.claims.findings.false_expiry import is_server_clock_right
from webhook.analysis.claims.findings.incidents import drop_repeated, find_incidents, find_server_clock
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus, date_renewal
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.items import InputKind, Observation
from webhook.findings import ORDER, ObjectName, ReportFinding, Severity
from webhook.kubernetes.objects import Lease

_SILENT_NODE: Final = frozenset({"expired", "heartbeat-silent"})
"""Findings about a stored heartbeat of a node that does not report any more."""
_UNSEEN: Final = LeaseHistory("", "")


def make_account(histories: ClusterHistory, history: LeaseHistory, now: int, seen_until: int = 0) -> Account:
    """Return everything that is known of one lease at `now`, in microseconds since 1970.

    The other leases of `histories` show whether only one was late or all were. `seen_until` is that of a `Subject`.
    """
    status = history.find_status(now)
    doubt, unshown = find_expiry_doubt(histories, history, status, now), find_unshown_duration(history)
    cause = find_ongoing_cause(histories, history, now, doubt)
    refused_pods = find_refused_pods(histories, history, now)
    pods = find_pod_facts(histories, history, refused_pods, now)
    surroundings = find_surroundings(histories, history, status, now, doubt)
    askers = None if doubt.unlogged else find_askers(histories, history, status)
    election = find_election_facts(histories, history, askers, now)
    related = find_related_writes(
        histories.index.related_writes,
        history,
        unshown,
        refused_pods=refused_pods,
        failing=pods.failing,
        deletions=pods.deletions,
        candidates=(*election.accepted_candidates, *election.refused_candidates),
    )
    runs_on = cause is not None and cause.runs_on
    subject = _make_subject(histories, history, status, now, seen_until=seen_until, runs_on=runs_on)
    found = [*find_incidents(histories, history, now, cause, is_duration_shown=unshown is None)]
    stored = (
        _check_stored(histories, history, subject, found, doubt) if subject is not None else _check_unreadable(history)
    )
    has_log = not pods.gone and (cause is None or cause.blame is not Blame.POD)
    findings = [_correct_fix(one, surroundings.renamed_node, has_log=has_log) for one in (*found, *stored)]
    return Account(
        history,
        now,
        status,
        tuple(sorted(findings, key=_get_rank)),
        cause,
        doubt=doubt,
        askers=askers,
        silent_together=None if doubt.unlogged else find_silent_together(histories, history, status),
        related_writes=tuple(related),
        pause=find_write_pause(histories, history),
        silent_writer=find_silent_writer(histories, history, status),
        unshown_duration=unshown,
        surroundings=surroundings,
        pods=pods,
        election=election,
        coverage=find_input_coverage(histories, history, now),
    )


def _make_subject(
    histories: ClusterHistory,
    history: LeaseHistory,
    status: LeaseStatus | None,
    now: int,
    *,
    seen_until: int,
    runs_on: bool,
) -> Subject | None:
    """Return a lease as it is stored, with what its history shows of it; None if it was never seen, or is gone."""
    if history.lease is None or status is None:
        return None
    return Subject(
        history.lease,
        history.namespace,
        history.name,
        now,
        interval=history.interval,
        known_status=status,
        seen_until=seen_until,
        ends_at=None if history.is_list_only else histories.bounds.ended,
        is_as_sent=history.is_as_sent,
        is_election=not history.is_heartbeat,
        runs_on=runs_on,
        is_held_by_node=bool(find_named_node(histories, history, now)),
        is_server_clock_right=is_server_clock_right(history),
        limits=histories.find_limits(history.namespace, history.name),
        is_never_renewed=has_old_renew_time(history),
        other_managers=list_managers_of_copies(history),
    )


def _check_stored(
    histories: ClusterHistory,
    history: LeaseHistory,
    subject: Subject,
    incidents: Sequence[ReportFinding],
    doubt: ExpiryDoubt,
) -> Iterator[ReportFinding]:
    """Yield what is wrong with a lease as it is stored, besides what its history shows."""
    is_server_clock = find_server_clock(histories, history, subject.status, subject.now) is not None
    yield from drop_repeated(
        incidents,
        check_stored_object(subject),
        may_lack_renewals=doubt.may_lack_renewals,
        is_server_clock=is_server_clock,
        is_old_state=has_old_renew_time(history),
    )
    has_managed_fields = histories.would_show_managed_fields(history)
    yield from check_stamps(subject, histories.stamped, has_managed_fields=has_managed_fields)


def _check_unreadable(history: LeaseHistory) -> Iterator[ReportFinding]:
    """Yield why the object of a lease cannot be read, if nothing else shows the lease."""
    if history.problem and history.lease is None:
        subject = ObjectName("Lease", history.namespace, history.name)
        yield report_problem("object-types", history.problem, subject)


def _get_rank(finding: ReportFinding) -> int:
    return ORDER[finding.severity]


def _correct_fix(finding: ReportFinding, renamed_node: RenamedNode | None, *, has_log: bool) -> ReportFinding:
    """Return a finding whose command asks for nothing that is gone: the log of a pod, or a node under its old name."""
    if renamed_node is not None and finding.check in _SILENT_NODE:
        return replace(finding, fix=renamed_node.advise().command)
    if finding.check == "expired" and not has_log:
        return replace(finding, fix="")
    return finding


def make_account_of_state(
    histories: ClusterHistory, key: Key, seen: Observation, now: int, least: Severity = Severity.INFO
) -> Account:
    """Return what one list shows of the lease `key`: no history, and so no cause.

    Findings below `least` may be left out.
    """
    assert isinstance(seen.object, Lease)
    # The texts of `key`, which `histories` keeps: of 100,000 leases, equal copies would be many.
    namespace, name = key
    limits = histories.find_limits(namespace, name)
    subject = Subject(seen.object, namespace, name, now, limits=limits, least_severity=least)
    at = date_renewal(subject.lease, subject.entries) if subject.status.holder else None
    # Nothing is fed into it, so all rows may have the empty queues of one history: making them takes longer than this.
    renewals = replace(_UNSEEN.renewals, first=at, last=at)
    history = replace(_UNSEEN, namespace=namespace, name=name, renewals=renewals)
    findings = [
        *check_stored_object(subject),
        *check_stamps(subject, histories.stamped, has_managed_fields=histories.lists_managed_fields),
    ]
    findings.sort(key=_get_rank)
    is_beat = subject.is_heartbeat
    return Account(history, now, subject.status, tuple(findings), None, is_stored_heartbeat=is_beat)


def find_ongoing_cause(
    histories: ClusterHistory, history: LeaseHistory, now: int, doubt: ExpiryDoubt
) -> Diagnosis | None:
    """Return why the holder does not renew now; None if the lease has not expired, or need not have."""
    unlogged = doubt.unlogged
    if doubt.patient_reader or (unlogged and not unlogged.ended):
        return None
    cause = _diagnose_expiry(histories, history, now)
    # When an input ends, a deletion that it shows is why; that nothing is heard since is not.
    return None if unlogged and cause and cause.blame is not Blame.POD else cause


def _diagnose_expiry(histories: ClusterHistory, history: LeaseHistory, now: int) -> Diagnosis | None:
    status = history.find_status(now)
    if status is None or status.state is not LeaseState.EXPIRED or status.last_renewal is None:
        return None
    if history.kind is not InputKind.DUMP and histories.bounds.until is not None:
        tenure = history.latest_tenure
        start = tenure.last_renewal if tenure and tenure.renewed_by_other else status.last_renewal
        if tenure and history.kind is InputKind.AUDIT_LOG:
            # A client sets renewTime before it sends the renewal, so that request does not count as a later one.
            start = max(start, tenure.last_renewal)
        cause = causes.diagnose(histories, history, tenure, start, min(now, histories.bounds.until))
        if not other_leases.lacks_other_leases(cause):
            return cause
    # A watch in which every lease stopped ends with the last renewal.
    return other_leases.diagnose_snapshot(histories, history, now)
