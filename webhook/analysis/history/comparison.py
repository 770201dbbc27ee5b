"""Compare leases: whether others were late, or stopped, when one was."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Self

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import OtherLeases
from webhook.analysis.history.visibility.clock_steps import ClockStep
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import MINUTE, SECOND, parse_stamp

_TOGETHER: Final = MINUTE
"""Leases that were last renewed within this time before one stopped with it."""
_CREATING: Final = SECOND
"""A renewal that is stored later than this after its lease was created is one of its own."""
_NAMED: Final = 2
"""How many leases are named of those that were late, and of those that were not."""
_HUNG: Final = 2 * SECOND
"""A renewal that takes so long was not made on time: most clients renew that often."""
_MIN_WITNESSES: Final = 2
"""Other leases that show that a clock was set: what a single client writes shows nothing."""


def is_renewed_since_creation(lease: Lease, at: int) -> bool:
    """Return whether the write at `at` came after the creation: what no one renewed cannot have stopped."""
    created = parse_stamp(lease.metadata.creation_timestamp)
    return created is None or created + _CREATING <= at


class OverdueLeases(Struct, frozen=True):
    """Held leases at the moment `now`, in order of time; each renewal in microseconds since 1970."""

    now: int
    overdue: list[int]
    """Last renewals of those that were not renewed for half of their duration."""
    overdue_less_half: list[int]
    """Last renewals of those that were not renewed for half of their duration, less that half."""
    gone_on: list[int]
    """All last renewals less half of the duration: such a lease outlasted what stopped before that."""

    @classmethod
    def from_renewals(cls, renewals: Sequence[tuple[int, int]], now: int) -> Self:
        """Return what is counted of last renewals and halves of durations.

        One that is later than `now` is what a client claims: when that lease was renewed last is not known.
        """
        past = [(at, half) for at, half in renewals if at <= now]
        overdue = [(at, half) for at, half in past if at + half <= now]
        return cls(
            now=now,
            overdue=sorted(at for at, _ in overdue),
            overdue_less_half=sorted(at - half for at, half in overdue),
            gone_on=sorted(at - half for at, half in past),
        )

    def compare_with(self, history: LeaseHistory) -> OtherLeases:
        """Return how many other leases were last renewed when one was that has expired, and how many after it.

        One that is not overdue itself did not stop, and went on only if it was renewed half its duration later: what
        is renewed every ten seconds, or every ten minutes, says nothing of the last fifteen seconds.
        """
        own, status = find_compared_renewal(history, self.now), history.find_status(self.now)
        since = (status and status.last_renewal) or 0
        on_time = _count_after(self.gone_on, since)
        late = _count_after(self.overdue, since - _TOGETHER) - _count_after(self.overdue_less_half, since)
        if own is not None:
            late -= 1  # itself
        return OtherLeases(late, on_time)


def find_compared_renewal(history: LeaseHistory, now: int) -> tuple[int, int] | None:
    """Return when a held lease was last renewed, and half of its duration; None if it is not compared."""
    status = history.find_status(now)
    if not status or not status.holder or status.last_renewal is None or status.duration is None:
        return None
    if history.lease and not is_renewed_since_creation(history.lease, status.last_renewal):
        return None
    return status.last_renewal, max(0, status.duration) * SECOND // 2


def compare_renewals(
    history: LeaseHistory,
    sample: Iterable[LeaseHistory],
    start: int,
    end: int,
    *,
    is_sample: bool,
    nodes_gone: Mapping[str, int],
    until: int,
) -> OtherLeases:
    """Return how many of other leases were late, and how many were renewed as usual, between two instants.

    `nodes_gone`: when Nodes were deleted, by name. No one renews the lease of such a node. `until`: the input's end.
    """
    # No one renews a lease that is free, or was deleted.
    others = [
        other
        for other in sample
        if other is not history and (other.current_tenure or (other.renewals.last or 0) >= end)
        if not _is_of_gone_node(other, nodes_gone)
    ]
    were_late = [other.renewals.was_late(start, end) for other in others]
    late = [other for other, is_late in zip(others, were_late, strict=True) if is_late]
    have_stopped = [other.renewals.has_stopped_by(end, until) for other in late]
    stopped = [other for other, has_stopped in zip(late, have_stopped, strict=True) if has_stopped]
    back = [other for other, has_stopped in zip(late, have_stopped, strict=True) if not has_stopped]
    # What one process held and renewed again tells more of it than what others did.
    are_alike = [_is_held_alike(history, other, start, end) for other in back]
    alike = [other for other, is_alike in zip(back, are_alike, strict=True) if is_alike]
    back = alike + [other for other, is_alike in zip(back, are_alike, strict=True) if not is_alike]
    own_node = history.name if history.namespace == NODE_LEASES else history.find_node_at(start)
    nodes = {own_node, *(other.find_node_at(start) for other in late)}
    is_one_node = len(nodes) == 1 and "" not in nodes
    renewed = [other for other, is_late in zip(others, were_late, strict=True) if is_late is False]
    on_time = [other for other in renewed if not _was_hindered(other, start, end)]
    undecided = [other for other, is_late in zip(others, were_late, strict=True) if is_late is None]
    paces = [pace for other in undecided if (pace := other.renewals.find_sure_pace(start, end)) is not None]
    paused = [(other, silence) for other in on_time if (silence := other.renewals.find_longest_silence(start, end))]
    return OtherLeases(
        late=len(late),
        repeated=_count_repeated((history, *late), start),
        on_time=len(on_time),
        is_sample=is_sample,
        node=own_node if is_one_node else "",
        paused=len(paused),
        silent_for=max((silence for _, silence in paused), default=0),
        named_paused=_name_some([other for other, _ in paused]),
        named_late=_name_some(late),
        named_on_time=_name_some(on_time),
        named_back=_name_some(back),
        back_alike=len(alike),
        stopped=len(stopped),
        named_stopped=_name_some(stopped),
        held_alike=sum(1 for other in on_time if _is_held_alike(history, other, start, end)),
        has_own_node=any((one.namespace, one.name) == (NODE_LEASES, own_node) for one in on_time),
        due_once=len(paces),
        longest_pace=max(paces, default=0),
        hindered=len(renewed) - len(on_time),
    )


def _was_hindered(other: LeaseHistory, start: int, end: int) -> bool:
    """Return whether a log shows that a write to another lease failed between two instants, or took for seconds.

    Others saw it as late as its answer, or later: that its renewTime is on time says nothing.
    """
    answers = (one for one in other.requests.list_held_up_writes() if start < one.at and one.received < end)
    holders = {one.processes.own.user for one in other.tenures if one.processes.own is not None}
    # What a stranger's write met says nothing of the holder's.
    own = (one for one in answers if one.writer.user in holders)
    return any(one.has_failed or one.took >= _HUNG for one in own)


def _is_held_alike(history: LeaseHistory, other: LeaseHistory, start: int, end: int) -> bool:
    """Return whether another lease of the namespace was held from one instant to another by the same text as this."""
    before, during = history.find_tenure_at(start), other.find_tenure_at(start)
    if before is None or during is None or during is not other.find_tenure_at(end):
        return False
    return other.namespace == history.namespace and bool(before.holder) and before.holder == during.holder


def _is_of_gone_node(lease: LeaseHistory, nodes_gone: Mapping[str, int]) -> bool:
    """Return whether the lease is of a node that was deleted, and was not renewed since: the node is not late."""
    gone = nodes_gone.get(lease.name) if lease.namespace == NODE_LEASES else None
    return gone is not None and (lease.renewals.last or 0) <= gone + SECOND


def _name_some(leases: Sequence[LeaseHistory]) -> tuple[tuple[str, str], ...]:
    return tuple((one.namespace, one.name) for one in leases[:_NAMED])


def find_common_clock_step(
    history: LeaseHistory, leases: Collection[LeaseHistory], start: int, end: int
) -> ClockStep | None:
    """Return the step of a clock between two instants that most other leases show, too: an API server's.

    None if there is none. The stamps leapt, or went back, and the renewTimes of several holders did not.
    """
    own = history.clock_steps.find_within(start, end)
    if own is None:
        return None
    others = [one for one in leases if one is not history and one.current_tenure is not None]
    like = sum(1 for one in others if any(map(own.is_like, one.clock_steps.known)))
    compared = sum(1 for one in others if one.renewals.has_renewals_around(own.start, own.end))
    return own if like >= _MIN_WITNESSES and 2 * like > compared else None


def _count_after(moments: Sequence[int], moment: int) -> int:
    return len(moments) - bisect_right(moments, moment)


def _count_repeated(leases: Sequence[LeaseHistory], at: int) -> int:
    """Return how many leases were held at an instant by the holder of another one of them, as far as is known."""
    tenures = (one.find_tenure_at(at) for one in leases)
    holders = [one.holder for one in tenures if one is not None]
    return len(holders) - len(set(holders))
