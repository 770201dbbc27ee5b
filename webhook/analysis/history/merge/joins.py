"""Requests of a log, joined with the states of a watch that they made."""

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

from msgspec.structs import replace

from webhook.analysis.history.merge.dated import TOLERANCE, DatedItem, by_time, is_as_sent
from webhook.analysis.history.merge.fitting import ExactTimes, find_exact_time, find_fitting, group_requests
from webhook.analysis.history.merge.makers import is_stamped_by
from webhook.analysis.inputs.items import Observation
from webhook.analysis.inputs.patches import patch_spec
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY, RENEW_TIME
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND

_MAX_IN_TURN: Final = 4096
"""More states in a row without a request are of a log that lacks their requests."""


def join_requests(states: list[DatedItem], rest: Sequence[DatedItem]) -> list[DatedItem]:
    """Join requests of a log with the states of a watch that they made, where only one writer can be meant.

    A write of a log without objects has a time and a writer but no order, and so has a deletion.
    """
    used: set[int] = set()
    # By the number of a state: the request that made it, and the state as the watch shows it.
    makers: dict[int, tuple[DatedItem, DatedItem]] = {}
    requests = group_requests(rest)
    shown = [number for number, state in enumerate(states) if not state.is_exact]
    before, after = -1, _list_exact_times_after(states)
    for number, state in enumerate(states):
        if state.is_exact:
            before = state.time
            continue
        exact = ExactTimes(before, after[number])
        fitting = find_fitting(requests, states, number, used=used, exact=exact)
        if fitting and len({one.observation.writer for one in fitting}) == 1:
            # An update that changed nothing found the same state, and came first; a patch that did came last.
            is_first = (
                state.is_deletion
                or state.observation.latest_stamp is not None
                or fitting[0].observation.patched_renew_time
            )
            maker = fitting[0] if is_first else fitting[-1]
            used.add(id(maker))
            makers[number] = maker, state
            states[number] = maker.join_with(state)
            before = states[number].time
    for number, maker in _find_makers_in_turn(states, requests.writes, used):
        used.add(id(maker))
        makers[number] = maker, states[number]
        states[number] = maker.join_with(states[number])
    for is_before in (False, True):
        used -= {id(one) for one in _drop_displaced_patches(makers, states, is_before=is_before)}
    if RENEW_TIME in _list_rewritten_fields(states):
        used -= {id(one) for one in _unjoin_patches(makers, states)}
    others = [one for one in rest if id(one) not in used]
    _mark_unchanging(states, others)
    if HOLDER_IDENTITY in _list_rewritten_fields(states):
        for seen in others:
            _forget_what_was_sent(seen)
    _mark_logged([states[number] for number in shown], requests.writes)
    return others


def _list_exact_times_after(states: Sequence[DatedItem]) -> list[int | None]:
    """Return for each state the time of the first one after it that is exact, None without any."""
    times: list[int | None] = []
    after: int | None = None
    for state in reversed(states):
        times.append(after)
        after = state.time if state.is_exact else after
    return times[::-1]


def _mark_unchanging(states: Sequence[DatedItem], others: Iterable[DatedItem]) -> None:
    """Mark the updates that changed nothing, or may have: what is stored is replaced once, whoever names it."""
    replaced = {one.observation.replaces for one in states if one.is_stored_write and one.observation.replaces}
    updates = [one for one in others if one.is_stored_write and _is_unanswered(one.observation)]
    times = Counter(one.observation.replaces for one in updates)
    changes = _find_only_changes(updates)
    for update in updates:
        named = update.observation.replaces
        if named in replaced or changes.get(named, update) is not update:
            update.item = replace(update.observation, object=None, is_beside_spec=True)
        elif times[named] > 1 and named not in changes:
            update.item = replace(update.observation, object=None, may_change_nothing=True)
    for patch in others:
        if patch.is_stored_write and _has_patched_nothing(patch, states):
            patch.item = replace(patch.observation, is_beside_spec=True, may_change_nothing=True)


def _find_only_changes(updates: Iterable[DatedItem]) -> dict[str, DatedItem]:
    """Return by what it replaced the one update that changed something, of several that name the same state.

    After a change, the next one conflicts: what several of them would store is that state, and of those by one process
    only the last one may have changed it.
    """
    groups: dict[str, list[DatedItem]] = {}
    for update in sorted(updates, key=by_time):
        groups.setdefault(update.observation.replaces, []).append(update)
    found = {}
    for named, several in groups.items():
        specs = [_get_spec(one.observation) for one in several]
        numbers = Counter(specs)
        single = [one for spec, one in zip(specs, several, strict=True) if numbers[spec] == 1]
        if len(numbers) == 2 and len(single) == 1 and None not in numbers:
            found[named] = single[0]
        elif _sends_another(several):
            found[named] = several[-1]
    return found


def _sends_another(group: Sequence[DatedItem]) -> bool:
    """Return whether the last of several updates by one process sent another state than the one before it."""
    if len(group) == 1:
        return False
    before, last = (one.observation for one in group[-2:])
    if not (is_as_sent(before) and is_as_sent(last)):
        return False
    is_by_one = all(one.observation.writer == last.writer for one in group) and bool(last.writer and last.writer.uid)
    return is_by_one and _get_spec(before) != _get_spec(last)


def _get_spec(seen: Observation) -> LeaseSpec | None:
    return seen.object.spec if isinstance(seen.object, Lease) else None


def _has_patched_nothing(patch: DatedItem, states: Sequence[DatedItem]) -> bool:
    """Return whether a patch asked for what was stored: a watch shows no state that it may have made."""
    seen = patch.observation
    if seen.asked_changes is None or seen.object is not None:
        return False
    first = bisect_left(states, _get_time_of_receipt(patch) - TOLERANCE, key=by_time)
    near = states[max(0, first - 1) : bisect_right(states, patch.time + TOLERANCE, key=by_time)]
    is_watched = all(one.observation.is_watched for one in near)
    if not is_watched or not all(one.is_exact for one in near[1:]):
        return False
    specs = [one.observation.object.spec for one in near if isinstance(one.observation.object, Lease)]
    return any(patch_spec(spec, seen.asked_changes) == spec for spec in specs)


def _is_unanswered(seen: Observation) -> bool:
    """Return whether a log shows of an update what it replaced, and not what was stored."""
    return bool(seen.replaces) and (seen.object is None or is_as_sent(seen))


def _mark_logged(states: Iterable[DatedItem], writes: Sequence[DatedItem]) -> None:
    """Mark the states of a watch that a write of the log may have made, by their stamps, each write one of them.

    In the second in which the log begins to have writes, it lacks those before.
    """
    left = deque(writes)
    for state in states:
        stamp = None if state.is_deletion else state.observation.latest_stamp
        while stamp is not None and left and left[0].time < stamp:
            left.popleft()
        if stamp is None or not left or _get_time_of_receipt(left[0]) >= stamp + SECOND:
            continue
        if stamp > _get_time_of_receipt(writes[0]):
            left.popleft()
        if not state.is_exact:
            state.item = replace(state.observation, may_be_logged=True)


def _get_time_of_receipt(write: DatedItem) -> int:
    return write.time - write.observation.took


def _find_makers_in_turn(
    states: Sequence[DatedItem], writes: Sequence[DatedItem], used: Collection[int]
) -> Iterator[tuple[int, DatedItem]]:
    """Yield the numbers of states that follow each other, and their makers, of which stamps do not tell the order.

    Several writers may write in one second. Where one log has as many writes as states between those around them, those
    are in its order that were answered before the next one came, and came after the one before was answered.
    """
    for start, end in _find_runs(states):
        before = find_exact_time(states, range(start - 1, -1, -1), -1)
        after = find_exact_time(states, range(end, len(states)), None)
        near = _list_between(writes, before, after, used, most=end - start + 1)
        around = [states[number] for number in (start - 1, end) if 0 <= number < len(states)]
        logs = {one.observation.log_path for one in (*near, *around)}
        pairs = list(zip(range(start, end), near, strict=False))
        is_whole = len(near) == end - start and len(logs) == 1
        if is_whole and all(is_stamped_by(one.observation, states[number].observation) for number, one in pairs):
            are_apart = [True, *(one.time <= _get_time_of_receipt(next_) for one, next_ in pairwise(near)), True]
            yield from (pair for pair, *around in zip(pairs, are_apart, are_apart[1:], strict=False) if all(around))


def _list_between(
    writes: Sequence[DatedItem], before: int, after: int | None, used: Collection[int], *, most: int
) -> Sequence[DatedItem]:
    """Return the first writes from one instant to another that made no other state, and no more than are asked for."""
    start = bisect_left(writes, before, key=by_time)
    end = len(writes) if after is None else bisect_right(writes, after, key=by_time)
    return list(islice((writes[number] for number in range(start, end) if id(writes[number]) not in used), most))


def _find_runs(states: Sequence[DatedItem]) -> Iterator[tuple[int, int]]:
    """Yield from where to where several states follow each other without a request, of writes that have stamps."""
    start = 0
    for number, state in enumerate((*states, None)):
        if state is not None and not state.is_exact and not state.is_deletion and state.observation.latest_stamp:
            continue
        if 1 < number - start <= _MAX_IN_TURN:
            yield start, number
        start = number + 1


def _drop_displaced_patches(
    makers: dict[int, tuple[DatedItem, DatedItem]], states: list[DatedItem], *, is_before: bool
) -> Iterator[DatedItem]:
    """Yield the patches that came after the state that follows, or before the one before (`is_before`); unjoin those.

    Anyone may patch a lease with the renewTime that it has, which changes nothing.
    """
    for number, (maker, shown) in makers.items():
        if not maker.observation.patched_renew_time:
            continue
        near = range(number - 1, -1, -1) if is_before else range(number + 1, len(states))
        other = find_exact_time(states, near, maker.time)
        if maker.time < other - TOLERANCE if is_before else other < maker.time - TOLERANCE:
            states[number] = shown
            yield maker


def _unjoin_patches(makers: dict[int, tuple[DatedItem, DatedItem]], states: list[DatedItem]) -> Iterator[DatedItem]:
    """Yield the patches that were joined by the renewTime that they asked for, and unjoin them."""
    for number, (maker, shown) in makers.items():
        if maker.observation.patched_renew_time:
            states[number] = shown
            yield maker


def _list_rewritten_fields(states: Sequence[DatedItem]) -> set[str]:
    """Return the fields of which a log shows that writes were stored with other values than they asked for."""
    return {one.field for state in states if state.is_stored_write for one in state.observation.rewritings}


def _forget_what_was_sent(seen: DatedItem) -> None:
    """Discard the content of a write but keep the fact that it happened.

    Where holders are rewritten, the request differs from what was stored.
    """
    if isinstance(seen.item, Observation) and is_as_sent(seen.item):
        seen.item = replace(seen.item, object=None)
