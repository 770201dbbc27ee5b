"""What else an input shows of a silence of which the cause was told: it adds to it, or takes the blame off."""

from msgspec.structs import replace

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.evidence.pods.deleted_pods import (
    describe_deletion,
    find_pod_deletion,
)
from webhook.analysis.claims.evidence.pods.pod_statuses import find_status_writes_of_restart
from webhook.analysis.claims.evidence.silent_holders.lost_heartbeats import find_lost_heartbeats
from webhook.analysis.claims.evidence.silent_holders.other_leases import describe_other_requests
from webhook.analysis.claims.evidence.silent_holders.silence_evidence import (
    SilenceEvidence,
    list_answers,
    list_refusals,
)
from webhook.analysis.claims.evidence.writers.failed_writes import describe_stored
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.lease import LeaseHistory


def add_answers(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence with what the answers to a holder, and to writers without a name, leave."""
    causes = [*list_answers(evidence.own_answers)]
    if cause.blame is Blame.UNKNOWN:
        causes += [*list_answers(evidence.other_answers), *list_refusals(evidence.other_answers)]
    # Which of two pods of one name is its holder, an input that begins late does not show.
    causes += list_refusals([one for one in evidence.other_answers if one.is_held_by_another])
    cause = replace(cause, possible_causes=tuple(dict.fromkeys((*cause.possible_causes, *causes))))
    may_be_own = [one for one in evidence.unauthenticated if not evidence.sources or one.source in evidence.sources]
    if not may_be_own or Cause.REFUSED_CREDENTIALS in cause.possible_causes:
        return cause
    number = f"{evidence.least}{format_count(len(may_be_own), 'request')}"
    addresses = {get_address(one.source) for one in may_be_own}
    doubt = f"{number} without accepted credentials, answered with 401, may be its own"
    if len(addresses) > 1:
        doubt = f"of {number} from {len(addresses)} addresses, without accepted credentials (401), some may be its own"
    return replace(
        cause,
        evidence=f"{cause.evidence}; {doubt}",
        possible_causes=(*cause.possible_causes, Cause.REFUSED_CREDENTIALS),
    )


def add_answers_to_sharers(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
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


def add_slow_part(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the part of an API server that took most of a slow answer."""
    slowest = evidence.slowest_answer
    if slowest is None or not slowest.slow_part or cause.blame is not Blame.SERVER:
        return cause
    return replace(cause, evidence=f"{cause.evidence}, most of it by {slowest.slow_part}")


def add_last_answer(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the last answer to a holder of which none was slow."""
    if not evidence.own_answers or evidence.slow or cause.blame is not Blame.CLIENT:
        return cause
    return replace(cause, evidence=f"{cause.evidence}; {_describe_last_answer(evidence.own_answers[-1])}")


def _describe_last_answer(last: Refusal) -> str:
    """Say what the last request of a holder was answered: of a pod that may have restarted, if nothing names it."""
    what = "read" if last.is_read else "write"
    whose = f"a {what} from its pod" if last.writer.pod and not last.asked_holder else f"a {what} by the holder"
    return f"{whose} was answered with {last.code}{describe_stored([last])}"


def add_deleted_pod(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence of all leases, with the deletion of the holder's pod just before it stopped."""
    found = find_pod_deletion(evidence) if evidence.other_leases.most_were_late else None
    if found is None:
        return cause
    text = f"{cause.evidence}; but its pod was {describe_deletion(found, evidence.end)}"
    return replace(cause, evidence=text, possible_causes=(*cause.possible_causes, Cause.POD_DELETED))


def add_end_of_pod(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with what a kubelet wrote meanwhile of the end of the holder's pod."""
    tenure, ended = evidence.tenure, evidence.end_of_pod
    if not ended or tenure is None:
        return cause
    heard = tenure.processes.list_requests_after(evidence.start)
    is_asked_since = bool(heard) and heard[0] > evidence.kubelet_writes[0].at
    evidence_with_end = f"{cause.evidence}; {ended}"
    return replace(cause, evidence=evidence_with_end, is_end_shown=True, is_asked_since_end=is_asked_since)


def add_restart(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a loss, with whether its pod may have restarted before it asked for the lease.

    The next process in it reads the lease under the same token, and waits until that of the one before expires.
    """
    tenure = evidence.tenure
    if tenure is None or not cause.requests or evidence.start < tenure.last_of_identity:
        return cause
    if all(one.status is not None for one in evidence.kubelet_writes):
        return cause  # what a kubelet wrote is shown, and says whether a container ended
    written = find_status_writes_of_restart(evidence.histories, tenure)
    first = tenure.processes.list_requests_after(evidence.start)[0] if written else 0
    return replace(cause, is_asked_since_status=True) if written and written[0] <= first else cause


def add_lost_heartbeats(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the heartbeats that stopped with it while others went on.

    They say nothing of a server that was slow to answer, and what one log does not show is said of that log.
    """
    if cause.silent_log or Cause.STOPPED not in cause.possible_causes:
        return cause
    lost = find_lost_heartbeats(evidence.histories, evidence.history, evidence.start, evidence.end)
    node = evidence.history.find_node_at(evidence.start) or _find_node_of_name(evidence)
    if lost is None or (node and not lost.may_concern(node)):
        return cause
    is_led = not (node or evidence.history.is_heartbeat)
    text = f"{lost.describe(evidence.end, is_place_unknown=is_led)}; {cause.evidence}"
    return replace(cause, evidence=text, has_lost_heartbeats=True)


def _find_node_of_name(evidence: SilenceEvidence) -> str:
    """Return the node that a holder is named as, whose lease the input has; "" if there is none."""
    holder = evidence.tenure.holder if evidence.tenure is not None else ""
    is_led = evidence.history.namespace != NODE_LEASES
    return holder if is_led and (NODE_LEASES, holder) in evidence.histories.leases else ""


def add_ended_log(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the log that ends meanwhile."""
    ended = evidence.ended_log
    if ended is None:
        return cause
    name = format_name(ended.path.rpartition("/")[2])
    is_only = evidence.history.requests.find_logs_of(evidence.tenure) == {ended.path}
    others = ", which has no request for the lease from its pod" if is_only else ""
    text = f"log {name} ends at {format_clock(ended.at, evidence.end)} and another goes on{others}"
    text = f"{cause.evidence}; {text}: its API server may have ended, or the rest of it is missing"
    return replace(cause, evidence=text, has_ended_log=True, is_heard_in_ended_log_only=is_only)


def add_signs_of_life(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with the lease that the silent process renewed meanwhile."""
    other = find_lease_renewed_meanwhile(evidence) if cause.is_silent else None
    if other is None:
        return cause
    place = "" if other.namespace == evidence.history.namespace else f"{format_name(other.namespace)}/"
    return replace(cause, evidence=f"it renewed {place}{format_name(other.name)} meanwhile", is_alive=True)


def add_other_requests(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with what the pod asked the API server for meanwhile, besides the lease."""
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
    text = f"{cause.evidence}; {describe_other_requests(evidence)}"
    return replace(cause, evidence=text, has_gone_on=cause.blame is Blame.CLIENT)


def find_lease_renewed_meanwhile(evidence: SilenceEvidence) -> LeaseHistory | None:
    """Return another lease, of any namespace, that the process of a holder renewed while it was silent."""
    tenure, end = evidence.tenure, evidence.end
    later = evidence.start + (end - evidence.start) // 4
    own = tenure.processes.own if tenure is not None else None
    for other, held in evidence.histories.index.find_tenures_of_process(own) if own is not None and own.pod else ():
        is_held = held is not tenure and held.since < end and held.last_renewal > later
        if is_held and other.renewals.was_renewed_between(later, end):
            return other
    return None
