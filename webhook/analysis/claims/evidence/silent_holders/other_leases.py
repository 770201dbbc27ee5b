"""The cause of a silence by how other leases fared meanwhile."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.evidence.machines.moved_heartbeats import MovedHeartbeat, find_moved_heartbeat
from webhook.analysis.claims.evidence.machines.named_nodes import find_last_heartbeat, find_named_node
from webhook.analysis.claims.evidence.silent_holders.silence_evidence import (
    HIDDEN,
    SilenceEvidence,
)
from webhook.analysis.claims.evidence.silent_holders.silent_servers import diagnose_restart, diagnose_silent_log
from webhook.analysis.claims.words import format_clock, format_count, format_leases, format_name
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import OtherLeases
from webhook.analysis.inputs.items import InputKind
from webhook.kubernetes.times import SECOND, format_length

MIN_OTHER_WRITES: Final = 3
WITHOUT_EVIDENCE: Final = (
    "no other lease in the input shows whether the API server was unavailable; if there are more, give all of them (-A)"
)
_OTHERS: Final = "no other lease in the input shows whether it was unavailable at other times"
_ONE_NODE: Final = "and all holders were on one node"
_TOO_FEW: Final = "too few to tell an outage of the API server from one of a node; give all of them (-A)"
_COMPARED: Final = "due at least twice"
"""What is renewed too rarely for that time, such as a heartbeat of a node, is not in such a count."""
_HINDERED: Final = "failed or hung"
_FOR_ALL: Final = (Cause.FAILED, Cause.REFUSED_WEBHOOK, Cause.REFUSED_POLICY)
"""Possible causes of a stop of all writes, where no log shows the answers."""


def compare_silence(evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause by how other leases fared."""
    slow = evidence.slow
    histories, history, hidden = evidence.histories, evidence.history, evidence.hidden
    compared, end = evidence.other_leases, evidence.end
    is_whole = history.kind is InputKind.AUDIT_LOG and not (histories.lacks_requests(history) or evidence.ended_log)
    is_silent = evidence.is_heard is False and is_whole
    own = (Cause.STOPPED, Cause.API_SERVER, *hidden)
    if late := describe_late(compared):
        return _compare_late(evidence, late, own, is_silent=is_silent)
    if slow:
        return Diagnosis(
            Blame.SERVER, f"it took up to {format_length(slow)} to answer a write", (Cause.API_SERVER, Cause.FAILED)
        )
    if evidence.silent_log is not None:
        return diagnose_silent_log(evidence, evidence.silent_log, own)
    if not is_silent and (conflicting := _diagnose_other_writers(evidence, own)) is not None:
        return conflicting
    if not compared.is_known and is_silent and evidence.was_answered_throughout:
        reads = len(evidence.reads_of_others)
        text = f"the API server answered at least {reads} reads of this lease by others meanwhile"
        return Diagnosis(Blame.CLIENT, text, own, is_silent=True)
    is_paused = compared.most_paused and not is_silent
    if (not compared.is_known or is_paused) and (restarted := evidence.restarted_server) is not None:
        return diagnose_restart(restarted.describe(end), own)
    if not compared.is_known:
        shown = _describe_rare_renewals(compared) or _describe_candidate_writes(evidence)
        return Diagnosis(Blame.UNKNOWN, shown or WITHOUT_EVIDENCE, (*own, Cause.NETWORK))
    if is_paused:
        text = (
            f"{_describe_pause(compared)}, as when the API server or its etcd is slow, or a node cut off, for example"
        )
        return Diagnosis(Blame.UNKNOWN, text, (*own, Cause.NETWORK), is_shared=True)
    return _diagnose_own_silence(evidence, own, is_silent=is_silent)


def _compare_late(evidence: SilenceEvidence, late: str, own: Sequence[Cause], *, is_silent: bool) -> Diagnosis:
    """Return the cause if most other leases were late, as is said of them, or hindered."""
    compared, slow, end = evidence.other_leases, evidence.slow, evidence.end
    restarted = None if slow else evidence.restarted_server
    # What a single API server did not answer says more than a few leases, which may have used it, too.
    if evidence.silent_log is not None and not slow and (restarted or not compared.are_enough):
        return diagnose_silent_log(evidence, evidence.silent_log, own)
    if restarted is not None and not compared.are_enough:
        return diagnose_restart(restarted.describe(end), own)
    if not compared.are_enough:
        why = f"{late}, {_ONE_NODE if compared.node else _TOO_FEW}"
        return Diagnosis(Blame.UNKNOWN, why, (*own, Cause.NETWORK))
    shown = late if restarted is None else f"{late}; {restarted.describe(end)}"
    return _diagnose_outage(evidence, shown, is_silent=is_silent and not slow)


def _diagnose_other_writers(evidence: SilenceEvidence, own: Sequence[Cause]) -> Diagnosis | None:
    """Return the cause if others wrote the lease so often that its updates may have conflicted."""
    history, start, end = evidence.history, evidence.silence.start, evidence.silence.end
    others = describe_other_writers(history, start, end)
    # A log without holes has each conflict of a process that it knows.
    is_open = bool(evidence.hidden) or evidence.request_count is None
    if not (others and is_open and _was_written_before_renewal_was_due(history, start)):
        return None
    shown = "" if history.kind is InputKind.AUDIT_LOG else "; the audit log shows it"
    conflicting = tuple(dict.fromkeys((*own, Cause.CONFLICT)))
    if manager := _find_own_manager(history, start, end):
        text = (
            f"field manager {format_name(manager)}, as in its renewals, "
            "stored writes that left renewTime as it was: "
            f"its process may have written the lease without renewing it, or another client uses that name{shown}"
        )
        return Diagnosis(Blame.UNKNOWN, text, (Cause.NOT_RENEWING, *conflicting), has_other_writers=True)
    text = f"{others}, so its updates may have conflicted{shown}"
    return Diagnosis(Blame.UNKNOWN, text, conflicting, has_other_writers=True)


def _diagnose_own_silence(evidence: SilenceEvidence, own: tuple[Cause, ...], *, is_silent: bool) -> Diagnosis:
    """Return the cause if most other leases were renewed on time: not known if one of an API server was not."""
    histories, history, compared = evidence.histories, evidence.history, evidence.other_leases
    start, end = evidence.silence.start, evidence.silence.end
    own_node = history.find_node_at(start)
    named_node = "" if own_node else find_named_node(histories, history, start)
    node = own_node or named_node
    is_node_silent = _is_node_silent(histories, node, start, end)
    of_node = {
        True: f"; for most of it the lease of its node, {format_name(node)}, was not renewed",
        False: _describe_renewed_node(compared),
        None: "",
    }[is_node_silent]
    if named_node and is_node_silent is not None:
        of_node = _describe_named_node(histories, named_node, end, is_silent=is_node_silent)
    moved = _find_moved_heartbeat(histories, node, end) if is_node_silent is False else None
    if moved is not None:
        since = f"since {format_clock(moved.run.first, end)} {moved.source}"
        of_node = f"; that of its node was renewed {since}, unlike before, so it does not show that the node ran"
    others = describe_punctual(compared)
    text = f"{others}{of_node}"
    silent_node = node if is_node_silent and is_silent else ""
    restarted = evidence.restarted_server
    if restarted is not None and not (is_node_silent or is_silent):
        return diagnose_restart(f"{others}{of_node}, but {restarted.describe(end)}", own)
    if not silent_node and compared.late == 1 and is_identity_of_api_server(*compared.named_late[0]):
        # An API server renews its own lease, for which no client and no network is needed.
        text = f"{others}: the lease of an API server, which its client may have used{of_node}"
        return Diagnosis(Blame.UNKNOWN, text, (*own, Cause.NETWORK), has_late_server=True)
    requests = evidence.request_count or 0
    return Diagnosis(
        Blame.CLIENT,
        text,
        own,
        is_silent=is_silent,
        requests=requests,
        other_name=evidence.other_name,
        silent_node=silent_node,
        named_node=named_node if is_node_silent else "",
    )


def _describe_renewed_node(compared: OtherLeases) -> str:
    """Say that the lease of a holder's node was renewed, as the end of a clause about those that were on time."""
    is_any_paused = 0 < compared.paused < compared.on_time  # of which the node's need not be one
    if compared.late or is_any_paused:
        return "; the lease of its node was renewed"
    if not compared.has_own_node:
        return ", and so was that of its node"
    return "; it is that of its node" if compared.on_time == 1 else ", among them that of its node"


def _describe_rare_renewals(compared: OtherLeases) -> str:
    """Say that leases were renewed meanwhile that are renewed too rarely to be late in that time; "" if none was."""
    if not compared.due_once:
        return ""
    were, each = ("was", "") if compared.due_once == 1 else ("were", " each")
    return (
        f"{format_count(compared.due_once, 'other lease')} {were} renewed meanwhile,{each} at least every "
        f"{format_length(compared.longest_pace)}, so the API server stored writes then; {_OTHERS}"
    )


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
    return cause.evidence.endswith((WITHOUT_EVIDENCE, _OTHERS))


def describe_other_requests(evidence: SilenceEvidence) -> str:
    """Say how many other requests of its pod were answered; "" if none is known. Not all of a log are read."""
    found = evidence.other_requests
    if not found:
        return ""
    number, last = format_count(len(found), "other request"), format_clock(max(one.at for one in found), evidence.end)
    if len(found) == 1:
        return f"at least {number} of its pod was answered meanwhile, at {last}"
    return f"at least {number} of its pod were answered meanwhile, the last at {last}"


def _diagnose_outage(evidence: SilenceEvidence, late: str, *, is_silent: bool) -> Diagnosis:
    """Return the cause if all leases were late; if the holder was silent and others were answered, it is not known."""
    for_all = _FOR_ALL if evidence.hidden else ()
    if not is_silent:
        return Diagnosis(Blame.SERVER, late, (Cause.API_SERVER, Cause.NETWORK, Cause.STOPPED, *for_all))
    if answered := len(evidence.reads_of_others):
        reads = f"the API server answered at least {format_count(answered, 'read')} of this lease meanwhile"
        possible = (Cause.STOPPED, Cause.NETWORK, Cause.API_SERVER, *for_all)
        return Diagnosis(Blame.UNKNOWN, f"{late}, but {reads}", possible)
    if others := describe_other_requests(evidence):
        possible = (Cause.STOPPED, Cause.NETWORK, Cause.API_SERVER, *for_all)
        return Diagnosis(Blame.UNKNOWN, f"{late}, but {others}", possible)
    heard = "and for most of that time the log has no answered request for the lease from the holder"
    possible = (Cause.NETWORK, Cause.API_SERVER, Cause.STOPPED, *for_all)
    return Diagnosis(Blame.NETWORK, f"{late}, {heard}", possible)


def _is_node_silent(histories: ClusterHistory, node: str, start: int, end: int) -> bool | None:
    """Return whether a node was silent too, for most of a time; None if that is not known.

    Of a node whose rhythm an input does not show, only that its lease expired.
    """
    lease = histories.leases.get((NODE_LEASES, node)) if node else None
    last = find_last_heartbeat(lease) if lease is not None else None
    if lease is None or last is None:
        return None
    longest, until = lease.renewals.longest_known, histories.bounds.until or end
    if longest is None:
        longest = (lease.duration or 0) * SECOND
        is_shown = bool(longest) and last < end and until - last > longest and _are_others_heard(histories, lease, last)
        return True if is_shown and 4 * (end - max(start, last)) >= 3 * (end - start) else None
    if (lease.renewals.first or start) >= start:
        return None
    silent = lease.renewals.measure_silence_within(start, end)
    if last < end and until - last > longest:
        silent = max(silent, end - max(start, last))
    if 4 * silent >= 3 * (end - start):
        return True
    # A kubelet renews each 10 s: within a shorter time it may have nothing to say.
    return False if not silent and end - start > longest else None


def _are_others_heard(histories: ClusterHistory, lease: LeaseHistory, since: int) -> bool:
    """Return whether an input shows renewals by other nodes after an instant: many logs leave out those of all."""
    others = (one for one in histories.index.list_of_namespace(NODE_LEASES) if one is not lease)
    return any(one.renewals.count > 0 and (one.renewals.last or 0) > since for one in others)


def _describe_named_node(histories: ClusterHistory, node: str, end: int, *, is_silent: bool) -> str:
    """Say how the node fared whose name a lease has as its holder, as the end of a clause."""
    named = f"node {format_name(node)}, which the lease named as its holder,"
    last = find_last_heartbeat(histories.leases[NODE_LEASES, node])
    if not is_silent:
        return f"; {named} renewed its own"
    if last is not None and last < end:
        return f"; {named} has not renewed its own since {format_clock(last, end)}"
    return f"; {named} did not renew its own for most of it"


def _find_moved_heartbeat(histories: ClusterHistory, node: str, end: int) -> MovedHeartbeat | None:
    """Return who wrote the lease of a node in its kubelet's place by an instant."""
    lease = histories.leases.get((NODE_LEASES, node))
    moved = find_moved_heartbeat(lease) if lease is not None else None
    return moved if moved is not None and moved.run.first <= end else None


def count_failures_of_others(evidence: SilenceEvidence) -> str:
    """Say how many requests for other leases the API server could not answer then, "" of none."""
    others = (one for one in evidence.histories.leases.values() if one is not evidence.history)
    answers = (answer for one in others for answer in one.requests.refusals)
    codes = [one.code for one in answers if evidence.start < one.at <= evidence.end and one.has_failed]
    if not codes:
        return ""
    shown = " and ".join(map(str, sorted(set(codes))))
    were = "was" if len(codes) == 1 else "were"
    return f"; at least {format_count(len(codes), 'request')} for other leases {were} answered with {shown}"


def _describe_pause(compared: OtherLeases) -> str:
    """Say how many other leases missed renewals at the same time, and were renewed again before they were late."""
    number = compared.late + compared.on_time
    others = "the other lease" if number == 1 else f"{compared.paused} of {number} other leases"
    return f"{others} paused at the same time, for up to {format_length(compared.silent_for)}"


def describe_punctual(compared: OtherLeases) -> str:
    """Say how many other leases were renewed on time, and how many were not."""
    number = compared.late + compared.on_time + compared.hindered
    others = "the other lease was" if number == 1 else f"{number} other leases were"
    late = ""
    if number > compared.on_time:
        verb = "was" if compared.on_time == 1 else "were"
        others = f"{compared.on_time} of {number} other leases {_COMPARED} {verb}"
        late = _describe_those_late(compared)
    if compared.paused:
        which = "" if compared.paused == compared.on_time else f"{_name_paused(compared)} "
        pause = format_length(compared.silent_for)
        return f"{others} renewed meanwhile, {which}after up to {pause} without a renewal{late}"
    alike = f", {compared.held_alike} of them under the same holder" if compared.held_alike else ""
    return f"{others} renewed on time{alike}{late}"


def _name_paused(compared: OtherLeases) -> str:
    """Say which of the leases that were on time missed renewals first, as a subject; of many, only how many."""
    number = compared.paused
    names = f" ({format_leases(compared.named_paused, number)})" if number == len(compared.named_paused) else ""
    return f"{number} of them{names}"


def _describe_those_late(compared: OtherLeases) -> str:
    """Name which other leases were late, and were not renewed again, or say how many were hindered, as an end."""
    back, stopped, parts = compared.late - compared.stopped, compared.stopped, []
    if back:
        were = "was" if back == 1 else "were"
        parts.append(f"{format_leases(compared.named_back, back)} {were} late at the same time{_count_alike(compared)}")
    if stopped:
        were = "was" if stopped == 1 else "were"
        parts.append(f"{format_leases(compared.named_stopped, stopped)} {were} not renewed again")
    if compared.hindered:
        parts.append(f"writes of {format_count(compared.hindered, 'other')} {_HINDERED}")
        return f", and {', and '.join(parts)}"
    held = "whose holder runs" if compared.late == 1 else "all held"
    node = f", {held} on that node" if compared.node and compared.late else ""
    return f", and {', and '.join(parts)}{node}"


def _count_alike(compared: OtherLeases) -> str:
    """Say how many of those late leases were held under the same text, as the end of a clause; "" if none was."""
    number, back = compared.back_alike, compared.late - compared.stopped
    if not number:
        return ""
    which = "" if number == back else "the first one " if number == 1 else f"{number} of them "
    return f", {which}under the same holder"


def _was_written_before_renewal_was_due(history: LeaseHistory, start: int) -> bool:
    """Return whether others wrote a lease soon after its last renewal, so that their writes may have stopped the next.

    Who has missed several renewals by then had stopped for another reason.
    """
    first = min((one.at for one in history.idle_writes if one.at >= start), default=start)
    return first <= start + 2 * (history.renewals.usual or SECOND) + SECOND


def describe_other_writers(history: LeaseHistory, start: int, end: int) -> str:
    """Say who else wrote the lease in that time without renewing it, if that was often."""
    found = Counter(one.name for one in history.idle_writes if start <= one.at <= end)
    often = [(who, number) for who, number in found.most_common(3) if number >= MIN_OTHER_WRITES]
    if not often:
        return ""
    known = [format_name(who) for who, _ in often if who]
    are_all = len(known) == len(found)
    # A watch has their field managers, which clients choose.
    kind = "" if history.kind is InputKind.AUDIT_LOG else f"field manager{'' if len(known) == 1 else 's'} "
    by = f"{', by' if are_all else ', among others by'} {kind}{' and '.join(known)}" if known else ""
    return f"others wrote it at least {format_count(sum(number for _, number in often), 'time')} in that time{by}"


def describe_conflicts(number: str, history: LeaseHistory, start: int, end: int) -> str:
    """Say how many updates of a process conflicted in that time, as `at least 3`, and who else wrote the lease then."""
    others = describe_other_writers(history, start, end)
    return f"{number} of its updates conflicted with other writes (409){f': {others}' if others else ''}"


def _find_own_manager(history: LeaseHistory, start: int, end: int) -> str:
    """Return the field manager of a holder, if it often stored other writes than renewals in that time; else ""."""
    tenure = history.find_tenure_at(start)
    own = tenure.manager if tenure else ""
    number = sum(1 for one in history.idle_writes if start <= one.at <= end and one.name == own)
    return own if own and number >= MIN_OTHER_WRITES else ""


def diagnose_snapshot(histories: ClusterHistory, history: LeaseHistory, now: int) -> Diagnosis:
    """Return why an expired lease is not renewed, from a dump, which has only the last renewal of each lease."""
    spec = history.lease.spec if history.lease is not None else None
    if spec is not None and spec.strategy and spec.preferred_holder not in {None, "", spec.holder_identity}:
        asked = f"it was asked to step down for {format_name(spec.preferred_holder)}, and may have done so"
        return Diagnosis(Blame.COORDINATED, asked, (Cause.ASKED_TO_STEP_DOWN, Cause.STOPPED, *HIDDEN))
    others = histories.index.compare_silent_with_others(history, now)
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


def describe_late(others: OtherLeases) -> str:
    """Say how many other leases were late as well, or hindered; "" if most were neither."""
    if not others.most_were_late:
        return ""
    known = others.late + others.on_time + others.hindered
    number = others.late or others.hindered
    which = {1: "the other lease", 2: "both other leases"}.get(known, f"all {known} other leases")
    if others.is_sample:
        which = f"{number} of a sample of {known} other leases"
    elif number < known:
        which = f"{number} of the {known} other leases"
    if not others.late:
        return f"writes of {which} {_COMPARED} {_HINDERED} meanwhile"
    late = f"{which} {_COMPARED} {'was' if number == 1 else 'were'} late at the same time"
    if number == known:
        return late
    late = f"{late} ({format_leases(others.named_late, others.late)})"
    if others.hindered:
        return f"{late}, and writes of {format_count(others.hindered, 'other')} {_HINDERED}"
    if others.paused:
        return late  # what missed renewals, if not for as long, was not on time either
    on_time = format_leases(others.named_on_time, others.on_time)
    return f"{late}, and {on_time} {'was' if others.on_time == 1 else 'were'} not"
