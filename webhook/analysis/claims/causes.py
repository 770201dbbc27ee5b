"""Why renewals failed to come, as a cause and a sentence."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.words import count, name, writer
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.refusal import TOO_MANY_REQUESTS, UNAUTHENTICATED, By, Refusal
from webhook.analysis.history.renewals import OtherLeases, Silence, deadline_of, goes_on_for
from webhook.analysis.history.status import RELEASED_DURATION
from webhook.analysis.history.tenure import Handover, Tenure
from webhook.analysis.inputs.items import InputKind
from webhook.kubernetes.times import SECOND, length

MAX_OF_A_KIND: Final = 10
"""Findings of one kind: the latest ones."""
_MIN_OTHER_WRITES: Final = 3
WITHOUT_EVIDENCE: Final = (
    "no other lease in the input shows whether the API server was unavailable; give all of them (-A)"
)
_ONE_NODE: Final = "and all holders were on one node"
_TOO_FEW: Final = "too few to tell an outage of the API server from one of a node; give all of them (-A)"


class Blame(StrEnum):
    """The part of the system to examine for the cause."""

    SERVER = "api-server"
    NETWORK = "network"
    """A path that all clients share: a load balancer, or the network before the API server."""
    CLIENT = "client"
    CONFLICT = "conflict"
    THROTTLED = "throttled"
    """The API server answered that there were too many requests: its priority and fairness."""
    COORDINATED = "coordinated"
    """It was asked to step down."""
    REWRITTEN = "rewritten"
    """What it wrote was stored with another holder, by a mutating webhook or policy."""
    REFUSED = "refused"
    """The API server, or a webhook or policy in it, refused the renewals."""
    UNKNOWN = "unknown"


_REFUSED: Final = {
    By.RIGHTS: "refused-rights",
    By.CREDENTIALS: "refused-credentials",
    By.WEBHOOK: "refused-webhook",
    By.POLICY: "refused-policy",
    By.OTHER: "refused-other",
}
_HIDDEN: Final = (*_REFUSED.values(), "failed", "throttled", "conflict")
"""Causes that only an audit log shows."""
_FOR_ALL: Final = ("failed", "refused-webhook", "refused-policy")
"""Possible causes of a stop of all writes, where no log shows the answers."""


class Diagnosis(Struct, frozen=True):
    """Where to look, and the evidence as a clause of a sentence; `refusal` is the last one if the writes were refused.

    `left` are the causes that the input leaves, of those that the registry of claims lists: one if it excludes the
    others. `is_silent` is set if an audit log shows that no request of the holder was received.
    """

    blame: Blame
    evidence: str
    left: tuple[str, ...]
    refusal: Refusal | None = None
    is_silent: bool = False
    is_node_silent: bool | None = None
    """True if the lease of its node was not renewed either; None if the input does not show that."""
    requests: int = 0
    """Those of its pod that a log shows while it was silent."""
    is_alive: bool = False
    """True if its process renewed another lease meanwhile."""

    @property
    def is_of_its_writes(self) -> bool:
        """Whether writes of this lease failed, and not the API server as a whole; they may have been limited too."""
        return "failed" in self.left and "api-server" not in self.left


class Gap(Silence, frozen=True, kw_only=True):
    """A time for which `tenure` did not renew; then it did, or another one took over."""

    tenure: Tenure
    cause: Diagnosis


def find_late_renewals(histories: ClusterHistory, history: LeaseHistory) -> Iterator[Gap]:
    """Yield the latest renewals that came beyond the deadline of most clients, oldest first."""
    for silence in history.late_silences[-MAX_OF_A_KIND:]:
        tenure = history.tenure_of(silence)
        if tenure is None:
            continue
        is_claimed = tenure.is_claimed
        is_one_clock = not (history.renewals.has_several_clocks or tenure.touched or tenure.is_coordinated)
        if is_claimed and (not is_one_clock or _may_be_ended_by_another(history, silence)):
            continue
        if tenure.processes.is_renewed_by_another(silence.start, silence.end):
            continue
        cause = diagnose(histories, history, tenure, silence.start, silence.end)
        yield Gap(silence.start, silence.end, silence.duration, doubt=silence.doubt, tenure=tenure, cause=cause)


def _may_be_ended_by_another(history: LeaseHistory, silence: Silence) -> bool:
    """Return whether another wrote meanwhile what no input shows: that may be the renewal that the lease shows."""
    return any(silence.start < at <= silence.end for at, _ in history.requests.accepted)


def find_lost_leaders(histories: ClusterHistory, history: LeaseHistory) -> Iterator[Gap]:
    """Yield the times for which holders did not renew until the lease expired and another one took it, oldest first."""
    for before, after in pairwise(history.tenures):
        # Two writers' clocks say nothing of the time between their writes.
        is_claimed = after.taken.is_claimed or (before.renewed is not None and before.renewed.is_claimed)
        if (after.began is Handover.EXPIRED or after.is_close) and not is_claimed:
            start, end = before.last_of_identity, after.since
            cause = diagnose(histories, history, before, start, end)
            yield Gap(start, end, before.duration, tenure=before, cause=cause)


def diagnose(
    histories: ClusterHistory, history: LeaseHistory, tenure: Tenure | None, start: int, end: int
) -> Diagnosis:
    """Return why a lease was not renewed between two instants; what the API server answered counts first.

    `tenure` is its holder at `start`, the last renewal. At `end` it was renewed again, or taken. Both are in
    microseconds since 1970.
    """
    # Where a log may lack requests, it shows no more than a watch does.
    is_whole = not (histories.bounds.is_log_leaky or histories.bounds.has_hole(start, end))
    hidden = () if history.kind is InputKind.AUDIT_LOG and is_whole else _HIDDEN
    if tenure is not None and (coordinated := _diagnose_election(tenure, end, hidden)):
        return coordinated
    if (
        tenure is not None
        and tenure.processes.is_never_renewed
        and tenure.processes.taken_by is not None
        and not tenure.is_chosen
    ):
        who = f"{writer(tenure.processes.taken_by)} wrote it in, and no process has renewed it since"
        return Diagnosis(Blame.UNKNOWN, who, ("not-running", "stopped", *_HIDDEN))
    # Requests that arrived only at the end of that time were held back until then.
    held_back = end - (end - start) // 8
    all_answers = [one for one in history.requests.refusals if start <= one.at <= end]
    answers = [one for one in all_answers if one.received < held_back]
    own = [one for one in answers if tenure is None or tenure.is_by(one.writer)]
    own = _drop_late_answers(own, start + goes_on_for(history.duration))
    own = list(_drop_answers_after_outage(histories, history, own, start, end))
    # After a failure or a conflict a client tries again until it gives up: something else stopped one that did not,
    # or one that tried only once it was too late.
    deadline = deadline_of(history.duration)
    gives_up = min(start + deadline // 2, end - (end - start) // 3)
    went_on = bool(own) and own[-1].at >= gives_up and own[0].received <= start + deadline
    denied = [one for one in own if one.is_denied]
    if refused := [one for one in denied if not one.is_read] or denied:
        is_alone = went_on and not hidden
        beside = () if is_alone else _list_causes_left(histories.others_of(history, start, end), hidden)
        last = refused[-1]
        rest = (one for one in all_answers if one.received >= held_back)
        like_last = (one for one in rest if (one.code, one.by, one.is_read) == (last.code, last.by, last.is_read))
        refused += [one for one in like_last if tenure is None or tenure.is_by(one.writer)]
        return _diagnose_refusal(refused, beside)
    # A network that works again delivers at once what it held back: requests at the end do not count.
    requests = None if tenure is None else tenure.processes.count_requests(start, end - (end - start) // 4)
    unnamed = [one for one in answers if one.code == UNAUTHENTICATED and not one.writer.user]
    sources = history.requests.sources_of(tenure)
    nameless = [one for one in unnamed if one.source and one.source in sources]
    if nameless and not requests and (refusal := _refused_without_name(history, tenure, nameless)):
        return refusal
    compared = histories.others_of(history, start, end)
    if went_on and (failed := [one for one in own if one.has_failed]):
        return _diagnose_failure(failed, compared)
    conflicts = sum(1 for one in own if one.code == 409)
    if went_on and conflicts and not hidden and tenure and _is_written_by_none_else(history, tenure, start, end):
        text = f"{conflicts} of its updates conflicted (409), although nothing else was written to the lease"
        return Diagnosis(Blame.CLIENT, text, ("unanswered", "conflict"), requests=requests or 0)
    if went_on and conflicts:
        others = _other_writers(history, start, end)
        also = f" ({others})" if others else ""
        text = f"{conflicts} of its updates conflicted with other writes (409){also}"
        return Diagnosis(Blame.CONFLICT, text, ("conflict",))
    slow = max((one.took for one in own if one.code < 300 and went_on), default=0)
    silence = Silence(start, end, (tenure.duration if tenure else None) or history.duration)
    if habit := _diagnose_habit(history, tenure, silence, compared, hidden):
        return replace(habit, requests=requests or 0)
    cause = _diagnose_silence(histories, history, silence, requests, compared, hidden, slow)
    cause = _add_signs_of_life(histories, tenure, silence, cause)
    cause = _add_answers(cause, own, () if sources else unnamed)
    if own and not slow and cause.blame is Blame.CLIENT:
        return replace(cause, evidence=f"{cause.evidence}; its last write was answered with {own[-1].code}")
    return cause


def _diagnose_idle_writes(tenure: Tenure, start: int, end: int) -> Diagnosis | None:
    """Return the cause if its process went on to write the lease for most of that time, without another renewTime."""
    idle = [at for at in tenure.processes.unrenewed if start < at < end]
    if len(idle) < _MIN_OTHER_WRITES or idle[-1] < start + (end - start) // 2:
        return None
    text = f"its process stored {count(len(idle), 'write')} in that time, and left renewTime as it was"
    return Diagnosis(Blame.CLIENT, text, ("not-renewing",))


def _diagnose_habit(
    history: LeaseHistory, tenure: Tenure | None, silence: Silence, compared: OtherLeases, hidden: Sequence[str]
) -> Diagnosis | None:
    """Return the cause if a holder did not find itself in the lease, wrote it without renewing, or renews too rarely.

    How often it renews does not explain a silence of several such intervals.
    """
    if tenure is not None and tenure.asked:
        text = f"it asked for {name(tenure.asked)}, and {name(tenure.holder)} was stored"
        return Diagnosis(Blame.REWRITTEN, text, ("rewritten", "stopped", "api-server", "network", *hidden))
    if tenure is not None and (idle := _diagnose_idle_writes(tenure, silence.start, silence.end)):
        return idle
    usual, duration = history.renewals.usual, silence.duration
    if not usual or not duration or duration <= RELEASED_DURATION:
        return None
    is_rare = usual >= duration * SECOND and silence.length <= 2 * usual + SECOND
    if is_rare and not _describe_late(compared):
        return Diagnosis(
            Blame.CLIENT, f"it renews every {length(usual)}, and the lease lasts {duration} s", ("interval",)
        )
    return None


def _is_written_by_none_else(history: LeaseHistory, tenure: Tenure, start: int, end: int) -> bool:
    """Return whether a log that has all writes has none by another between the last renewal of a holder and `end`.

    A write that conflicts then is based on a state before that renewal, of which the answer may not have arrived.
    """
    is_touched = tenure.touched is not None and start <= tenure.touched[0] < end
    times = (*(at for at, _ in history.others), *(at for at, _ in history.requests.accepted))
    return not is_touched and not any(start <= at < end for at in times)


def _drop_late_answers(own: Sequence[Refusal], gives_up: int) -> list[Refusal]:
    """Leave out answers from the first one of a kind that began after a holder must have given up.

    If its writes had failed before, that is why it gave up.
    """
    early = [one for one in own if one.received <= gives_up]
    kinds = {"", *map(_kind_of, early)}
    first = next((one for one in own if one.received > gives_up and _kind_of(one) not in kinds), None)
    if first is None or not any(one.has_failed for one in early):
        return list(own)
    return [one for one in own if one.at < first.at]


def _drop_answers_after_outage(
    histories: ClusterHistory, history: LeaseHistory, own: Sequence[Refusal], start: int, end: int
) -> Sequence[Refusal]:
    """Leave out answers that all came once a holder must have given up, if the other leases were late as well.

    An API server that comes back may refuse before it knows the rights.
    """
    is_early = any(one.received <= start + goes_on_for(history.duration) for one in own)
    return own if not own or is_early or not _describe_late(histories.others_of(history, start, end)) else ()


def _kind_of(answer: Refusal) -> str:
    """Return the cause that an answer shows, "" if it shows none."""
    if answer.is_denied:
        return _REFUSED[answer.by]
    return next(_answered_with([answer]), "")


def _add_answers(cause: Diagnosis, own: Sequence[Refusal], unnamed: Sequence[Refusal]) -> Diagnosis:
    """Return the cause of a silence with what else is left by the answers to a holder, and to writers without a name.

    `unnamed` are those that may be its own.
    """
    seen = tuple(one for one in _answered_with(own) if one not in cause.left)
    cause = replace(cause, left=(*cause.left, *seen))
    if not unnamed or "refused-credentials" in cause.left:
        return cause
    doubt = f"{count(len(unnamed), 'request')} without accepted credentials, answered with 401, may be its own"
    return replace(cause, evidence=f"{cause.evidence}; {doubt}", left=(*cause.left, "refused-credentials"))


def _answered_with(own: Sequence[Refusal]) -> Iterator[str]:
    """Yield the causes for which a holder may have given up, by the answers to what it had tried before."""
    if any(one.has_failed and one.code != TOO_MANY_REQUESTS for one in own):
        yield "failed"
    if any(one.code == TOO_MANY_REQUESTS for one in own):
        yield "throttled"
    if any(one.code == 409 for one in own):
        yield "conflict"


def _diagnose_election(tenure: Tenure, end: int, hidden: Sequence[str]) -> Diagnosis | None:
    """Return the cause if the holder was asked to step down by then, or was chosen and has not renewed since."""
    if tenure.is_chosen and not tenure.processes.renewals:
        return Diagnosis(
            Blame.UNKNOWN, "an API server chose it, and it has not renewed since", ("not-taken-up", "stopped", *_HIDDEN)
        )
    request = tenure.step_down
    if not tenure.is_coordinated or request.asked is None or request.asked.earliest > end:
        return None  # only electors of a coordinated election read what they are asked
    by = f" by {writer(request.writer)}" if request.writer and request.writer.user else ""
    text = f"it was asked to step down for {name(request.successor)}{by}"
    return Diagnosis(Blame.COORDINATED, text, ("asked-to-step-down", "stopped", *hidden))


def _list_causes_left(compared: OtherLeases, hidden: Sequence[str]) -> tuple[str, ...]:
    """Return the causes that are left beside what the answers show."""
    return ("stopped", "api-server", *(() if compared.on_time else ("network",)), *hidden)


def _diagnose_refusal(refused: Sequence[Refusal], beside: Sequence[str]) -> Diagnosis:
    # Who cannot renew gives up, and may release the lease then, which is refused as well.
    last = ([one for one in refused if not one.is_release] or refused)[-1]
    message = f", the last one: {last.message}" if last.message else ""
    by = _REFUSED[last.by]
    left = (by, *(one for one in beside if one != by))
    return Diagnosis(Blame.REFUSED, f"{_count_requests(refused)} answered with {last.code}{message}", left, last)


def _count_requests(refused: Sequence[Refusal]) -> str:
    """Return `3 writes`, `3 reads`, or `3 requests` if some are reads and some are not."""
    kinds = {one.is_read for one in refused}
    if len(kinds) > 1:
        return count(len(refused), "request")
    return count(len(refused), "read" if True in kinds else "write")


def _diagnose_silence(
    histories: ClusterHistory,
    history: LeaseHistory,
    silence: Silence,
    requests: int | None,
    compared: OtherLeases,
    hidden: Sequence[str],
    slow: int,
) -> Diagnosis:
    """Return the cause of a silence in which nothing was refused; `slow` is how long its slowest answer took.

    `hidden` are causes that the input does not show.
    """
    start, end = silence.start, silence.end
    is_silent = requests == 0 and history.kind is InputKind.AUDIT_LOG and not histories.bounds.is_log_leaky
    own = ("stopped", "api-server", *hidden)
    if late := _describe_late(compared):
        if not compared.are_enough:
            why = f"{late}, {_ONE_NODE if compared.is_one_node else _TOO_FEW}"
            return Diagnosis(Blame.UNKNOWN, why, (*own, "network"))
        return _diagnose_outage(history, late, silence, hidden, is_silent=is_silent and not slow)
    if slow:
        return Diagnosis(Blame.SERVER, f"it took up to {length(slow)} to answer a renewal", ("api-server", "failed"))
    others = _other_writers(history, start, end)
    # A log without holes has each conflict of a process that it knows.
    if others and not is_silent and (hidden or requests is None):
        shown = "" if history.kind is InputKind.AUDIT_LOG else "; the audit log shows it"
        if manager := _find_own_manager(history, start, end):
            text = (
                f"field manager {name(manager)}, as in its renewals, stored writes that left renewTime as it was: its "
                f"process may have written the lease without renewing it, or another client uses that name{shown}"
            )
            return Diagnosis(Blame.UNKNOWN, text, ("not-renewing", *dict.fromkeys((*own, "conflict"))))
        return Diagnosis(Blame.UNKNOWN, f"{others}, so its updates may have conflicted{shown}", own)
    if not compared.is_known:
        return Diagnosis(Blame.UNKNOWN, WITHOUT_EVIDENCE, (*own, "network"))
    heard = f", and the log shows {count(requests, 'request')} from its pod" if requests else ""
    node = _is_node_silent(histories, history, start, end) if is_silent else None
    if node is not None:
        heard += ", and its node renewed nothing" if node else ", and so was that of its node"
    evidence = f"{_describe_punctual(compared)}{heard}"
    return Diagnosis(Blame.CLIENT, evidence, own, is_silent=is_silent, is_node_silent=node, requests=requests or 0)


def _add_signs_of_life(
    histories: ClusterHistory, tenure: Tenure | None, silence: Silence, cause: Diagnosis
) -> Diagnosis:
    """Return the cause of a silence, with the lease that the silent process renewed meanwhile."""
    other = _renewed_meanwhile(histories, tenure, silence) if tenure and cause.is_silent else None
    if other is None:
        return cause
    return replace(cause, evidence=f"it renewed {name(other.name)} meanwhile", is_alive=True)


def _renewed_meanwhile(histories: ClusterHistory, tenure: Tenure, silence: Silence) -> LeaseHistory | None:
    """Return another lease of the same namespace that the process of a holder renewed while it was silent."""
    own, start, end = tenure.processes.own, silence.start, silence.end
    for other, held in (
        histories.tenures_of(tenure.processes.namespace, own.user) if own is not None and own.pod else ()
    ):
        is_own = held is not tenure and held.processes.own is not None and held.processes.own.is_same(own)
        if is_own and held.since < end and held.last_renewal > start + (end - start) // 4:
            return other
    return None


def _diagnose_outage(
    history: LeaseHistory, late: str, silence: Silence, hidden: Sequence[str], *, is_silent: bool
) -> Diagnosis:
    """Return the cause if all leases were late; if the holder was silent and others were answered, it is not known."""
    for_all = _FOR_ALL if hidden else ()
    if not is_silent:
        return Diagnosis(Blame.SERVER, late, ("api-server", "network", "stopped", *for_all))
    start, end = silence.start, silence.end
    if answered := sum(1 for one in history.requests.answered if start < one <= end - (end - start) // 4):
        reads = f"the API server answered {count(answered, 'read')} of this lease meanwhile"
        left = ("stopped", "network", "api-server", *for_all)
        return Diagnosis(Blame.UNKNOWN, f"{late}, but {reads}", left)
    heard = "and the log shows no request from the holder until the end of that time"
    left = ("network", "api-server", "stopped", *for_all)
    return Diagnosis(Blame.NETWORK, f"{late}, {heard}", left)


def _is_node_silent(histories: ClusterHistory, history: LeaseHistory, start: int, end: int) -> bool | None:
    """Return whether the node of the one that held a lease at an instant was silent too; None if that is not known."""
    node = history.find_node_at(start)
    lease = histories.leases.get((NODE_LEASES, node)) if node else None
    longest = lease.renewals.longest_usual if lease else None
    if lease is None or longest is None or (lease.renewals.first or start) >= start:
        return None
    last = lease.renewals.last or start
    silent = lease.renewals.silent_within(start, end)
    if last < end and (histories.bounds.until or end) - last > longest:
        silent = max(silent, end - max(start, last))
    if 4 * silent >= 3 * (end - start):
        return True
    # A kubelet renews each 10 s: within a shorter time it may have nothing to say.
    return False if not silent and end - start > longest else None


def _refused_without_name(
    history: LeaseHistory, tenure: Tenure | None, nameless: Sequence[Refusal]
) -> Diagnosis | None:
    """Return the cause if requests from the address and program of a silent holder were refused with 401.

    Only who believes to lead writes before it has read; who waits reads, too, from an address that several share.
    """
    is_alone = history.requests.is_only_source_of(tenure, nameless[-1].source)
    if not is_alone and all(one.is_read for one in nameless):
        return None
    doubt = "" if is_alone else ", which it shares with others"
    text = (
        f"{_count_requests(nameless)} answered with 401 (Unauthorized), from its address and program{doubt}, and none "
        "by its name"
    )
    left = ("refused-credentials",) if is_alone else ("refused-credentials", "stopped")
    return Diagnosis(Blame.REFUSED, text, left, nameless[-1])


def _diagnose_failure(failed: Sequence[Refusal], compared: OtherLeases) -> Diagnosis:
    """Return the cause if the API server was unable to store writes, or answered that there were too many requests."""
    limited = [one for one in failed if one.code == TOO_MANY_REQUESTS]
    others = [one for one in failed if one.code != TOO_MANY_REQUESTS]
    text = f"{count(len(limited), 'request')} answered with {TOO_MANY_REQUESTS} (too many requests)"
    if not others:
        return Diagnosis(Blame.THROTTLED, text, ("throttled",), limited[-1])
    cause = _diagnose_unstored(others, compared)
    if not limited:
        return cause
    return replace(cause, evidence=f"{cause.evidence}; and {text}", left=(*cause.left, "throttled"))


def _diagnose_unstored(failed: Sequence[Refusal], compared: OtherLeases) -> Diagnosis:
    """Return the cause if the API server was unable to store writes: of this lease only, or also of others."""
    last, late = failed[-1], _describe_late(compared)
    codes = " and ".join(map(str, sorted({one.code for one in failed})))
    text = f"{count(len(failed), 'request')} answered with {codes}"
    if last.has_failed_at_once and last.message:
        text += f", the last one: {last.message}"
    if all(one.failed_webhook for one in failed):
        return Diagnosis(Blame.SERVER, text, ("failed",), last)
    if late or not compared.on_time:
        return Diagnosis(Blame.SERVER, f"{text}; {late}" if late else text, ("failed", "api-server"), last)
    read = next((one for one in reversed(failed) if one.is_read), None)
    path = "so not the API server as a whole: a webhook that it calls for this lease, or the one API server in use"
    if read is not None:
        path = "so not all API servers; reads failed as well, which pass no webhook: the one in use, or its etcd"
    return Diagnosis(Blame.SERVER, f"{text}; {_describe_punctual(compared)}, {path}", ("failed",), read or last)


def _describe_punctual(compared: OtherLeases) -> str:
    others = "the other lease was" if compared.on_time == 1 else f"{compared.on_time} other leases were"
    if compared.silent:
        return f"{others} renewed again meanwhile, after up to {length(compared.silent)} without a renewal"
    return f"{others} renewed on time"


def _other_writers(history: LeaseHistory, start: int, end: int) -> str:
    """Say who else wrote the lease in that time without renewing it, if that was often."""
    found = Counter(who for at, who in history.others if start <= at <= end)
    often = [(who, number) for who, number in found.most_common(3) if number >= _MIN_OTHER_WRITES]
    if not often:
        return ""
    known = [name(who) for who, _ in often if who]
    by = f", among others by {' and '.join(known)}" if known else ""
    return f"others wrote it at least {count(sum(number for _, number in often), 'time')} in that time{by}"


def _find_own_manager(history: LeaseHistory, start: int, end: int) -> str:
    """Return the field manager of a holder, if it often stored other writes than renewals in that time; else ""."""
    tenure = history.find_tenure_at(start)
    own = tenure.manager if tenure else ""
    number = sum(1 for at, who in history.others if start <= at <= end and who == own)
    return own if own and number >= _MIN_OTHER_WRITES else ""


def diagnose_snapshot(histories: ClusterHistory, history: LeaseHistory, now: int) -> Diagnosis:
    """Return why an expired lease is not renewed, from a dump, which has only the last renewal of each lease."""
    others = histories.stopped_with(history, now)
    own = ("stopped", "api-server", *_HIDDEN)
    if not others.is_known:
        return Diagnosis(Blame.UNKNOWN, WITHOUT_EVIDENCE, (*own, "network"))
    if others.all_were_late:
        stopped = f"{count(others.late, 'other lease')} stopped at the same time"
        if histories.bounds.may_be_older:
            return Diagnosis(Blame.UNKNOWN, f"{stopped}, as if the list was taken then (--now)", (*own, "network"))
        if others.are_enough:
            return Diagnosis(Blame.SERVER, stopped, ("api-server", "network", "stopped", *_FOR_ALL))
        return Diagnosis(Blame.UNKNOWN, f"{stopped}, {_TOO_FEW}", (*own, "network"))
    return Diagnosis(Blame.CLIENT, f"{count(others.on_time, 'other lease')} went on being renewed after that", own)


_SENTENCES: Final = {
    Blame.SERVER: "The API server was slow or unavailable",
    Blame.NETWORK: "Clients did not reach the API server",
    Blame.CONFLICT: "Its updates conflicted",
    Blame.REFUSED: "Its writes were refused",
    Blame.THROTTLED: "The API server throttled it (priority and fairness)",
    Blame.COORDINATED: "A coordinated election",
}
_OF_ALL: Final = {
    Blame.SERVER: "The API server was slow, unavailable or not reached",
    Blame.NETWORK: _SENTENCES[Blame.NETWORK],
}
"""The cause that stopped all leases."""
_STOPPED_THEN: Final = "its process stopped by itself"
_SILENT: Final = "It sent no renewal (killed, paused, blocked, cut off), or its API server hung"
_NODE_SILENT: Final = "Its node was silent as well"
_OWN_SIDE: Final = "It stopped renewing (killed, paused, blocked, cut off), or its API server hung"
_HIDDEN_SIDE: Final = "It stopped, its writes were refused or failed, or its API server hung"
_HABITS: Final = {("interval",): "Too rarely", ("not-renewing",): "It wrote the lease and did not renew it"}
_UNANSWERED: Final = (
    "It may not have received the answer to its last renewal (network, proxy), or wrote from an old copy"
)


def describe_cause(cause: Diagnosis) -> str:
    """Return a cause as one sentence about a holder, which names every cause that is left."""
    if cause.blame is Blame.CLIENT and cause.left in _HABITS:
        return f"{_HABITS[cause.left]}: {cause.evidence}."
    if cause.blame is Blame.CLIENT and cause.is_alive:
        return f"Its process ran, and made no request for the lease: {cause.evidence}."
    if cause.blame is Blame.CLIENT and cause.is_silent:
        return f"{_NODE_SILENT if cause.is_node_silent else _SILENT}: {cause.evidence}."
    if cause.blame is Blame.CLIENT and "unanswered" in cause.left:
        return f"{_UNANSWERED}: {cause.evidence}."
    if cause.blame is Blame.CLIENT and "refused-rights" in cause.left:
        return f"{_HIDDEN_SIDE}: {cause.evidence}."
    if cause.blame is Blame.CLIENT:
        return f"{_OWN_SIDE}: {cause.evidence}."
    if cause.blame is Blame.UNKNOWN:
        return f"Why is not known: {cause.evidence}."
    if cause.blame is Blame.COORDINATED:
        return f"{_SENTENCES[cause.blame]}: {cause.evidence}, and did, or stopped then."
    if cause.blame is Blame.REWRITTEN:
        return f"It may not have found itself as the holder, or stopped: {cause.evidence}."
    return f"{_describe_outside(cause)}: {cause.evidence}.{_describe_end(cause)}"


def _describe_end(cause: Diagnosis) -> str:
    """Say what else may have ended a holder whose writes were refused."""
    if cause.blame is not Blame.REFUSED:
        return ""
    if cause.refusal is not None and cause.refusal.is_release:
        return " It asked to give the lease up, which then had to expire."
    # A holder that did not go on until it must have given up may have had another reason.
    return " It may have stopped as well." if "stopped" in cause.left else ""


def _describe_outside(cause: Diagnosis) -> str:
    """Say what outside of a holder's process stopped it."""
    refusal = cause.refusal
    if refusal and not refusal.writer.user:
        return "Its requests may have been refused"
    has_failed_at_once = refusal is not None and refusal.has_failed_at_once
    if cause.blame is Blame.SERVER and (cause.is_of_its_writes or has_failed_at_once):
        return "The API server could not store its writes"
    if cause.blame is Blame.REFUSED and refusal is not None and refusal.is_release:
        return "Its release was refused"
    if cause.blame is Blame.REFUSED:
        read = refusal is not None and refusal.is_read
        return "Its reads were refused, so it did not get to write" if read else _SENTENCES[cause.blame]
    if "network" not in cause.left:
        return _SENTENCES[cause.blame]
    *most, last = _OF_ALL[cause.blame], *_beside_an_outage(cause)
    return f"{', '.join(most)}, or {last}"


def _beside_an_outage(cause: Diagnosis) -> Iterator[str]:
    """Yield what else may have stopped a holder when all were late."""
    if cause.blame is Blame.NETWORK:
        yield from ("it was down", "the log lacks their requests")
    if "failed" in cause.left:
        yield "a webhook or policy stopped all writes"
    yield _STOPPED_THEN


def _describe_late(company: OtherLeases) -> str:
    if not company.all_were_late:
        return ""
    known = company.late + company.on_time
    which = {1: "the other lease", 2: "both other leases"}.get(known, f"all {known} other leases")
    if company.on_time:
        which = f"{company.late} of the {known} other leases"
    if company.is_sample:
        which = f"{company.late} of a sample of {known} other leases"
    verb = "was" if known == 1 else "were"
    return f"{which} with regular renewals {verb} late at the same time"
