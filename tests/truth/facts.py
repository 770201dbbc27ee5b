"""The truth about one lease, in the terms of claims: writes, tenures, when it was live, who wrote what.

A claim has instants by the API servers' clocks; where these differ, an instant may be any of those that some server's
clock shows it. A write happened at some time between its arrival and its answer: nothing that is said of a moment in
between is false. A claim that something happened in an interval is true if it may have; a claim that something was so
throughout is false if it surely was not.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from tests.model.api_server import Spec
from tests.truth.plans import Fault, FaultKind, Habit, Role
from tests.truth.records import END, History, Process, Request, Span, State
from tests.truth.stage import MILLISECOND, SECOND
from webhook.kubernetes.times import MINUTE, parse

Claim = Mapping[str, Any]
NOTHING: Final = Spec()
SLACK: Final = 30 * MILLISECOND
"""What a request takes on its way, and a claim may be off by it."""


class Moment(Struct, frozen=True):
    """An instant of a claim by true time, as early and as late as the clocks of the API servers allow."""

    first: int
    last: int


class Write(Struct, frozen=True, dict=True):
    """A stored write of the lease, with the one before."""

    request: Request
    process: Process
    before: Spec
    after: Spec
    was_there: bool
    is_there: bool

    @property
    def begin(self) -> int:
        """When it may have happened first: when its time was stamped."""
        return self.request.received

    @property
    def end(self) -> int:
        """When it may have happened last."""
        return self.request.answered

    @property
    def at(self) -> int:
        """When it was stored."""
        assert self.request.stored_at is not None
        return self.request.stored_at

    @property
    def puts(self) -> str:
        """The identity that it put there, where another text, none or one that had released it had been."""
        is_put = (self.after.holder or "") != (self.before.holder or "") or (
            is_released(self.before) and not is_released(self.after)
        )
        return (self.after.holder or "") if is_put else ""

    @property
    def removes(self) -> str:
        """The identity that it removed."""
        return (self.before.holder or "") if (self.after.holder or "") != (self.before.holder or "") else ""

    @property
    def is_renewal(self) -> bool:
        """Whether it moved renewTime and left it set."""
        return self.after.renewed is not None and self.after.renewed != self.before.renewed

    @property
    def is_webhook_renewal(self) -> bool:
        """Whether a webhook moved renewTime in a write that did not ask for that."""
        body = self.request.body
        return self.is_renewal and body is not None and "renewTime" not in (body.get("spec") or {})

    @property
    def is_set_back(self) -> bool:
        """Whether it moved renewTime back by more than the duration, as a restored copy does."""
        old, new = self.before.renewed, self.after.renewed
        return old is not None and new is not None and old - new > (self.before.duration or 0) * SECOND

    @property
    def is_holder_rewritten(self) -> bool:
        """Whether a webhook stored another holder than was asked for."""
        body = self.request.body
        asked = body.get("spec", {}).get("holderIdentity") if body else None
        return bool(asked) and bool(self.after.holder) and asked != self.after.holder

    @property
    def is_shortened(self) -> bool:
        """Whether it leaves the holder and shortens the lease to a second, as some clients release it."""
        return self.after.duration == 1 and self.before.duration != 1


class Facts(Struct, frozen=True, dict=True):
    """The truth about one lease of a history; `now` is the moment at which a command evaluated it.

    Nothing counts that was stored after `until`: without it what may have been by `now`, as clocks differ.
    """

    history: History
    namespace: str
    name: str
    now: int
    until: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    # ---- instants ----

    @cached_property
    def _offsets(self) -> tuple[int, int]:
        offsets = [offset * MILLISECOND for offset in self.history.plan.offsets]
        return min(offsets), max(offsets)

    def moment(self, text: str) -> Moment:
        """Return an instant of a claim by true time."""
        clock = parse(text)
        least, most = self._offsets
        return Moment(clock - most - SLACK, clock - least + SLACK)

    def earliest(self, claim: Claim, key: str, default: int = 0) -> int:
        """Return an instant of a claim as early as possible."""
        text = claim.get(key)
        return default if text is None else self.moment(text).first

    def latest(self, claim: Claim, key: str, default: int = END) -> int:
        """Return an instant of a claim as late as possible."""
        text = claim.get(key)
        return default if text is None else self.moment(text).last

    def interval(self, claim: Claim, begin: str = "earliest", end: str = "latest") -> tuple[int, int]:
        """Return the time in which something is said to have happened, as wide as possible."""
        return self.earliest(claim, begin), self.latest(claim, end)

    def inside(self, claim: Claim) -> tuple[int, int]:
        """Return the time throughout which something is said to be so, as narrow as possible."""
        begin = self.latest(claim, "from", 0)
        end = self.earliest(claim, "to", self.now)
        return begin, min(end, self.now)

    # ---- writes ----

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        """Every stored write up to now."""
        writes = []
        for write in self.history.writes(self.key):
            assert write.stored_at is not None
            if write.stored_at > self._limit:
                break
            before, after = _spec_of(write.before), _spec_of(write.after)
            process = self.history.by_name[write.process]
            writes.append(Write(write, process, before, after, write.before is not None, write.after is not None))
        return tuple(writes)

    @property
    def _limit(self) -> int:
        return self.now + self.spread if self.until is None else self.until

    @property
    def spread(self) -> int:
        """By how much the clocks of API servers differ, and an instant may be off."""
        least, most = self._offsets
        return most - least + SLACK

    @cached_property
    def requests(self) -> tuple[Request, ...]:
        """Every request about the lease up to now."""
        key = ("Lease", *self.key)
        return tuple(one for one in self.history.requests if one.key == key and one.answered <= self._limit)

    @cached_property
    def candidate_requests(self) -> tuple[Request, ...]:
        """Every request up to now about a LeaseCandidate that names the lease."""
        namespace, name = self.key
        return tuple(
            one
            for one in self.history.requests
            if (one.kind, one.namespace) == ("LeaseCandidate", namespace)
            and one.body is not None
            and one.body["spec"].get("leaseName") == name
            and one.answered <= self._limit
        )

    def find_writes(self, begin: int, end: int, when: Callable[[Write], bool]) -> Iterator[Write]:
        """Yield the writes of a kind that may have happened in a time."""
        return (one for one in self.writes if one.begin <= end and begin <= one.end and when(one))

    @property
    def spec(self) -> Spec:
        """What is stored now."""
        return self.writes[-1].after if self.writes else NOTHING

    @property
    def holder(self) -> str:
        """Who is in holderIdentity now."""
        return self.spec.holder or ""

    def spec_before(self, at: int) -> Spec:
        """Return what was stored just before an instant."""
        spec = NOTHING
        for write in self.writes:
            if write.at >= at:
                break
            spec = write.after
        return spec

    def placing(self, identity: str, before: int = END) -> Write | None:
        """Return the latest write that put an identity there."""
        return next((one for one in reversed(self.writes) if one.puts == identity and one.at < before), None)

    @property
    def last_renewal(self) -> Write | None:
        """The last write of the object that is there now which moved renewTime."""
        renewal = None
        for write in self.writes:
            if write.is_renewal:
                renewal = write
            elif not (write.was_there and write.is_there):
                renewal = None
        return renewal

    # ---- live ----

    def is_surely_live(self, at: int) -> bool:
        """Return whether the lease is live at an instant, whenever its last renewal was stamped.

        A renewTime that a webhook moved in somebody's write of something else, or that was set back, makes candidates
        wait again, and is no renewal by a stamp or by the holder: whether the lease is live then depends on who asks.
        """
        standing = self._standing(at, is_sure=True)
        return standing is not None and at < standing[0].begin + standing[1] - self.spread

    @property
    def is_surely_live_now(self) -> bool:
        """True if the lease is live by what is stored now, also by a write of this instant."""
        return self.is_surely_live(self.now + 1)

    def may_be_live(self, at: int) -> bool:
        """Return whether the lease may be live at an instant."""
        standing = self._standing(at)
        if standing is None:
            return False
        # Another writer may have shortened it: it is live for as long as its holder wrote.
        holder = standing[0].after.holder or ""
        own = (one.after.duration or 0 for one in reversed(self.writes) if one.at < at and self.is_own(one, holder))
        return at < standing[0].end + max(standing[1], next(own, 0) * SECOND, 0) + self.spread

    def _standing(self, at: int, *, is_sure: bool = False) -> tuple[Write, int] | None:
        """Return the last renewal before an instant, and the duration then; None if nobody holds the lease.

        `is_sure` leaves out what a webhook did to another write, and old times that were written back.
        """
        renewal: Write | None = None
        spec = NOTHING
        for write in self.writes:
            if write.at >= at:
                break
            spec = write.after
            if is_sure and write.is_set_back:
                # Who is written in with an old time has not renewed it.
                renewal = renewal if write.before.holder == write.after.holder else None
            elif write.is_renewal and not (is_sure and write.is_webhook_renewal):
                renewal = write
            elif not (write.was_there and write.is_there):
                renewal = None
        if not spec.holder or spec.duration is None or renewal is None:
            return None
        return renewal, spec.duration * SECOND

    def stretches(self) -> Iterator[tuple[int, int, Spec, Write]]:
        """Yield what was surely stored from when to when, and the write that stored it."""
        for number, write in enumerate(self.writes):
            end = self.writes[number + 1].begin if number + 1 < len(self.writes) else self.now
            if write.end < end:
                yield write.end, end, write.after, write

    # ---- who ----

    def processes_of(self, identity: str) -> tuple[Process, ...]:
        """Return the processes that call themselves so."""
        called = self.history.called
        return tuple(one for one in self.history.processes if identity and identity in called[one.name])

    def is_by(self, by: Mapping[str, Any] | None, request: Request) -> bool:
        """Return whether a request may be by whom a claim says; nothing is said without a `by`."""
        if by is None:
            return True
        known = by.get("known")
        process = self.history.by_name[request.process]
        if known == "manager":
            return bool(by["manager"] == process.manager)
        if known not in ("process", "user"):
            return True
        return is_process(by, process)

    def is_own(self, write: Write, identity: str) -> bool:
        """Return whether the writer is a process of an identity, or runs in the pod of one as its user."""
        own = write.process
        named = self.processes_of(identity)
        return own in named or any(one.uid and one.writer == own.writer for one in named)

    def has_renewals(self, identity: str, begin: int, end: int) -> bool:
        """Return whether an identity surely renewed the lease itself in a time, and did not release it."""
        renewals = (one for one in self.writes if one.is_renewal and one.after.holder and not one.is_shortened)
        own = (one for one in renewals if self.is_own(one, identity))
        return any(begin < one.begin and one.end < end for one in own)

    # ---- why ----

    def has_writes(self, identity: str, begin: int, end: int) -> bool:
        """Return whether a process of an identity tried to write the lease in a time."""
        own = {one.name for one in self.processes_of(identity)}
        tried = (one for one in self.requests if one.process in own and one.verb not in ("get", "list"))
        return any(begin < one.received and one.answered < end for one in tried)

    def causes(self, identity: str, begin: int, end: int) -> set[str]:
        """Return every reason for which an identity did not renew in a time, as claims name them."""
        return _Reasons(self, identity, begin, end).find()


def is_released(spec: Spec) -> bool:
    """Return whether its holder released it and is still named: it lasts a second, and its times are equal."""
    return spec.duration == 1 and spec.renewed is not None and spec.renewed == spec.acquired


def is_process(by: Mapping[str, Any], process: Process) -> bool:
    """Return whether a claim names a process: by its user and its pod's uid, or its pod where no uid is known."""
    if by.get("user", "") != process.user.name:
        return False
    if by.get("uid"):
        return bool(by["uid"] == process.uid)
    return not by.get("pod") or bool(by["pod"] == process.pod)


_BY: Final[dict[str, str]] = {
    "RBAC": "refused-rights",
    "authentication": "refused-credentials",
    "webhook": "refused-webhook",
    "policy": "refused-policy",
    "stamp guard": "refused-policy",
    "validation": "refused-other",
    "field ownership": "refused-fields",
    "not found": "refused-other",
    "webhook failure": "failed",
    "API server": "failed",
    "timeout": "failed",
    "priority and fairness": "throttled",
    "conflict": "conflict",
}
_SERVER_FAULTS: Final = {
    FaultKind.ETCD_SLOW,
    FaultKind.SERVER_SLOW,
    FaultKind.SERVER_HANGS,
    FaultKind.SERVER_DOWN,
    FaultKind.SERVERS_DOWN,
    FaultKind.SERVER_ERROR,
    FaultKind.WEBHOOK_SLOW,
}
_PROCESS_FAULTS: Final = {
    FaultKind.PAUSE,
    FaultKind.BLOCK,
    FaultKind.THROTTLE,
    FaultKind.CUT,
    FaultKind.KILL,
    FaultKind.STOP,
    FaultKind.REPLACE,
    FaultKind.DUPLICATE,
    FaultKind.CLOCK_STEP,
}


class _Reasons:
    """Why an identity did not renew in a time."""

    def __init__(self, facts: Facts, identity: str, begin: int, end: int) -> None:
        self._facts = facts
        self._identity = identity
        self._begin = begin
        self._end = end
        self._own = facts.processes_of(identity)

    def find(self) -> set[str]:
        return {
            *self._find_by_requests(),
            *self._find_by_processes(),
            *self._find_by_pods(),
            *self._find_by_servers(),
            *self._find_by_lease(),
        }

    def _find_by_requests(self) -> Iterator[str]:
        # Who put an identity there that is not its own renews as it.
        placers = {one.process.name for one in self._facts.writes if one.puts == self._identity}
        # Processes of one pod look the same in every input.
        pods = {one.writer for one in self._own if one.uid}
        beside = (one.name for one in self._facts.history.processes if one.writer in pods)
        names = {*placers, *(one.name for one in self._own), *beside}
        for request in self._facts.history.requests:
            if request.process not in names or not (request.received <= self._end and self._begin <= request.answered):
                continue
            if request.refused and request.key[1:] == self._facts.key:
                yield _BY[request.refused.by]

        if self._has_idle_writes():
            yield "not-renewing"

    def _has_idle_writes(self) -> bool:
        """Return whether its processes, or who renewed in its name, wrote the lease again without another renewTime."""
        renewals = [one for one in self._facts.writes if one.is_renewal and one.at <= self._begin + SECOND]
        renewer = [one.process.name for one in renewals[-1:] if one.after.holder == self._identity]
        names = {*renewer, *(one.name for one in self._own)}
        asked = (one for one in self._facts.requests if one.process in names and one.verb in ("update", "patch"))
        stored = [one for one in asked if not one.refused and self._begin <= one.answered and one.received <= self._end]
        moved = {id(one.request) for one in self._facts.writes if one.is_renewal}
        return len([one for one in stored if id(one) not in moved]) > 1

    def _find_by_processes(self) -> Iterator[str]:
        history, begin, end = self._facts.history, self._begin, self._end
        if not any(span.meets(begin, end) for one in self._own for span in one.alive):
            yield "stopped"
            yield "not-running"
        if not any(one.lease == f"{self._facts.namespace}/{self._facts.name}" for one in self._own):
            yield "not-running"
        for process in self._own:
            stops = (*process.paused, *process.blocked)
            died = [Span(span.end, END) for span in process.alive if span.end != END]
            if any(span.meets(begin, end) for span in (*stops, *died)):
                yield "stopped"
        pods = {one.pod for one in self._own}
        for fault in history.faults:
            if fault.kind in _PROCESS_FAULTS and fault.target in pods and self._is_on(fault):
                yield "stopped"
        if not self._has_requests():
            yield "stopped"

    def _find_by_pods(self) -> Iterator[str]:
        """Yield whether one of its processes ended because its pod was deleted, or had a token no longer."""
        for deletion in self._facts.history.pod_deletions:
            for process in self._own:
                ends = (process.alive[-1].end, *self._list_losses_of_tokens(process))
                ended = [at for at in ends if deletion.received <= at <= deletion.answered + MINUTE]
                if deletion.pod_uid == process.uid and any(self._begin - 5 * SECOND <= at <= self._end for at in ended):
                    yield "pod-deleted"

    def _list_losses_of_tokens(self, process: Process) -> Iterator[int]:
        for fault in self._facts.history.faults:
            if fault.kind is FaultKind.DUPLICATE and fault.target == process.pod:
                lived_on = fault.length * MILLISECOND + fault.amount * SECOND
                yield self._facts.history.begin + fault.at * MILLISECOND + lived_on

    def _has_requests(self) -> bool:
        names = {one.name for one in self._own}
        begin, end = self._begin + SECOND, self._end - SECOND
        requests = (one for one in self._facts.history.requests if one.process in names)
        return any(begin < one.received and one.answered < end for one in requests)

    def _find_by_servers(self) -> Iterator[str]:
        for fault in self._facts.history.faults:
            if fault.kind in _SERVER_FAULTS and self._is_on(fault):
                yield "api-server"
                if fault.kind in (FaultKind.SERVERS_DOWN, FaultKind.SERVER_HANGS, FaultKind.SERVER_DOWN):
                    yield "network"
                if fault.kind is FaultKind.WEBHOOK_SLOW:
                    yield "failed"
                if fault.kind is FaultKind.SERVER_ERROR:
                    yield "failed"

    def _is_on(self, fault: Fault) -> bool:
        begin = self._facts.history.begin + fault.at * MILLISECOND
        length = fault.length * MILLISECOND
        return begin <= self._end and self._begin <= begin + max(length, SECOND)

    def _find_by_lease(self) -> Iterator[str]:
        facts = self._facts
        spec = facts.spec_before(self._end)
        asked = [one for one in facts.writes if one.after.preferred and one.at <= self._end]
        if asked and any(one.habit is Habit.COORDINATED for one in facts.history.plan.electors):
            last = facts.spec_before(self._begin + 20 * SECOND)
            if last.preferred or spec.preferred:
                yield "asked-to-step-down"
        placed = facts.placing(self._identity, self._end)
        if placed is None:
            return
        later = [one for one in facts.writes if placed.at < one.at <= self._end and facts.is_own(one, self._identity)]
        if placed.process.role is Role.API_SERVER and not later:
            yield "not-taken-up"
        if not facts.is_own(placed, self._identity) and not later:
            yield "not-running"
        until = self._begin + SECOND
        own = [one for one in facts.writes if one.at <= until and facts.is_own(one, self._identity)]
        if own and own[-1].is_holder_rewritten:
            yield "rewritten"
        if self._renews_too_seldom(spec.duration):
            yield "interval"

    def _renews_too_seldom(self, duration: int | None) -> bool:
        """Return whether half of the intervals between its renewals are about as long as the lease lasts, or longer."""
        facts = self._facts
        own = [one.at for one in facts.writes if one.is_renewal and facts.is_own(one, self._identity)]
        gaps = sorted(later - earlier for earlier, later in pairwise(own))
        return bool(gaps) and duration is not None and gaps[len(gaps) // 2] > 0.7 * duration * SECOND


def _spec_of(state: State | None) -> Spec:
    return state.lease.spec if state and state.lease else NOTHING
