"""Claims about a process that took a free lease long after it could have."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.claims.advice.on_writers import advise_on_late_taker
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.evidence.contenders.askers import SHORTEST, join_names
from webhook.analysis.claims.evidence.pods.loops import name_taker
from webhook.analysis.claims.evidence.pods.pods_while_free import find_refused_pods
from webhook.analysis.claims.evidence.pods.unasking_pods import find_bound
from webhook.analysis.claims.evidence.silent_holders.other_leases import describe_conflicts
from webhook.analysis.claims.findings.lease_claim import make_claim, measure_clocks_of_both
from webhook.analysis.claims.handover_clauses import describe_edit
from webhook.analysis.claims.handovers import find_duration_edit, is_used_as_lock
from webhook.analysis.claims.words import (
    describe_user,
    describe_writer,
    format_clock,
    format_count,
    format_name,
    format_times_after,
)
from webhook.analysis.heartbeats import is_named_for_heartbeats
from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.audit_log.refusal import UNAUTHENTICATED, Refusal, RefusedBy
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import PodAct, PodRequest, Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY
from webhook.findings import Severity
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import MINUTE, SECOND, format_length

_LEAST_PAUSES: Final = 2
_AT_ONCE: Final = 5 * SECOND
"""Within how long the pods of a workload are deleted that are deleted together."""
_BOUND_BEFORE: Final = MINUTE // 2
_PATIENCE: Final = 5 * SECOND
"""The most that a client waits beyond the duration: two retry periods of client-go, with jitter."""


def find_late_takers(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for the latest holder that took an expired or released lease long after it could have.

    No one waits for a heartbeat. Of a lease that may last longer than was asked for, this is not known.
    """
    if is_named_for_heartbeats(history.namespace, history.name):
        return
    late = [
        one
        for before, one in pairwise(history.tenures)
        if _measure_lateness(history, before, one) is not None and not _has_duration_edit(history, before, one)
    ]
    if is_used_as_lock(history.tenures):
        late = [one for one in late if _has_waited(one)]
    if _is_mostly_free(history, late):
        return  # no one waits for a lock between two tasks
    previous = {id(after): before for before, after in pairwise(history.tenures)}
    for after in late[-1:]:
        yield _claim_late_taker(histories, history, previous[id(after)], after, now)


def _is_mostly_free(history: LeaseHistory, late: Sequence[Tenure]) -> bool:
    """Return whether each holder gave the lease up, and it was then free for longer than that one had held it.

    So it is with a lock of tasks that are started from time to time, as by a CronJob: a leader holds its lease.
    """
    pairs = list(pairwise(history.tenures))
    are_all_late = len(late) == len(pairs) >= _LEAST_PAUSES
    return are_all_late and all(
        after.began is Handover.RELEASED
        and before.until is not None
        and before.until - before.since < after.since - before.until
        and before.removal.is_own is not False
        for before, after in pairs
    )


def _has_waited(after: Tenure) -> bool:
    """Return whether a log shows that a process asked for a lease long before it took it, or may have.

    Who asks for a lock only when it has a task finds that at rest.
    """
    asked = after.requests_before
    return asked.since is not None and (asked.is_cut or after.since - min(asked.times, default=0) > SHORTEST)


def _has_duration_edit(history: LeaseHistory, before: Tenure, after: Tenure) -> bool:
    """Return whether the duration was changed meanwhile: then it is not known when the lease could be taken."""
    return before.inherited is not None or find_duration_edit(history, before, after) is not None


def _find_last_edit(history: LeaseHistory, before: Tenure, after: Tenure) -> LeaseEvent | None:
    """Return the latest change of the spec since the last renewal of an expired lease.

    An elector of client-go waits for the whole duration after each (`observedTime` of its `tools/leaderelection`); one
    that finds no holder does not.
    """
    edits = (one for one in reversed(history.edits) if before.kept_until < one.at <= after.since)
    return next(edits, None) if after.began is Handover.EXPIRED else None


def _measure_lateness(history: LeaseHistory, before: Tenure, after: Tenure) -> int | None:
    """Return how long after it was free a lease was taken, at least, if that was longer than followers take.

    They ask about as often as a holder renews.
    """
    if not before.duration or before.has_unseen_renewals or after.is_chosen:
        return None
    if not after.beginning.write.is_dated_by_a_server or after.holder == before.holder:
        return None
    if after.processes.is_own_taking is False:
        return None  # another one wrote it in
    if after.began is Handover.RELEASED and name_taker(after) == name_taker(before) != "":
        return None  # the pod that had released it takes it under its next name
    late, patience = 0, max(SHORTEST, 2 * (history.renewals.usual or 0))
    extension = before.last_extension
    if after.began is Handover.EXPIRED and extension.is_dated_by_a_server:
        # Who waits does so from when it saw the lease renewed: of a write that failed, that may be much later.
        seen_at = extension.shown_at if extension.has_failed else extension.latest or extension.at
        if seen_at is None:
            return None
        late = after.beginning.write.earliest - seen_at - before.duration * SECOND
        patience = max(patience, before.duration * SECOND)
    elif after.began is Handover.RELEASED and before.ended is not None and before.ended.is_dated_by_a_server:
        late = after.beginning.write.earliest - (before.ended.latest or before.ended.at)
    # By API servers whose clocks differ it need not have been late.
    by_holders = late + min(0, measure_clocks_of_both(history, before, after))
    return late if by_holders > patience else None


class _LateTakeover(Struct, frozen=True, dict=True):
    """A holder that took a lease late: it was free since `since`, in microseconds since 1970, or a moment before.

    `is_logged`: an audit log shows all that was asked of the lease meanwhile, and by which process.
    """

    history: LeaseHistory
    after: Tenure
    since: int
    now: int
    is_logged: bool
    has_hole: bool = False
    """The log has no request at all for a part of that time."""
    binding: PodRequest | None = None
    """The request by which its pod got a node; None if the log does not show it."""
    bound_at: int | None = None
    """The time at which its pod got a node meanwhile; None if it had one before, or if the log does not show that."""
    gone: Sequence[str] = ()
    """The other pods that had asked for the lease, if all of them were deleted by then, or just after."""

    @property
    def taker(self) -> str:
        """The text of the holder."""
        return format_name(self.after.holder)

    @property
    def scheduler(self) -> Writer | None:
        """The scheduler that gave its pod a node; None if it is that of Kubernetes, or not known."""
        writer = self.binding.writer if self.binding is not None else Writer()
        return writer if UserInfo(writer.user).service_account is not None else None

    @property
    def came_late(self) -> bool:
        """Whether its pod had no node for most of that time."""
        return self.bound_at is not None and self.bound_at - self.since > (self.after.since - self.since) // 2

    @cached_property
    def refused(self) -> Sequence[Refusal]:
        """Requests for the lease that were refused meanwhile."""
        refusals = self.history.requests.refusals
        return [one for one in refusals if self.since < one.at < self.after.since and one.is_denied]

    def describe_refused(self) -> str:
        """Return the end of a clause: how many requests of its own process were refused meanwhile, "" of none."""
        own = self.after.processes.own
        refused = [one for one in self.refused if own is not None and own.is_same(one.writer)]
        if own is None or not refused:
            return ""
        number = f"{self.least}{format_count(len(refused), 'request')}"
        were = "was" if len(refused) == 1 else "were"
        code = _describe_code(len(refused), refused[-1].code)
        return f"; {number} by {describe_writer(own)} {were} refused in that time{code}"

    def describe_unauthenticated(self) -> str:
        """Return a clause about requests that may be its own: from its address and program, without a name."""
        requests = self.history.requests
        sources = requests.find_sources(self.after)
        found = [one for one in self.nameless if one.source in sources]
        if not found:
            return ""
        is_shared = not all(requests.is_only_source_of(self.after, one.source) for one in found)
        shared = ", which others use, too," if is_shared else ""
        number = f"{self.least}{format_count(len(found), 'request')}"
        were = "was" if len(found) == 1 else "were"
        return f"{number} from its address and program{shared} {were} answered with {UNAUTHENTICATED} in that time"

    @property
    def least(self) -> str:
        """`at least ` before a number of answers, if some of that time may be remembered no longer, else ""."""
        own = self.after.processes.own or Writer()
        return "at least " if self.history.requests.has_forgotten_since(self.since, own.user, "") else ""

    @cached_property
    def nameless(self) -> Sequence[Refusal]:
        """Refused requests without accepted credentials, which may be its own."""
        return [one for one in self.refused if one.by is RefusedBy.CREDENTIALS and not one.writer.user]

    @cached_property
    def _answers(self) -> Sequence[Refusal]:
        """What its own requests were answered meanwhile, unless they were accepted."""
        own, refusals = self.after.processes.own, self.history.requests.refusals
        answers = (one for one in refusals if own is not None and own.is_same(one.writer))
        return [one for one in answers if self.since < one.at < self.after.since]

    @property
    def conflicts(self) -> int:
        """How many of its own writes conflicted meanwhile."""
        return sum(1 for one in self._answers if one.has_conflicted)

    @property
    def failed(self) -> Sequence[Refusal]:
        """Its own requests that the API server was unable to answer meanwhile, or of which it had too many."""
        return [one for one in self._answers if one.has_failed]


class _Explanation(Struct, frozen=True):
    """Why it was late, as a clause and as claims name it; `silent` is from when to when it asked for nothing."""

    how: str
    text: str
    silent: tuple[int, int] | None = None


def _claim_late_taker(
    histories: ClusterHistory, history: LeaseHistory, before: Tenure, after: Tenure, now: int
) -> Claim:
    lateness = _measure_lateness(history, before, after)
    assert lateness is not None
    since, bounds = after.since - lateness, histories.bounds
    own, other = after.processes.own, after.processes.doubtful_taker
    is_heard = own is not None and own.user in history.requests.users and not history.requests.is_watched
    is_whole = is_heard and not histories.lacks_requests(history) and not bounds.has_hole(since, after.since)
    has_waited = after.requests_before.since is not None and after.requests_before.since <= since
    # Of tokens that name no pod, several processes may have one user.
    is_logged = (
        after.beginning.write.is_logged and is_whole and has_waited and own is not None and bool(own.uid or own.pod)
    )
    is_logged = is_logged and other is None  # else it is not known whose requests these were
    binding = _find_binding(histories, after, since)
    late = _LateTakeover(
        history,
        after,
        since=since,
        now=now,
        is_logged=is_logged,
        has_hole=bounds.has_hole(since, after.since),
        binding=binding,
        bound_at=binding.at if binding is not None and binding.at > since else None,
        gone=_find_gone_askers(histories, history, before, after, since),
    )
    # A process whose own writes conflict meanwhile does not wait.
    edit = None if late.conflicts else _find_last_edit(history, before, after)
    duration, takeable_from = (before.duration or 0) * SECOND, since
    if edit is not None:
        takeable_from = max(since, edit.at + duration) if edit.is_dated else after.since
        late = replace(late, since=takeable_from)
    found = (explain(late) for explain in _EXPLANATIONS)
    why = next((one for one in found if one), None) or _explain_nothing(late)
    text = why.text
    if edit is not None and takeable_from > since:
        edited = (
            f"it was changed meanwhile, the last time at {format_clock(edit.at, now)} "
            f"({describe_edit(edit)}): "
            "an elector of client-go waits for the whole lease duration after each change"
        )
        is_enough = after.since - takeable_from <= duration
        text = edited if is_enough else f"{edited}; of the time since {format_clock(takeable_from, now)}: {text}"
        why = _Explanation("unknown", text) if is_enough else why
    text += late.describe_refused()
    is_released = after.began is Handover.RELEASED
    ended = before.ended if is_released and before.ended else before.last_extension
    free_at = ended.at if is_released else before.kept_until + (before.duration or 0) * SECOND
    bound = "" if after.beginning.write.is_exact and ended.is_exact else "at least "
    freed = "it was freed" if is_released else "it had expired"
    took = f"{describe_writer(other)} wrote {late.taker} into it" if other else f"{late.taker} took it"
    message = f"{took} {bound}{format_length(lateness)} after {freed} at {format_clock(free_at, now)}: {text}"
    is_unheard = why.how == "silent" and not after.requests_before.has_asked_earlier
    refused = [one.at for one in find_refused_pods(histories, history, now) if one.at <= after.since]
    advice = advise_on_late_taker(
        history,
        after,
        has_run=not late.came_late,
        refused_until=format_clock(max(refused), now) if refused else "",
        is_only=bool(late.gone),
        is_unheard=is_unheard,
        scheduler=late.scheduler,
    )
    return make_claim(
        history,
        "taken-late",
        Severity.WARNING,
        message,
        advice,
        over_since=after.since,
        arguments={
            "identity": after.holder,
            "how": why.how,
            "from": since,
            "to": after.since,
            "earliest": why.silent[0] if why.silent else None,
            "latest": why.silent[1] if why.silent else None,
        },
    )


def _explain_first_request(late: _LateTakeover) -> _Explanation | None:
    """Explain by a taker that asked for the lease for the first time about as long before as that lasts."""
    newcomer = _find_first_request(late.after, late.since) if late.is_logged else None
    if newcomer is None or late.nameless or not _has_waited_once(late.after, newcomer):
        return None
    text = (
        f"the log has no answered request for it by its pod {_describe_absence(late, late.since, newcomer)}; "
        "an elector of client-go that has not read it before, or not for a long time, waits for the whole lease "
        "duration"
    )
    return _Explanation("silent", text, (late.since, newcomer))


def _describe_absence(late: _LateTakeover, since: int, until: int) -> str:
    """Say from when until when a taker made no request: one that was heard before may have run then."""
    start = (
        f"from {format_clock(since, late.now)} "
        if since > late.since or late.after.requests_before.has_asked_earlier
        else ""
    )
    return f"{start}until {format_clock(until, late.now)}"


def _explain_nameless(late: _LateTakeover) -> _Explanation | None:
    """Explain by requests without accepted credentials while it was silent."""
    silent = _find_silence(late.after, late.since) if late.is_logged else None
    if silent is None or not any(silent[0] <= one.received <= silent[1] for one in late.nameless):
        return None
    text = (
        f"no request by its name was answered from {format_clock(silent[0], late.now)} "
        f"until {format_clock(silent[1], late.now)}; some of {format_count(len(late.nameless), 'request')} "
        f"without accepted credentials, answered with {UNAUTHENTICATED}, may be its own"
    )
    return _Explanation("unknown", text)


def _explain_binding(late: _LateTakeover) -> _Explanation | None:
    """Explain by a taker whose pod got a node only then: it came late, and did not wait."""
    silent = _find_silence(late.after, late.since) if late.is_logged and late.came_late else None
    if late.bound_at is None or silent is None or late.bound_at > silent[1]:
        return None
    return _Explanation("silent", f"{_describe_binding(late)}{_describe_gone(late)}", silent)


def _describe_gone(late: _LateTakeover) -> str:
    """Return the end of a clause: that no pod was left that had asked for the lease; "" if one may have been."""
    if not late.gone:
        return ""
    which, were = ("pods", "were") if len(late.gone) > 1 else ("pod", "was")
    names = join_names([format_name(one) for one in late.gone])
    return f"; {which} {names}, which had asked for it, {were} deleted, too"


def _describe_binding(late: _LateTakeover) -> str:
    """Say when its pod got a node, and from which scheduler, if that is not the one of Kubernetes."""
    assert late.bound_at is not None
    by = f" from {describe_user(late.scheduler)}" if late.scheduler else ""
    return f"its pod got a node only at {format_clock(late.bound_at, late.now)}{by}, and did not run before"


def _explain_silence(late: _LateTakeover) -> _Explanation | None:
    """Explain by a taker that made no request for most of the time."""
    silent = _find_silence(late.after, late.since) if late.is_logged else None
    if silent is None or silent[1] - silent[0] <= (late.after.since - late.since) // 2:
        return None
    # A pod that had asked before had one, and may have run on.
    is_new = late.bound_at is not None or not late.after.requests_before.has_asked_earlier
    bound_at = late.binding.at if late.binding is not None and is_new else None
    got = f", which got a node at {format_clock(bound_at, late.now)}," if bound_at is not None else ""
    text = f"the log has no answered request for it by its pod{got} {_describe_absence(late, *silent)}"
    return _Explanation("silent", text, silent)


def _explain_conflicts(late: _LateTakeover) -> _Explanation | None:
    """Explain by writes of the taker that came from a state that others had changed by then."""
    if not late.is_logged or not late.conflicts:
        return None
    text = describe_conflicts(f"{late.least}{late.conflicts}", late.history, late.since, late.after.since)
    return _Explanation("asking", text)


def _explain_failures(late: _LateTakeover) -> _Explanation | None:
    """Explain by requests of the taker that the API server did not answer, or writes that it did not store."""
    if not late.is_logged or not late.failed:
        return None
    last = late.failed[-1]
    message = f": {last.message}" if last.message else ""
    what = format_count(len(late.failed), "request" if any(one.is_read for one in late.failed) else "write")
    code = _describe_code(len(late.failed), last.code)
    return _Explanation("asking", f"{late.least}{what} by its pod failed{code}{message}")


def _describe_code(number: int, code: int) -> str:
    return f" with {code}" if number == 1 else f", the last one with {code}"


def _explain_rewriting(late: _LateTakeover) -> _Explanation | None:
    """Explain by writes in which the taker asked to be the holder, and which were stored with another one."""
    own, rewritten = late.after.processes.own, late.history.requests.rewritten
    if own is None or (span := rewritten.find_span(HOLDER_IDENTITY, own, late.since, late.after.since)) is None:
        return None
    text = (
        f"writes by its pod that asked for it as the holder were accepted from {format_clock(span[0], late.now)} on, "
        "and stored with another one: it may have led since"
    )
    return _Explanation("asking", text)


def _explain_claimed_start(late: _LateTakeover) -> _Explanation | None:
    """Explain by an acquireTime long before the taker was first seen: it may have led since."""
    claimed = late.after.beginning.claimed_since
    if claimed is None or claimed > late.after.since:
        return None
    text = (
        f"its acquireTime says {format_clock(claimed, late.now)}, so it may have led since, and what it wrote until "
        f"{format_clock(late.after.since, late.now)} was not stored, or is not in the input"
    )
    return _Explanation("unknown", text)


def _explain_requests(late: _LateTakeover) -> _Explanation | None:
    """Explain by a taker that asked all the time."""
    if not late.is_logged:
        return None
    asked = format_times_after(late.after.requests_before, late.since)
    return _Explanation("asking", f"its pod had asked for it {asked} meanwhile")


def _explain_nothing(late: _LateTakeover) -> _Explanation:
    own = late.after.processes.own
    if own is not None and not (own.uid or own.pod) and late.after.beginning.write.is_logged:
        if address := _describe_address(late, own):
            return _Explanation("unknown", address)
        text = "its requests name no pod, so the log does not show which process asked for the lease, and which ran"
        return _Explanation("unknown", text)
    known = _describe_what_is_known(late)
    if known:
        return _Explanation("unknown", known)
    shows_reads = late.history.has_reads_of_holders
    if shows_reads and late.has_hole:
        text = "the log has nothing at all for a part of that time: nothing was answered then, or it lacks requests"
        return _Explanation("unknown", text)
    if shows_reads:
        return _Explanation("unknown", "the log does not show whether it ran then, and asked for the lease")
    text = "whether it ran then, and who asked for the lease, is not known; an audit log that has reads may show it"
    return _Explanation("unknown", text)


def _describe_address(late: _LateTakeover, own: Writer) -> str:
    """Say that for most of that time no request came from the address from which it was taken; "" if one did.

    Nobody had written it from there before.
    """
    requests = late.history.requests
    seen = requests.addresses.by_writer.get(own.process)
    address = next((one for one, at in seen.first.items() if at == late.after.since), "") if seen is not None else ""
    first = requests.asking_addresses.find_pause(own, address, late.since, late.after.since)
    if first is None or first - late.since <= (late.after.since - late.since) // 2:
        return ""
    at, where = format_clock(first, late.now), f"{format_name(address)}, from where it was taken"
    unknown = [
        one
        for one in requests.refusals
        if one.code == UNAUTHENTICATED and get_address(one.source) == address and late.since <= one.at < first
    ]
    if unknown:
        number = format_count(len(unknown), "request")
        return f"{number} from {where}, had no accepted credentials (401) before the first one that had, at {at}"
    return f"the log has no request for it from {where}, until {at}"


def _describe_what_is_known(late: _LateTakeover) -> str:
    """Say what a log shows of the taker's pod, although it may lack some of its requests; "" if it shows nothing."""
    own = late.after.processes.own
    # Whoever else has its user may have asked.
    if own is not None and (own.uid or own.pod) and (asked := _describe_requests_of_pod(late)):
        return asked
    if late.bound_at is not None:
        return _describe_binding(late)
    unauthenticated = late.describe_unauthenticated()
    return f"{unauthenticated}: it may have asked for the lease" if unauthenticated else ""


def _describe_requests_of_pod(late: _LateTakeover) -> str:
    """Say that the pod of a taker asked for the lease, of which the log may have only a part; "" if it has none."""
    if late.describe_refused():
        return "its pod asked for the lease"
    if late.conflicts:
        number = f"at least {late.conflicts} of its updates"
        return f"its pod asked for the lease, and {number} conflicted with other writes (409)"
    asked = late.after.requests_before.list_after(late.since)
    if not asked:
        return ""
    times, first = format_count(len(asked), "time"), format_clock(asked[0], late.now)
    return f"its pod asked for the lease at least {times} meanwhile, as far as is shown from {first} on"


def _find_binding(histories: ClusterHistory, after: Tenure, since: int) -> PodRequest | None:
    """Return the request by which the pod of a taker got its node: before it took the lease, and not long before that.

    An earlier one may be of an earlier pod of its name.
    """
    own = after.processes.own
    account = UserInfo(own.user).service_account if own else None
    if own is None or account is None or not own.pod:
        return None
    requests = histories.pod_requests.list_about(account[0], own.pod)
    near = (one for one in reversed(requests) if since - _BOUND_BEFORE < one.at < after.since)
    return next((one for one in near if one.act is PodAct.BOUND), None)


def _find_gone_askers(
    histories: ClusterHistory, history: LeaseHistory, before: Tenure, after: Tenure, since: int
) -> Sequence[str]:
    """Return the other pods of the taker's account that asked for the lease, if all were deleted when it was freed.

    () if there was none, or if one may have run on: what got a node only later did not run then.
    """
    own, last = after.processes.own, before.processes.own
    account = UserInfo(own.user).service_account if own else None
    if own is None or account is None:
        return ()
    askers = history.requests.accounts.get(own.user, set())
    if len(askers) >= MAX_LISTED:
        return ()  # there may have been more
    others = sorted(askers - {own.pod, last.pod if last else ""})
    there = [one for one in others if (find_bound(histories, account[0], one) or 0) <= since]
    are_gone = all(_is_deleted_by(histories, account[0], one, since + _AT_ONCE) for one in there)
    return there if are_gone else ()


def _is_deleted_by(histories: ClusterHistory, namespace: str, pod: str, at: int) -> bool:
    """Return whether the deletion of a pod was asked for by an instant."""
    known = histories.deleted_pods.list_deletions_of(namespace, pod, "")
    return any(one.is_surely_not_dry_run and one.at <= at for one in known)


_EXPLANATIONS: Final[tuple[Callable[[_LateTakeover], _Explanation | None], ...]] = (
    _explain_rewriting,
    _explain_claimed_start,
    _explain_binding,
    _explain_first_request,
    _explain_nameless,
    _explain_silence,
    _explain_failures,
    _explain_conflicts,
    _explain_requests,
)
"""The first one that explains it is said."""


def _has_waited_once(after: Tenure, since: int) -> bool:
    """Return whether a taker took the lease about as long after `since` as it lasts."""
    duration = (after.duration or 0) * SECOND
    return duration - SECOND <= after.since - since <= duration + _PATIENCE


def _find_first_request(after: Tenure, since: int) -> int | None:
    """Return when the taker first asked for the lease, if that could be taken by then; None if it may have before."""
    first = min(after.requests_before.times, default=since)
    return first if first > since and not after.requests_before.is_cut else None


def _find_silence(after: Tenure, since: int) -> tuple[int, int] | None:
    """Return the longest time in which the taker made no request since the lease could be taken.

    If it made more than are remembered, it is not known when it made the first of them.
    """
    times: Sequence[int] = sorted(one for one in after.requests_before.times if one <= after.since)
    points = [
        *([] if after.requests_before.is_cut else [since]),
        *(one for one in times if one > since),
    ]
    return max(pairwise(points), key=lambda pair: pair[1] - pair[0], default=None)
