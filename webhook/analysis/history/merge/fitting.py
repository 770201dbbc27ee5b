"""The requests of a log that may have made one state, of all that it shows.

They are grouped once: to compare each state with each request would take minutes for an hour of renewals.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from webhook.analysis.history.merge.dated import JITTER, TOLERANCE, DatedItem, is_hidden_write
from webhook.analysis.history.merge.makers import (
    find_stamp_of_write,
    get_renew_time,
    has_made,
    has_made_another,
    is_as_asked,
    is_known_maker,
    is_renewal,
    may_have_made,
)
from webhook.analysis.inputs.items import Act, parse_number
from webhook.kubernetes.times import SECOND, normalize

_WRITES: Final = frozenset({Act.CREATED, Act.UPDATED})
_MAX_NEAR: Final = 100
"""Writes between two whose times are exact; of more than that, none is looked for."""

_Default = TypeVar("_Default", int, None)


@dataclass(frozen=True)
class LoggedRequests:
    """The requests of a log that may have made states, each as it is looked for."""

    deletions: Sequence[DatedItem]
    writes: Sequence[DatedItem]
    """In the order of their answers."""
    longest: int
    """What the longest of these writes took."""
    successors: Mapping[int, Sequence[DatedItem]]
    """The writes by the revision that they replaced, 0 for creations, and where a log does not show it."""
    patches: Mapping[int | str | None, Sequence[DatedItem]]
    """The patches of which a log shows the renewTime that they asked for, by that."""


@dataclass(frozen=True)
class ExactTimes:
    """The exact times nearest to that of a state: -1 without any before it, None without any after it."""

    before: int
    after: int | None


def group_requests(items: Sequence[DatedItem]) -> LoggedRequests:
    """Return those of what a log shows that may have made states."""
    writes = sorted(filter(_is_exact_write, items), key=_get_time_of_answer)
    return LoggedRequests(
        deletions=[one for one in items if one.is_deletion and one.is_stored_write],
        writes=writes,
        longest=max((one.observation.took for one in writes), default=0),
        successors=_group_by_replaced(writes),
        patches=_group_patches(writes),
    )


def find_fitting(
    requests: LoggedRequests,
    states: Sequence[DatedItem],
    number: int,
    *,
    used: Collection[int],
    exact: ExactTimes,
) -> Sequence[DatedItem]:
    """Return the requests that fit the state at a number best; those whose id is in `used` made other states."""
    state = states[number]
    if state.is_deletion:
        deletions = [one for one in requests.deletions if id(one) not in used]
        return _find_deletions(deletions, states, number, exact=exact)
    stamp = find_stamp_of_write(states, number)
    if stamp is None:
        near = requests.successors.get(_find_replaced(states, number), ())
    else:
        near = _find_writes_near(requests.writes, stamp, requests.longest)
    makers = [one for one in near if id(one) not in used and may_have_made(one.observation, states, number)]
    if known := _select_known_makers(makers, states, number):
        return known
    if stamp is None:
        fitting = {id(one) for one in makers}
        asking = _find_patches(requests.patches, used, states, number, exact=exact)
        makers += [one for one in asking if id(one) not in fitting]
    if not makers:
        return _find_only_patch(requests, used, states, number, exact=exact)
    if stamp is None:
        near = _list_writes_while_current(requests, states, number, exact=exact)
    return [*makers, *_find_possible_patches(near, states, number, used=used, makers=makers)]


def _find_possible_patches(
    near: Sequence[DatedItem],
    states: Sequence[DatedItem],
    number: int,
    *,
    used: Collection[int],
    makers: Sequence[DatedItem],
) -> Iterator[DatedItem]:
    """Yield the patches near a state that may have made it, too, beside the writes that fit it.

    Such a write may have changed nothing, and a patch names no state that it replaces. Where a webhook or policy
    changed what was asked for, a patch may have asked for anything.
    """
    is_rewritten = not any(is_as_asked(one.observation, states[number].observation) for one in makers)
    fitting = {id(one) for one in makers}
    for item in near:
        is_patch = item.observation.verb == "patch" and not item.observation.is_beside_spec
        is_open = is_patch and id(item) not in used and id(item) not in fitting
        if is_open and (is_rewritten or not has_made_another(item.observation, states, number)):
            yield item


def _select_known_makers(fitting: list[DatedItem], states: Sequence[DatedItem], number: int) -> list[DatedItem]:
    """Return those of the requests that fit a state of which the log shows that they made it.

    Any other one may have changed nothing: anyone may update or patch a lease with the values that it has.
    """
    if number and states[number - 1].is_deletion:
        return [one for one in fitting if one.is_creation]
    return [one for one in fitting if is_known_maker(one.observation, states, number)]


def _find_deletions(
    deletions: Sequence[DatedItem], states: Sequence[DatedItem], number: int, *, exact: ExactTimes
) -> Sequence[DatedItem]:
    """Return the deletions that may be the one of a state: by the times of the states before and after it.

    Whoever writes managedFields dates what it writes as it likes. By exact times alone only one may be meant.
    """
    before = states[number - 1].time if number else -1
    after = states[number + 1].time if number + 1 < len(states) else None
    if fitting := [one for one in deletions if _is_between(before, one.time, after)]:
        return fitting
    fitting = [one for one in deletions if _is_between(exact.before, one.time, exact.after)]
    return fitting if len(fitting) == 1 else ()


def _is_between(before: int, at: int, after: int | None) -> bool:
    return before - TOLERANCE <= at and (after is None or at <= after + TOLERANCE)


def _find_writes_near(writes: Sequence[DatedItem], stamp: int, longest: int) -> Sequence[DatedItem]:
    """Return the writes whose times allow that they made a state with this stamp; none took more than `longest`."""
    start = bisect_left(writes, stamp, key=_get_time_of_answer)
    end = bisect_left(writes, stamp + SECOND + longest, key=_get_time_of_answer)
    return writes[start:end]


def _find_patches(
    patches: Mapping[int | str | None, Sequence[DatedItem]],
    used: Collection[int],
    states: Sequence[DatedItem],
    number: int,
    *,
    exact: ExactTimes,
) -> Sequence[DatedItem]:
    """Return the patches that may have made a renewal without a stamp: those that asked for its renewTime."""
    if not is_renewal(states, number):
        return []
    asking = [one for one in patches.get(get_renew_time(states[number]), ()) if id(one) not in used]
    return [one for one in asking if one.time >= exact.before - JITTER] or asking


def _find_only_patch(
    requests: LoggedRequests, used: Collection[int], states: Sequence[DatedItem], number: int, *, exact: ExactTimes
) -> Sequence[DatedItem]:
    """Return the patch that made a state, if no other write may have at that time.

    It made the state of what there was before, or left renewTime as it was and asked for the same. Those whose id is in
    `used` made other states.
    """
    some = _list_writes_while_current(requests, states, number, exact=exact)
    few = some if len(some) <= _MAX_NEAR else ()
    near = [one for one in few if id(one) not in used and (one.observation.verb == "patch" or is_hidden_write(one))]
    near = [one for one in near if not has_made_another(one.observation, states, number)]
    stamp = find_stamp_of_write(states, number)
    if not near or (stamp is not None and near[0].time < stamp):
        return ()
    is_replaced_dated = number > 0 and states[number - 1].is_exact
    if len(near) > 1 and not (is_replaced_dated and near[0].time >= exact.before):
        return ()  # the first one may have come before the state that this one replaced, and made an earlier one
    if len({one.observation.writer for one in near}) == 1 and all(
        has_made(one.observation, states, number) for one in near
    ):
        return near[:1]  # those after it changed nothing
    if len(near) > 1:
        return ()
    asked = normalize(near[0].observation.patched_renew_time)
    is_unrenewed = not is_renewal(states, number)
    return near if is_unrenewed and asked is not None and asked == get_renew_time(states[number]) else ()


def _list_writes_while_current(
    requests: LoggedRequests, states: Sequence[DatedItem], number: int, *, exact: ExactTimes
) -> Sequence[DatedItem]:
    """Return the writes that may have come when the state before was current, and before another one replaced this one.

    A write that names a state found it, whether it changed it or not. There is at most one more than are compared.
    """
    replaced, own, writes = _find_replaced(states, number), states[number].revision, requests.writes
    found = requests.successors.get(replaced, ()) if replaced else ()
    replacing = requests.successors.get(own, ()) if own else ()
    first = max(exact.before, *(one.time - one.observation.took for one in found), -1)
    ends = [*map(_get_time_of_answer, replacing), *(() if exact.after is None else (exact.after,))]
    start, last = bisect_left(writes, first - TOLERANCE, key=_get_time_of_answer), min(ends, default=None)
    end = len(writes) if last is None else bisect_right(writes, last + TOLERANCE, key=_get_time_of_answer)
    return writes[start : min(end, start + _MAX_NEAR + 1)]


def find_exact_time(states: Sequence[DatedItem], numbers: Iterable[int], default: _Default) -> int | _Default:
    """Return the time of the first of these states that is exact."""
    return next((states[one].time for one in numbers if states[one].is_exact), default)


def _find_replaced(states: Sequence[DatedItem], number: int) -> int:
    """Return the revision that a state replaced, as far as is known: 0 if there was none, or if it was not seen."""
    return states[number - 1].revision if number and not states[number - 1].is_deletion else 0


def _is_exact_write(seen: DatedItem) -> bool:
    """Return whether a log shows that something was created or updated."""
    if not (seen.is_stored_write and seen.is_exact):
        return False
    return seen.observation.act in _WRITES and not seen.observation.problem


def _group_by_replaced(writes: Sequence[DatedItem]) -> dict[int, list[DatedItem]]:
    groups: dict[int, list[DatedItem]] = {}
    for write in writes:
        groups.setdefault(parse_number(write.observation.replaces), []).append(write)
    return groups


def _group_patches(writes: Sequence[DatedItem]) -> dict[int | str | None, list[DatedItem]]:
    groups: dict[int | str | None, list[DatedItem]] = {}
    for patch in writes:
        if asked := normalize(patch.observation.patched_renew_time):
            groups.setdefault(asked, []).append(patch)
    return groups


def _get_time_of_answer(seen: DatedItem) -> int:
    at = seen.observation.at
    assert at is not None
    return at
