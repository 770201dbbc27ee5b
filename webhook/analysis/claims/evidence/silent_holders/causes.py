"""Why renewals failed to come: what the API server answered counts first, then what the holder did."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.evidence.pods.deleted_pods import (
    describe_deletion,
    find_pod_deletion,
)
from webhook.analysis.claims.evidence.silent_holders.further_evidence import (
    add_answers,
    add_answers_to_sharers,
    add_deleted_pod,
    add_end_of_pod,
    add_ended_log,
    add_last_answer,
    add_lost_heartbeats,
    add_other_requests,
    add_restart,
    add_signs_of_life,
    add_slow_part,
    find_lease_renewed_meanwhile,
)
from webhook.analysis.claims.evidence.silent_holders.other_leases import (
    MIN_OTHER_WRITES,
    compare_silence,
    describe_late,
)
from webhook.analysis.claims.evidence.silent_holders.own_conflicts import add_own_conflict
from webhook.analysis.claims.evidence.silent_holders.refused_renewals import (
    diagnose_conflict,
    diagnose_failure,
    diagnose_refusal,
    diagnose_unauthenticated,
)
from webhook.analysis.claims.evidence.silent_holders.silence_evidence import (
    HIDDEN,
    SilenceEvidence,
)
from webhook.analysis.claims.evidence.silent_holders.waits_for_etcd import add_waits_for_etcd
from webhook.analysis.claims.handover_clauses import describe_step_down
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import RELEASED_DURATION
from webhook.analysis.inputs.rewriting import RENEW_TIME
from webhook.kubernetes.times import SECOND, format_length

_MIN_REPEATED: Final = 3
"""Holders in a row that let a lease expire: fewer may have stopped for reasons of their own."""
_REPEATED: Final = (Cause.INTERVAL, Cause.STOPPED)
"""The causes that are left if holders let a lease expire again and again."""


def diagnose(
    histories: ClusterHistory, history: LeaseHistory, tenure: Tenure | None, start: int, end: int
) -> Diagnosis:
    """Return why a lease was not renewed between two instants; what the API server answered counts first.

    `tenure` is its holder at `start`, the last renewal. At `end` it was renewed again, or taken. Both are in
    microseconds since 1970.
    """
    evidence = SilenceEvidence(histories, history, tenure, start, end)
    found = (diagnosis for attempt in _DIAGNOSES if (diagnosis := attempt(evidence)))
    return next(found, None) or _diagnose_silence(evidence)


def _diagnose_appointment(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the diagnosis if another writer named the holder and no process has renewed the lease since."""
    tenure = evidence.tenure
    taker = tenure.processes.taken_by if tenure else None
    if tenure is None or taker is None or tenure.is_chosen or not tenure.processes.is_never_renewed:
        return None
    text = f"{describe_writer(taker)} wrote it in, and no process has renewed it since"
    return Diagnosis(Blame.UNKNOWN, text, (Cause.NOT_RUNNING, Cause.STOPPED, *HIDDEN))


def _diagnose_idle_writes(tenure: Tenure, start: int, end: int) -> Diagnosis | None:
    """Return the cause if its process still wrote the lease for most of that time, without another renewTime."""
    idle = [at for at in tenure.processes.unrenewed if start < at < end]
    if len(idle) < MIN_OTHER_WRITES or idle[-1] < start + (end - start) // 2:
        return None
    text = f"at least {format_count(len(idle), 'write')} in that time left renewTime as it was"
    return Diagnosis(Blame.CLIENT, text, (Cause.NOT_RENEWING,))


def _diagnose_rewritten_renewals(evidence: SilenceEvidence, tenure: Tenure) -> Diagnosis | None:
    """Return the cause if renewals of its process were stored with one renewTime for most of that time."""
    rewritten, own, silence = evidence.history.requests.rewritten, tenure.processes.own, evidence.silence
    span = rewritten.find_span(RENEW_TIME, own, silence.start, silence.end) if own is not None else None
    if span is None or not rewritten.found[RENEW_TIME].is_same or span[1] < silence.start + silence.length // 2:
        return None
    start, end = (format_clock(one, evidence.end) for one in span)
    text = f"the renewTime that it had, from {start} until {end}: they renewed nothing"
    return Diagnosis(Blame.REWRITTEN, text, (Cause.REWRITTEN,))


def _diagnose_habit(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if a holder did not find itself in the lease, wrote it without renewing, or renews too rarely.

    How often it renews does not explain a silence of several such intervals.
    """
    tenure, silence, requests = evidence.tenure, evidence.silence, evidence.request_count or 0
    if tenure is not None and tenure.asked_holder:
        text = f"it asked for {format_name(tenure.asked_holder)}, and {format_name(tenure.holder)} was stored"
        possible = (Cause.REWRITTEN, Cause.STOPPED, Cause.API_SERVER, Cause.NETWORK, *evidence.hidden)
        return Diagnosis(Blame.REWRITTEN, text, possible, requests=requests)
    if tenure is not None and (rewritten := _diagnose_rewritten_renewals(evidence, tenure)):
        return replace(rewritten, requests=requests)
    if tenure is not None and (idle := _diagnose_idle_writes(tenure, silence.start, silence.end)):
        return replace(idle, requests=requests)
    if repeated := _diagnose_repeated_expiry(evidence):
        return add_other_requests(repeated, evidence)
    usual, duration = evidence.history.renewals.usual, silence.duration
    # In a coordinated election API servers renew the lease, too, so its rhythm does not show how often its holder does.
    is_habit = tenure is None or not tenure.is_coordinated
    if not is_habit or not usual or not duration or duration <= RELEASED_DURATION:
        return None
    is_rare = usual >= duration * SECOND and silence.length <= 2 * usual + SECOND
    if is_rare and not describe_late(evidence.other_leases):
        text = f"it is renewed every {format_length(usual)}, typically, and lasts {duration} s"
        return Diagnosis(Blame.CLIENT, text, (Cause.INTERVAL,), requests=requests)
    return None


def _diagnose_repeated_expiry(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if holders in a row took the lease, did not renew it until it expired, and then asked again."""
    tenure, runs = evidence.tenure, [list[int]()]
    for before, after in pairwise(evidence.history.tenures):
        if after.began is Handover.EXPIRED and before.processes.requests_after_loss and not before.processes.renewals:
            runs[-1].append(id(before))
        else:
            runs.append([])
    number = next((len(run) for run in runs if id(tenure) in run), 0)
    if number < _MIN_REPEATED or tenure is None or evidence.end_of_pod:
        return None  # that a container ended says more than that it did not renew
    text = (
        f"at least {number} holders in a row let it expire without one renewal, "
        f"and each of them asked for it again later (it lasts {tenure.duration} s)"
    )
    return Diagnosis(Blame.CLIENT, text, _REPEATED)


def _diagnose_deleted_pod(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the pod of a holder was deleted just before it stopped, and not all others stopped then."""
    tenure, found = evidence.tenure, find_pod_deletion(evidence)
    if tenure is None or found is None or evidence.other_leases.most_were_late:
        return None
    if find_lease_renewed_meanwhile(evidence):
        return None
    beside = () if found.is_why and not evidence.hidden else (Cause.STOPPED, *evidence.hidden)
    return Diagnosis(Blame.POD, describe_deletion(found, evidence.end), (Cause.POD_DELETED, *beside))


def _diagnose_choice(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if an API server chose the holder, which has not renewed since."""
    tenure = evidence.tenure
    if tenure is None or not tenure.is_chosen or tenure.processes.renewals:
        return None
    text = "an API server chose it, and it has not renewed since"
    return Diagnosis(Blame.UNKNOWN, text, (Cause.NOT_TAKEN_UP, Cause.STOPPED, *HIDDEN))


def _diagnose_step_down_after_renewal(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the holder was asked to step down after its last renewal.

    Who was asked before that has renewed since: what was refused or failed then explains more.
    """
    asked = evidence.tenure.step_down.asked if evidence.tenure else None
    # Of a stamp, the fraction of a second is not known.
    return _diagnose_step_down(evidence) if asked and asked.at >= evidence.start - SECOND else None


def _diagnose_step_down(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the holder was asked to step down by then."""
    tenure = evidence.tenure
    request = tenure.step_down if tenure is not None and tenure.is_coordinated else None
    if request is None or request.asked is None or request.is_ignored or request.asked.earliest > evidence.end:
        return None  # only electors of a coordinated election read what they are asked
    by = f" by {describe_writer(request.writer)}" if request.writer and request.writer.user else ""
    silent = request.asked.at - evidence.start
    is_older = silent > 2 * (evidence.history.renewals.usual or SECOND) + SECOND
    after = f", when it had not renewed for {format_length(silent)}" if is_older else ", and stopped renewing then"
    if silent < -SECOND:
        after = ", and may have done so"
    text = f"{describe_step_down('it', request.successor, request)}{by}{after}"
    possible = (Cause.ASKED_TO_STEP_DOWN, Cause.STOPPED, *evidence.hidden)
    return Diagnosis(Blame.COORDINATED, text, possible, is_older_than_request=is_older)


def _diagnose_silence(evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence in which nothing was refused."""
    cause = compare_silence(evidence)
    for add in _ADDITIONS:
        cause = add(cause, evidence)
    return cause


_DIAGNOSES: Final[tuple[Callable[[SilenceEvidence], Diagnosis | None], ...]] = (
    _diagnose_choice,
    _diagnose_step_down_after_renewal,
    _diagnose_appointment,
    diagnose_refusal,
    diagnose_unauthenticated,
    diagnose_failure,
    diagnose_conflict,
    _diagnose_step_down,
    _diagnose_habit,
    _diagnose_deleted_pod,
)
"""The first one that finds a cause decides: what excludes the others comes first."""
_ADDITIONS: Final[tuple[Callable[[Diagnosis, SilenceEvidence], Diagnosis], ...]] = (
    add_lost_heartbeats,
    add_signs_of_life,
    add_other_requests,
    add_answers,
    add_answers_to_sharers,
    add_deleted_pod,
    add_ended_log,
    add_end_of_pod,
    add_slow_part,
    add_last_answer,
    add_restart,
    add_own_conflict,
    add_waits_for_etcd,
)
"""What else an input shows of a silence, in the order in which it is said; each may take the blame off a cause."""
