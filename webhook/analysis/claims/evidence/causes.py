"""Why renewals failed to come: what the API server answered counts first, then what the holder did."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.evidence.api_servers import is_identity_lease
from webhook.analysis.claims.evidence.deleted_pods import (
    TOKEN_GRACE,
    DeletedPod,
    describe_deletion,
    describe_first_request,
    explain_refused_token,
    find_deletion,
)
from webhook.analysis.claims.evidence.failed_writes import describe_stored, may_have_stored
from webhook.analysis.claims.evidence.gone_pods import find_gone_pod
from webhook.analysis.claims.evidence.lost_heartbeats import find_lost_heartbeats
from webhook.analysis.claims.evidence.pod_statuses import (
    describe_end_of_pod,
    find_kubelet_writes,
    find_status_writes_of_restart,
)
from webhook.analysis.claims.evidence.silence_evidence import (
    HIDDEN,
    REFUSED,
    SilenceEvidence,
    list_answers,
    list_refusals,
)
from webhook.analysis.claims.evidence.work_of_both import WorkOfBoth, find_work_of_both
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_leases, format_name
from webhook.analysis.history.audit_log.latency import BY_WEBHOOKS
from webhook.analysis.history.audit_log.log_spans import SilentLog
from webhook.analysis.history.audit_log.refusal import AUTHORIZATION_FAILED, TOO_MANY_REQUESTS, UNAUTHENTICATED, Refusal
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import OtherLeases, Silence, estimate_deadline
from webhook.analysis.history.status import RELEASED_DURATION
from webhook.analysis.inputs.items import InputKind
from webhook.kubernetes.times import SECOND, format_length

MAX_OF_A_KIND: Final = 10
"""Findings of one kind: the latest ones."""
_MIN_OTHER_WRITES: Final = 3
WITHOUT_EVIDENCE: Final = (
    "no other lease in the input shows whether the API server was unavailable; if there are more, give all of them (-A)"
)
_OTHERS: Final = "whether it was unavailable at other times, no other lease in the input shows"
_MIN_REPEATED: Final = 3
"""Holders in a row that let a lease expire: fewer may have stopped for reasons of their own."""
REPEATED: Final = (Cause.INTERVAL, Cause.STOPPED)
"""The causes that are left if holders let a lease expire again and again."""
_ONE_NODE: Final = "and all holders were on one node"
_TOO_FEW: Final = "too few to tell an outage of the API server from one of a node; give all of them (-A)"
_COMPARED: Final = "compared (due at least twice)"
"""What is renewed too rarely for that time, such as a heartbeat of a node, is not in such a count."""
_FOR_ALL: Final = (Cause.FAILED, Cause.REFUSED_WEBHOOK, Cause.REFUSED_POLICY)
"""Possible causes of a stop of all writes, where no log shows the answers."""


class MissedRenewals(Silence, frozen=True, kw_only=True):
    """A time for which `tenure` did not renew; then it did, or another one took over.

    `work_after`: what its pod wrote after another one had taken over.
    """

    tenure: Tenure
    cause: Diagnosis
    work_after: WorkOfBoth | None = None


def find_late_renewals(histories: ClusterHistory, history: LeaseHistory) -> Iterator[MissedRenewals]:
    """Yield the latest renewals that came beyond the deadline of most clients, oldest first."""
    for silence in history.late_silences[-MAX_OF_A_KIND:]:
        tenure = history.find_tenure_of_silence(silence)
        # By clocks that differ, it may have been shorter.
        if tenure is None or silence.length - history.skew < estimate_deadline(silence.duration):
            continue
        step = histories.find_server_clock_step(history, silence.start, silence.end)
        if step is not None and silence.length + step.by < estimate_deadline(silence.duration):
            continue
        is_claimed = tenure.is_claimed
        is_one_clock = not (history.renewals.has_several_clocks or tenure.renewed_by_other or tenure.is_coordinated)
        if is_claimed and (not is_one_clock or _may_be_ended_by_another(history, silence)):
            continue
        if tenure.processes.is_renewed_by_another(silence.start, silence.end):
            continue
        cause = diagnose(histories, history, tenure, silence.start, silence.end)
        yield MissedRenewals(
            silence.start, silence.end, silence.duration, doubt=silence.doubt, tenure=tenure, cause=cause
        )


def _may_be_ended_by_another(history: LeaseHistory, silence: Silence) -> bool:
    """Return whether another wrote meanwhile what no input shows: that may be the renewal that the lease shows."""
    return any(silence.start < at <= silence.end for at, _ in history.requests.accepted)


def find_lost_leaders(histories: ClusterHistory, history: LeaseHistory) -> Iterator[MissedRenewals]:
    """Yield the times for which holders did not renew until the lease expired and another one took it, oldest first."""
    for before, after in pairwise(history.tenures):
        # Two writers' clocks say nothing of the time between their writes.
        is_claimed = after.taking_write.is_claimed or (
            before.last_renewal_write is not None and before.last_renewal_write.is_claimed
        )
        if (after.began is Handover.EXPIRED or after.is_close) and not is_claimed:
            start, end = before.last_of_identity, after.since
            cause = diagnose(histories, history, before, start, end)
            if after.processes.is_from_pod_of(before.processes):
                cause = _add_change_of_name(cause, after)
            cause = _add_end_and_return_of_pod(cause, histories, before, end)
            work = find_work_of_both(histories, before, after)
            yield MissedRenewals(start, end, before.duration, tenure=before, cause=cause, work_after=work)


def _add_end_and_return_of_pod(cause: Diagnosis, histories: ClusterHistory, before: Tenure, end: int) -> Diagnosis:
    """Return the cause of a loss, with what happened later to the pod that lost the lease."""
    gone = find_gone_pod(histories, before)
    written = find_status_writes_of_restart(histories, before)
    clause = gone.describe_with_doubt(end) if gone is not None else ""
    return replace(cause, gone=clause, status_written=written)


def _add_change_of_name(cause: Diagnosis, after: Tenure) -> Diagnosis:
    """Return the cause of a silence after which the same pod took the lease under another name."""
    pod = after.processes.taken_by.pod if after.processes.taken_by else ""
    if cause.blame is not Blame.CLIENT or not pod:
        return cause
    text = (
        f"both names were written from pod {format_name(pod)}: a process that begins under another name waits "
        "until the lease of its old one expires, as does another process of the pod"
    )
    return replace(cause, evidence=f"{text}; {cause.evidence}")


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


def _diagnose_refusal(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the API server, or a webhook or policy in it, refused what the holder asked."""
    denied = [one for one in evidence.own_answers if one.is_denied]
    refused = [one for one in denied if not one.is_read] or denied
    if not refused:
        return None
    is_alone = evidence.kept_trying and evidence.asked_throughout and not evidence.hidden
    beside = () if is_alone else _list_possible_causes(evidence.other_leases, evidence.hidden)
    last = refused[-1]
    like_last = (
        one
        for one in evidence.late_answers
        if (one.code, one.by, one.is_read) == (last.code, last.by, last.is_read) and evidence.is_own(one)
    )
    cause = _describe_refusal([*refused, *like_last], beside, evidence.least)
    if not evidence.was_refused_before(last):
        return cause
    # So refused, it could renew then: these may be other writes of its pod, which the lease does not need.
    text = f"{cause.evidence}; some were refused alike while it renewed"
    return Diagnosis(Blame.UNKNOWN, text, tuple(dict.fromkeys((*cause.possible_causes, Cause.STOPPED))))


def _diagnose_unauthenticated(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if requests from the address and program of a silent holder were refused with 401."""
    sources = evidence.sources
    unauthenticated = [one for one in evidence.unauthenticated if one.source and one.source in sources]
    if not unauthenticated or evidence.request_count:
        return None
    return _describe_unauthenticated(evidence, unauthenticated)


def _diagnose_failure(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the API server was unable to store writes, or answered that there were too many requests."""
    own = evidence.own_answers
    if evidence.kept_trying and own and all(one.is_unserved for one in own):
        text = f"at least {format_count(len(own), 'request')} answered with 404, and not that the lease is not found"
        return _add_stop(Diagnosis(Blame.SERVER, text, (Cause.FAILED,), own[-1]), evidence)
    failed = [one for one in own if one.has_failed]
    if not failed or not evidence.kept_trying:
        return None
    limited = [one for one in failed if one.code == TOO_MANY_REQUESTS]
    others = [one for one in failed if one.code != TOO_MANY_REQUESTS]
    text = f"at least {format_count(len(limited), 'request')} answered with {TOO_MANY_REQUESTS}"
    if not others:
        return _add_stop(Diagnosis(Blame.THROTTLED, text, (Cause.THROTTLED,), limited[-1]), evidence)
    cause = replace(_diagnose_unstored(evidence, others), may_be_stored=may_have_stored(others))
    cause = _add_stop(cause, evidence)
    if not limited:
        return cause
    return replace(
        cause, evidence=f"{cause.evidence}; and {text}", possible_causes=(*cause.possible_causes, Cause.THROTTLED)
    )


def _add_stop(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a holder's failures; if it did not ask for long, it may have stopped as well."""
    if evidence.asked_throughout or Cause.STOPPED in cause.possible_causes:
        return cause
    return replace(cause, possible_causes=(*cause.possible_causes, Cause.STOPPED))


def _diagnose_conflict(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if its updates conflicted: with those of others, or with its own renewals."""
    history, tenure, start, end = evidence.history, evidence.tenure, evidence.start, evidence.end
    conflicts = sum(1 for one in evidence.own_answers if one.has_conflicted)
    if not conflicts or not evidence.kept_trying:
        return None
    if not evidence.hidden and tenure and _has_no_other_writes(history, tenure, start, end):
        text = f"{conflicts} of its updates conflicted (409), although nothing else was written to the lease"
        return Diagnosis(Blame.CLIENT, text, (Cause.UNANSWERED, Cause.CONFLICT), requests=evidence.request_count or 0)
    others = describe_other_writers(history, start, end)
    also = f" ({others})" if others else ""
    text = f"{evidence.least}{conflicts} of its updates conflicted with other writes (409){also}"
    return _add_stop(Diagnosis(Blame.CONFLICT, text, (Cause.CONFLICT,)), evidence)


def _diagnose_idle_writes(tenure: Tenure, start: int, end: int) -> Diagnosis | None:
    """Return the cause if its process went on to write the lease for most of that time, without another renewTime."""
    idle = [at for at in tenure.processes.unrenewed if start < at < end]
    if len(idle) < _MIN_OTHER_WRITES or idle[-1] < start + (end - start) // 2:
        return None
    text = f"at least {format_count(len(idle), 'write')} in that time left renewTime as it was"
    return Diagnosis(Blame.CLIENT, text, (Cause.NOT_RENEWING,))


def _diagnose_habit(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if a holder did not find itself in the lease, wrote it without renewing, or renews too rarely.

    How often it renews does not explain a silence of several such intervals.
    """
    tenure, silence, requests = evidence.tenure, evidence.silence, evidence.request_count or 0
    if tenure is not None and tenure.asked_holder:
        text = f"it asked for {format_name(tenure.asked_holder)}, and {format_name(tenure.holder)} was stored"
        possible = (Cause.REWRITTEN, Cause.STOPPED, Cause.API_SERVER, Cause.NETWORK, *evidence.hidden)
        return Diagnosis(Blame.REWRITTEN, text, possible, requests=requests)
    if tenure is not None and (idle := _diagnose_idle_writes(tenure, silence.start, silence.end)):
        return replace(idle, requests=requests)
    if repeated := _diagnose_repeated_expiry(evidence):
        return _add_other_requests(repeated, evidence)
    usual, duration = evidence.history.renewals.usual, silence.duration
    # In a coordinated election API servers renew the lease, too, so its rhythm does not show how often its holder does.
    is_habit = tenure is None or not tenure.is_coordinated
    if not is_habit or not usual or not duration or duration <= RELEASED_DURATION:
        return None
    is_rare = usual >= duration * SECOND and silence.length <= 2 * usual + SECOND
    if is_rare and not _describe_late(evidence.other_leases):
        text = f"it is renewed every {format_length(usual)}, typically, and lasts {duration} s"
        return Diagnosis(Blame.CLIENT, text, (Cause.INTERVAL,), requests=requests)
    return None


def _diagnose_repeated_expiry(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if holders in a row took the lease, did not renew it until it expired, and then asked again."""
    tenure, runs = evidence.tenure, [list[int]()]
    for before, after in pairwise(evidence.history.tenures):
        if after.began is Handover.EXPIRED and before.processes.heard_again and not before.processes.renewals:
            runs[-1].append(id(before))
        else:
            runs.append([])
    number = next((len(run) for run in runs if id(tenure) in run), 0)
    if number < _MIN_REPEATED or tenure is None:
        return None
    text = (
        f"at least {number} holders in a row let it expire without one renewal, "
        f"and each of them asked for it again later (it lasts {tenure.duration} s)"
    )
    return Diagnosis(Blame.CLIENT, text, REPEATED)


def _diagnose_deleted_pod(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the pod of a holder was deleted just before it stopped, and not all others stopped then."""
    tenure, found = evidence.tenure, find_deletion(evidence)
    if tenure is None or found is None or evidence.other_leases.most_were_late:
        return None
    if _find_lease_renewed_meanwhile(evidence):
        return None
    beside = () if found.is_why and not evidence.hidden else (Cause.STOPPED, *evidence.hidden)
    return Diagnosis(Blame.POD, describe_deletion(found, evidence.end), (Cause.POD_DELETED, *beside))


def _has_no_other_writes(history: LeaseHistory, tenure: Tenure, start: int, end: int) -> bool:
    """Return whether a log that has all writes has none by another between the last renewal of a holder and `end`.

    A write that conflicts then is based on a state before that renewal, of which the answer may not have arrived.
    """
    is_renewed_by_other = tenure.renewed_by_other is not None and start <= tenure.renewed_by_other[0] < end
    times = (*(one.at for one in history.idle_writes), *(at for at, _ in history.requests.accepted))
    return not is_renewed_by_other and not any(start <= at < end for at in times)


def _add_answers(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence with what else is left by the answers to a holder, and to writers without a name."""
    seen = tuple(one for one in list_answers(evidence.own_answers) if one not in cause.possible_causes)
    cause = replace(cause, possible_causes=(*cause.possible_causes, *seen))
    may_be_own = [one for one in evidence.unauthenticated if not evidence.sources or one.source in evidence.sources]
    if not may_be_own or Cause.REFUSED_CREDENTIALS in cause.possible_causes:
        return cause
    number = f"{evidence.least}{format_count(len(may_be_own), 'request')}"
    doubt = f"{number} without accepted credentials, answered with 401, may be its own"
    return replace(
        cause,
        evidence=f"{cause.evidence}; {doubt}",
        possible_causes=(*cause.possible_causes, Cause.REFUSED_CREDENTIALS),
    )


def _add_answers_to_sharers(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence with what other processes were answered that renewed under the same name before.

    Which of them leads is not known, so nothing says that no renewal was sent.
    """
    answers = evidence.answers_to_sharers
    possible = tuple(
        one for one in (*list_refusals(answers), *list_answers(answers)) if one not in cause.possible_causes
    )
    if cause.blame is not Blame.CLIENT or not possible:
        return cause
    last = answers[-1]
    text = (
        f"{describe_writer(last.writer)}, which may be the holder or another process, "
        f"was answered with {last.code} meanwhile"
    )
    return replace(
        cause,
        blame=Blame.UNKNOWN,
        evidence=f"{text}; {cause.evidence}",
        possible_causes=(*cause.possible_causes, *possible),
        is_silent=False,
    )


def _diagnose_election(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the holder was asked to step down by then, or was chosen and has not renewed since."""
    tenure = evidence.tenure
    if tenure is not None and tenure.is_chosen and not tenure.processes.renewals:
        return Diagnosis(
            Blame.UNKNOWN,
            "an API server chose it, and it has not renewed since",
            (Cause.NOT_TAKEN_UP, Cause.STOPPED, *HIDDEN),
        )
    request = tenure.step_down if tenure is not None and tenure.is_coordinated else None
    if request is None or request.asked is None or request.asked.earliest > evidence.end:
        return None  # only electors of a coordinated election read what they are asked
    by = f" by {describe_writer(request.writer)}" if request.writer and request.writer.user else ""
    text = f"it was asked to step down for {format_name(request.successor)}{by}"
    return Diagnosis(Blame.COORDINATED, text, (Cause.ASKED_TO_STEP_DOWN, Cause.STOPPED, *evidence.hidden))


def _list_possible_causes(compared: OtherLeases, hidden: Sequence[Cause]) -> tuple[Cause, ...]:
    """Return the causes that are left beside what the answers show."""
    return (Cause.STOPPED, Cause.API_SERVER, *(() if compared.on_time else (Cause.NETWORK,)), *hidden)


def _describe_refusal(refused: Sequence[Refusal], beside: Sequence[Cause], least: str) -> Diagnosis:
    # Who cannot renew gives up, and may release the lease then, which is refused as well.
    last = ([one for one in refused if not one.is_release] or refused)[-1]
    message = f"{', the last one' if len(refused) > 1 else ''}: {last.message}" if last.message else ""
    by = REFUSED[last.by]
    possible = (by, *(one for one in beside if one != by))
    codes = " and ".join(map(str, sorted({one.code for one in refused})))
    return Diagnosis(Blame.REFUSED, f"{least}{_count_requests(refused)} answered with {codes}{message}", possible, last)


def _count_requests(refused: Sequence[Refusal]) -> str:
    """Return `3 writes`, `3 reads`, or `3 requests` if some are reads and some are not."""
    kinds = {one.is_read for one in refused}
    if len(kinds) > 1:
        return format_count(len(refused), "request")
    return format_count(len(refused), "read" if True in kinds else "write")


def _diagnose_silence(evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence in which nothing was refused."""
    cause = _compare_silence(evidence)
    for add in _ADDITIONS:
        cause = add(cause, evidence)
    return cause


def _add_slow_part(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the part of an API server that took most of a slow answer."""
    slowest = evidence.slowest_answer
    if slowest is None or not slowest.slow_part or cause.blame is not Blame.SERVER:
        return cause
    return replace(cause, evidence=f"{cause.evidence}, most of it by {slowest.slow_part}")


def _add_last_answer(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the last answer to a holder of which none was slow."""
    if not evidence.own_answers or evidence.slow or cause.blame is not Blame.CLIENT:
        return cause
    return replace(cause, evidence=f"{cause.evidence}; {_describe_last_answer(evidence.own_answers[-1])}")


def _describe_last_answer(last: Refusal) -> str:
    """Say what the last request of a holder was answered: of a pod that may have restarted, if nothing names it."""
    what = "read" if last.is_read else "write"
    whose = f"a {what} from its pod" if last.writer.pod and not last.asked_holder else f"a {what} of it"
    return f"{whose} was answered with {last.code}{describe_stored([last])}"


def _add_deleted_pod(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence of all leases, with the deletion of the holder's pod just before it stopped."""
    found = find_deletion(evidence) if evidence.other_leases.most_were_late else None
    if found is None:
        return cause
    text = f"{cause.evidence}; but its pod was {describe_deletion(found, evidence.end)}"
    return replace(cause, evidence=text, possible_causes=(*cause.possible_causes, Cause.POD_DELETED))


def _add_end_of_pod(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with what a kubelet wrote meanwhile of the end of the holder's pod."""
    tenure, start, end = evidence.tenure, evidence.start, evidence.end
    found = find_kubelet_writes(evidence.histories, tenure, start, end) if tenure is not None else ()
    ended = describe_end_of_pod(found, start, end)
    return replace(cause, evidence=f"{cause.evidence}; {ended}", is_end_shown=True) if ended else cause


def _add_lost_heartbeats(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the heartbeats that stopped with it while others went on.

    They say nothing of a server that was slow to answer, and what one log does not show is said of that log.
    """
    if cause.silent_log or Cause.STOPPED not in cause.possible_causes:
        return cause
    lost = find_lost_heartbeats(evidence.histories, evidence.history, evidence.start, evidence.end)
    if lost is None:
        return cause
    text = f"{lost.describe(evidence.end)}; {cause.evidence}"
    return replace(cause, evidence=text, has_lost_heartbeats=True)


def _add_ended_log(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the log that ends meanwhile."""
    ended = evidence.ended_log
    if ended is None:
        return cause
    name = format_name(ended.path.rpartition("/")[2])
    text = f"log {name} ends at {format_clock(ended.at, evidence.end)} and another goes on"
    text = f"{cause.evidence}; {text}: its API server may have ended, or the rest of it is missing"
    return replace(cause, evidence=text, has_ended_log=True)


def _compare_silence(evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause by how other leases fared."""
    slow = evidence.slow
    histories, history, hidden = evidence.histories, evidence.history, evidence.hidden
    silence, requests, compared = evidence.silence, evidence.request_count, evidence.other_leases
    start, end = silence.start, silence.end
    is_whole = history.kind is InputKind.AUDIT_LOG and not (histories.lacks_requests(history) or evidence.ended_log)
    is_silent = evidence.is_heard is False and is_whole
    own = (Cause.STOPPED, Cause.API_SERVER, *hidden)
    if late := _describe_late(compared):
        if not compared.are_enough:
            why = f"{late}, {_ONE_NODE if compared.is_one_node else _TOO_FEW}"
            return Diagnosis(Blame.UNKNOWN, why, (*own, Cause.NETWORK))
        return _diagnose_outage(evidence, late, is_silent=is_silent and not slow)
    if slow:
        return Diagnosis(
            Blame.SERVER, f"it took up to {format_length(slow)} to answer a write", (Cause.API_SERVER, Cause.FAILED)
        )
    if evidence.silent_log is not None:
        return _diagnose_silent_log(evidence, evidence.silent_log, own)
    others = describe_other_writers(history, start, end)
    # A log without holes has each conflict of a process that it knows.
    is_in_time = _was_written_before_renewal_was_due(history, start)
    if others and is_in_time and not is_silent and (hidden or requests is None):
        shown = "" if history.kind is InputKind.AUDIT_LOG else "; the audit log shows it"
        conflicting = tuple(dict.fromkeys((*own, Cause.CONFLICT)))
        if manager := _find_own_manager(history, start, end):
            text = (
                f"field manager {format_name(manager)}, as in its renewals, "
                "stored writes that left renewTime as it was: "
                f"its process may have written the lease without renewing it, or another client uses that name{shown}"
            )
            return Diagnosis(Blame.UNKNOWN, text, (Cause.NOT_RENEWING, *conflicting))
        return Diagnosis(Blame.UNKNOWN, f"{others}, so its updates may have conflicted{shown}", conflicting)
    if not compared.is_known and is_silent and evidence.was_answered_throughout:
        reads = len(evidence.reads_of_others)
        text = f"the API server answered at least {reads} reads of this lease by others meanwhile"
        return Diagnosis(Blame.CLIENT, text, own, is_silent=True)
    if not compared.is_known:
        return Diagnosis(Blame.UNKNOWN, _describe_candidate_writes(evidence) or WITHOUT_EVIDENCE, (*own, Cause.NETWORK))
    if compared.most_paused and not is_silent:
        text = (
            f"{_describe_pause(compared)}, as when the API server or its etcd is slow, or a node cut off, for example"
        )
        return Diagnosis(Blame.UNKNOWN, text, (*own, Cause.NETWORK), is_shared=True)
    node = _is_node_silent(histories, history, start, end) if is_silent else None
    of_node = {
        True: "; for most of it the lease of its node was not renewed",
        False: ", and so was that of its node",
        None: "",
    }
    text = f"{_describe_punctual(compared)}{of_node[node]}"
    return Diagnosis(Blame.CLIENT, text, own, is_silent=is_silent, requests=requests or 0)


def _describe_candidate_writes(evidence: SilenceEvidence) -> str:
    """Say that an API server stored LeaseCandidates meanwhile, which are no leases; "" if none did.

    Before a renewal was due, and in the second in which it came, that says nothing.
    """
    due, end = evidence.start + (evidence.history.renewals.usual or SECOND), evidence.end // SECOND * SECOND
    found = [one for one in evidence.histories.candidate_writes if due < one < end]
    if not found:
        return ""
    return f"an API server stored LeaseCandidates meanwhile, the last at {format_clock(max(found), end)}; {_OTHERS}"


def lacks_other_leases(cause: Diagnosis) -> bool:
    """Return whether no other lease shows anything of a time in which one was not renewed."""
    return cause.evidence == WITHOUT_EVIDENCE or cause.evidence.endswith(_OTHERS)


def _diagnose_silent_log(evidence: SilenceEvidence, log: SilentLog, own: Sequence[Cause]) -> Diagnosis:
    """Return the cause if the API server of the last renewal answered nobody about a lease, as far as its log shows."""
    name = log.path.rpartition("/")[2]
    start, end = (format_clock(one, evidence.end) for one in (log.start, log.end))
    found = [one for one in evidence.histories.leases.values() if _has_stopped_with(one, evidence.history, log)]
    stopped, servers = len(found), [one for one in found if is_identity_lease(one)]
    were = "was" if stopped == 1 else "were"
    others = f", although {format_count(stopped, 'other lease')} {were} renewed there before" if stopped else ""
    whose = "that API server, or the process of the holder, may have stood still or been cut off, for example"
    if len(servers) == 1:
        # An API server renews its own lease each 10 s, for which no client and no network is needed.
        others = f", not even about that of its API server, {servers[0].namespace}/{servers[0].name}"
        whose = "that API server may have stood still or been cut off from its etcd, for example"
    text = (
        f"log {format_name(name)}, which has the last renewal, has no answer about any lease from {start} to {end}"
        f"{others}, and another log goes on: {whose}"
    )
    return Diagnosis(Blame.UNKNOWN, text, (*own, Cause.NETWORK), silent_log=name)


def _has_stopped_with(other: LeaseHistory, history: LeaseHistory, log: SilentLog) -> bool:
    """Return whether another lease was renewed in a log, and was due there again while that had no answer."""
    usual, written = other.renewals.usual, other.requests.written_in
    is_there = other is not history and written.find_at(log.start) == log.path
    return is_there and usual is not None and 2 * usual <= log.end - log.start


def _add_signs_of_life(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the lease that the silent process renewed meanwhile."""
    other = _find_lease_renewed_meanwhile(evidence) if cause.is_silent else None
    if other is None:
        return cause
    place = "" if other.namespace == evidence.history.namespace else f"{format_name(other.namespace)}/"
    return replace(cause, evidence=f"it renewed {place}{format_name(other.name)} meanwhile", is_alive=True)


def _add_other_requests(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with what the pod asked of the API server meanwhile beside the lease."""
    found = evidence.other_requests
    if not found or cause.blame not in {Blame.CLIENT, Blame.UNKNOWN}:
        return cause
    has_gone_on = evidence.has_pod_gone_on
    if cause.is_silent and evidence.runs_on:
        first, latest = (format_clock(pick(one.at for one in found), evidence.end) for pick in (min, max))
        clause = f"at least {format_count(len(found), 'other')}, from {first} to {latest}"
        return replace(cause, others=clause, has_gone_on=has_gone_on, runs_on=True)
    if cause.is_silent:
        last = format_clock(max(one.at for one in found), evidence.end)
        number, which = format_count(len(found), "other"), "" if len(found) == 1 else "the last "
        return replace(cause, others=f"at least {number}, {which}answered at {last}", has_gone_on=has_gone_on)
    if not has_gone_on:
        return cause
    text = f"{cause.evidence}; {_describe_other_requests(evidence)}"
    return replace(cause, evidence=text, has_gone_on=cause.blame is Blame.CLIENT)


def _describe_other_requests(evidence: SilenceEvidence) -> str:
    """Say how many other requests of its pod were answered; "" if none is known. Not all of a log are read."""
    found = evidence.other_requests
    if not found:
        return ""
    number, last = format_count(len(found), "other request"), format_clock(max(one.at for one in found), evidence.end)
    if len(found) == 1:
        return f"at least {number} of its pod was answered meanwhile, at {last}"
    return f"at least {number} of its pod were answered meanwhile, the last at {last}"


def _find_lease_renewed_meanwhile(evidence: SilenceEvidence) -> LeaseHistory | None:
    """Return another lease, of any namespace, that the process of a holder renewed while it was silent."""
    tenure, start, end = evidence.tenure, evidence.start, evidence.end
    own = tenure.processes.own if tenure is not None else None
    for other, held in evidence.histories.find_tenures_of_user(own.user) if own is not None and own.pod else ():
        is_own = held is not tenure and held.processes.own is not None and held.processes.own.is_same(own)
        if is_own and held.since < end and held.last_renewal > start + (end - start) // 4:
            return other
    return None


def _diagnose_outage(evidence: SilenceEvidence, late: str, *, is_silent: bool) -> Diagnosis:
    """Return the cause if all leases were late; if the holder was silent and others were answered, it is not known."""
    for_all = _FOR_ALL if evidence.hidden else ()
    if not is_silent:
        return Diagnosis(Blame.SERVER, late, (Cause.API_SERVER, Cause.NETWORK, Cause.STOPPED, *for_all))
    if answered := len(evidence.reads_of_others):
        reads = f"the API server answered at least {format_count(answered, 'read')} of this lease meanwhile"
        possible = (Cause.STOPPED, Cause.NETWORK, Cause.API_SERVER, *for_all)
        return Diagnosis(Blame.UNKNOWN, f"{late}, but {reads}", possible)
    if others := _describe_other_requests(evidence):
        possible = (Cause.STOPPED, Cause.NETWORK, Cause.API_SERVER, *for_all)
        return Diagnosis(Blame.UNKNOWN, f"{late}, but {others}", possible)
    heard = "and for most of that time the log has no answered request for the lease from the holder"
    possible = (Cause.NETWORK, Cause.API_SERVER, Cause.STOPPED, *for_all)
    return Diagnosis(Blame.NETWORK, f"{late}, {heard}", possible)


def _is_node_silent(histories: ClusterHistory, history: LeaseHistory, start: int, end: int) -> bool | None:
    """Return whether the node of the one that held a lease at an instant was silent too; None if that is not known."""
    node = history.find_node_at(start)
    lease = histories.leases.get((NODE_LEASES, node)) if node else None
    longest = lease.renewals.longest_usual if lease else None
    if lease is None or longest is None or (lease.renewals.first or start) >= start:
        return None
    last = lease.renewals.last or start
    silent = lease.renewals.measure_silence_within(start, end)
    if last < end and (histories.bounds.until or end) - last > longest:
        silent = max(silent, end - max(start, last))
    if 4 * silent >= 3 * (end - start):
        return True
    # A kubelet renews each 10 s: within a shorter time it may have nothing to say.
    return False if not silent and end - start > longest else None


def _describe_unauthenticated(evidence: SilenceEvidence, unauthenticated: Sequence[Refusal]) -> Diagnosis | None:
    """Return the cause if requests from the address and program of a silent holder were refused with 401.

    Only who believes to lead writes before it has read; who waits reads, too, from an address that several share.
    """
    is_alone = evidence.history.requests.is_only_source_of(evidence.tenure, unauthenticated[-1].source)
    if not is_alone and all(one.is_read for one in unauthenticated):
        return None
    doubt = "" if is_alone else ", which it shares with others"
    late = [one for one in evidence.late_answers if one.code == UNAUTHENTICATED and one.source in evidence.sources]
    text = (
        f"{evidence.least}{_count_requests([*unauthenticated, *late])} answered with 401 (Unauthorized), "
        f"from its address and program{doubt}, and none by its name for most of that time"
    )
    possible, last, first = (Cause.REFUSED_CREDENTIALS, Cause.STOPPED), unauthenticated[-1], unauthenticated[0].received
    deleted = find_deletion(evidence, TOKEN_GRACE)
    if deleted is not None and deleted.ended_at is not None and deleted.ended_at < first:
        return None  # its containers had ended, so another process asked from there
    if deleted is not None and deleted.asked and deleted.asked[0].at < first + evidence.histories.bounds.skew:
        how = f"{describe_deletion(deleted, evidence.end)}{_describe_renewals_after(deleted, evidence)}"
        causes = (*possible, Cause.POD_DELETED)
        return Diagnosis(
            Blame.REFUSED,
            f"{text}; its pod was {how}, and {explain_refused_token(deleted)}",
            causes,
            last,
            deletion=describe_first_request(deleted, evidence.end),
            is_end_shown=deleted.ended_at is not None,
        )
    # Whoever shares its address may not be heard by name.
    return Diagnosis(Blame.REFUSED, text, possible, last)


def _describe_renewals_after(deleted: DeletedPod, evidence: SilenceEvidence) -> str:
    """Say for how long a holder renewed after its pod was deleted, if it did."""
    went_on = evidence.start - deleted.asked[0].at
    if went_on <= SECOND + evidence.histories.bounds.skew:
        return ""
    return (
        f", after which it renewed until {format_clock(evidence.start, evidence.end)}, {format_length(went_on)} later"
    )


def _count_failures_of_others(evidence: SilenceEvidence) -> str:
    """Say how many requests for other leases the API server could not answer then, "" of none."""
    others = (one for one in evidence.histories.leases.values() if one is not evidence.history)
    answers = (answer for one in others for answer in one.requests.refusals)
    codes = [one.code for one in answers if evidence.start < one.at <= evidence.end and one.has_failed]
    if not codes:
        return ""
    shown = " and ".join(map(str, sorted(set(codes))))
    were = "was" if len(codes) == 1 else "were"
    return f"; at least {format_count(len(codes), 'request')} for other leases {were} answered with {shown}"


def _diagnose_unstored(evidence: SilenceEvidence, failed: Sequence[Refusal]) -> Diagnosis:
    """Return the cause if the API server was unable to store writes: of this lease only, or also of others."""
    compared = evidence.other_leases
    last, late = failed[-1], _describe_late(compared)
    codes = " and ".join(map(str, sorted({one.code for one in failed})))
    text = f"at least {format_count(len(failed), 'request')} answered with {codes}{describe_stored(failed)}"
    if last.has_failed_at_once and last.message:
        text += f"{', the last one' if len(failed) > 1 else ''}: {last.message}"
    if last.slow_part:
        text += f"; of the {format_length(last.took)} of the last one, {last.slow_part} took most, as the log says"
    if all(one.failed_webhook for one in failed):
        return Diagnosis(Blame.SERVER, text, (Cause.FAILED,), last)
    if late or not compared.on_time:
        text += _count_failures_of_others(evidence)
        return Diagnosis(Blame.SERVER, f"{text}; {late}" if late else text, (Cause.FAILED, Cause.API_SERVER), last)
    if last.slow_part in BY_WEBHOOKS:
        return Diagnosis(Blame.SERVER, f"{text}; {_describe_punctual(compared)}", (Cause.FAILED,), last)
    read = next((one for one in reversed(failed) if one.is_read), None)
    path = "so not the API server as a whole: perhaps a webhook that it calls, or the one API server in use"
    if last.slow_part:
        path = "so not everywhere: perhaps at one API server only"
    if read is not None:
        path = (
            "so not every API server failed. No admission webhook sees reads: look at the API server in use, and what "
            "it asks, such as etcd and authorizers"
        )
    if all(one.reason == AUTHORIZATION_FAILED for one in failed):
        path = "and the log says that authorization failed: look at the authorizers, such as a webhook"
    return Diagnosis(Blame.SERVER, f"{text}; {_describe_punctual(compared)}, {path}", (Cause.FAILED,), read or last)


def _describe_pause(compared: OtherLeases) -> str:
    """Say how many other leases missed renewals at the same time, and were renewed again before they were late."""
    number = compared.late + compared.on_time
    others = "the other lease" if number == 1 else f"{compared.paused} of {number} other leases"
    return f"{others} paused at the same time, for up to {format_length(compared.silent_for)}"


def _describe_punctual(compared: OtherLeases) -> str:
    number = compared.late + compared.on_time
    others = "the other lease was" if number == 1 else f"{number} other leases were"
    late = ""
    if compared.late:
        verb = "was" if compared.on_time == 1 else "were"
        others = f"{compared.on_time} of {number} other leases {_COMPARED} {verb}"
        were = "was" if compared.late == 1 else "were"
        late = f", and {format_leases(compared.named_late, compared.late)} {were} late at the same time"
    if compared.paused:
        which = "" if compared.paused == compared.on_time else f"{compared.paused} of them "
        pause = format_length(compared.silent_for)
        return f"{others} renewed meanwhile, {which}after up to {pause} without a renewal{late}"
    return f"{others} renewed on time{late}"


def _was_written_before_renewal_was_due(history: LeaseHistory, start: int) -> bool:
    """Return whether others wrote a lease soon after its last renewal, so that their writes may have stopped the next.

    Who has missed several renewals by then had stopped for another reason.
    """
    first = min((one.at for one in history.idle_writes if one.at >= start), default=start)
    return first <= start + 2 * (history.renewals.usual or SECOND) + SECOND


def describe_other_writers(history: LeaseHistory, start: int, end: int) -> str:
    """Say who else wrote the lease in that time without renewing it, if that was often."""
    found = Counter(one.name for one in history.idle_writes if start <= one.at <= end)
    often = [(who, number) for who, number in found.most_common(3) if number >= _MIN_OTHER_WRITES]
    if not often:
        return ""
    known = [format_name(who) for who, _ in often if who]
    are_all = len(known) == len(found)
    # A watch has their field managers, which clients choose.
    kind = "" if history.kind is InputKind.AUDIT_LOG else f"field manager{'' if len(known) == 1 else 's'} "
    by = f"{' by' if are_all else ', among others by'} {kind}{' and '.join(known)}" if known else ""
    return f"others wrote it at least {format_count(sum(number for _, number in often), 'time')} in that time{by}"


def _find_own_manager(history: LeaseHistory, start: int, end: int) -> str:
    """Return the field manager of a holder, if it often stored other writes than renewals in that time; else ""."""
    tenure = history.find_tenure_at(start)
    own = tenure.manager if tenure else ""
    number = sum(1 for one in history.idle_writes if start <= one.at <= end and one.name == own)
    return own if own and number >= _MIN_OTHER_WRITES else ""


def diagnose_snapshot(histories: ClusterHistory, history: LeaseHistory, now: int) -> Diagnosis:
    """Return why an expired lease is not renewed, from a dump, which has only the last renewal of each lease."""
    others = histories.compare_silent_with_others(history, now)
    own = (Cause.STOPPED, Cause.API_SERVER, *HIDDEN)
    if not others.is_known:
        return Diagnosis(Blame.UNKNOWN, WITHOUT_EVIDENCE, (*own, Cause.NETWORK))
    if others.most_were_late:
        stopped = f"{format_count(others.late, 'other lease')} stopped at the same time"
        if histories.bounds.may_be_older:
            return Diagnosis(Blame.UNKNOWN, f"{stopped}, as if the list was taken then (--now)", (*own, Cause.NETWORK))
        if others.are_enough:
            return Diagnosis(Blame.SERVER, stopped, (Cause.API_SERVER, Cause.NETWORK, Cause.STOPPED, *_FOR_ALL))
        return Diagnosis(Blame.UNKNOWN, f"{stopped}, {_TOO_FEW}", (*own, Cause.NETWORK))
    return Diagnosis(
        Blame.CLIENT, f"{format_count(others.on_time, 'other lease')} went on being renewed after that", own
    )


def _describe_late(others: OtherLeases) -> str:
    if not others.most_were_late:
        return ""
    known = others.late + others.on_time
    which = {1: "the other lease", 2: "both other leases"}.get(known, f"all {known} other leases")
    if others.is_sample:
        which = f"{others.late} of a sample of {known} other leases"
    elif others.on_time:
        which = f"{others.late} of the {known} other leases"
    verb = "was" if known == 1 else "were"
    late = f"{which} {_COMPARED} {verb} late at the same time"
    if not others.on_time:
        return late
    named, on_time = format_leases(others.named_late, others.late), format_leases(others.named_on_time, others.on_time)
    return f"{late} ({named}), and {on_time} {'was' if others.on_time == 1 else 'were'} not"


_DIAGNOSES: Final[tuple[Callable[[SilenceEvidence], Diagnosis | None], ...]] = (
    _diagnose_election,
    _diagnose_appointment,
    _diagnose_refusal,
    _diagnose_unauthenticated,
    _diagnose_failure,
    _diagnose_conflict,
    _diagnose_habit,
    _diagnose_deleted_pod,
)
"""The first one that finds a cause decides: what excludes the others comes first."""
_ADDITIONS: Final[tuple[Callable[[Diagnosis, SilenceEvidence], Diagnosis], ...]] = (
    _add_lost_heartbeats,
    _add_signs_of_life,
    _add_other_requests,
    _add_answers,
    _add_answers_to_sharers,
    _add_deleted_pod,
    _add_ended_log,
    _add_end_of_pod,
    _add_slow_part,
    _add_last_answer,
)
"""What else an input shows of a silence, in the order in which it is said; each may take the blame off a cause."""
