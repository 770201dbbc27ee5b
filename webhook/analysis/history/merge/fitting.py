"""The requests of a log that may have made one state, of all that it shows.

They are grouped once: to compare each state with each request would take minutes for an hour of renewals.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from webhook.analysis.history.merge.dated import JITTER, TOLERANCE, DatedItem
from webhook.analysis.history.merge.makers import get_renew_time, has_set, is_renewal, is_update_of, may_have_made
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
    requests: LoggedRequests, states: Sequence[DatedItem], number: int, *, used: Collection[int]
) -> Sequence[DatedItem]:
    """Return the requests that fit the state at a number best; those whose id is in `used` made other states."""
    state = states[number]
    if state.is_deletion:
        return _find_deletions([one for one in requests.deletions if id(one) not in used], states, number)
    stamp = state.observation.latest_stamp
    if stamp is None:
        near = requests.successors.get(_find_replaced(states, number), ())
    else:
        near = _find_writes_near(requests.writes, stamp, requests.longest)
    makers = [one for one in near if id(one) not in used and may_have_made(one.observation, states, number)]
    return _select_makers(makers, states, number) or [
        *(_find_patches(requests.patches, used, states, number) if stamp is None else ()),
        *_find_only_patch(requests.writes, used, states, number),
    ]


def _select_makers(fitting: list[DatedItem], states: Sequence[DatedItem], number: int) -> list[DatedItem]:
    """Return those of the requests that fit a state which show best that they made it."""
    if number and states[number - 1].is_deletion:
        return [one for one in fitting if one.is_creation] or fitting
    if having_set := [one for one in fitting if has_set(one.observation, states, number)]:
        return having_set
    # An update that names the state before has made this one: a patch names none.
    return [one for one in fitting if is_update_of(one.observation, states, number)] or fitting


def _find_deletions(deletions: Sequence[DatedItem], states: Sequence[DatedItem], number: int) -> Sequence[DatedItem]:
    """Return the deletions that may be the one of a state: by the times of the states before and after it.

    Whoever writes managedFields dates what it writes as it likes. By exact times alone only one may be meant.
    """
    before = states[number - 1].time if number else -1
    after = states[number + 1].time if number + 1 < len(states) else None
    if fitting := [one for one in deletions if _is_between(before, one.time, after)]:
        return fitting
    before = find_exact_time(states, range(number - 1, -1, -1), -1)
    after = find_exact_time(states, range(number + 1, len(states)), None)
    fitting = [one for one in deletions if _is_between(before, one.time, after)]
    return fitting if len(fitting) == 1 else ()


def _is_between(before: int, at: int, after: int | None) -> bool:
    return before - TOLERANCE <= at and (after is None or at <= after + TOLERANCE)


def _find_writes_near(writes: Sequence[DatedItem], stamp: int, longest: int) -> Sequence[DatedItem]:
    """Return the writes whose times allow that they made a state with this stamp; none took more than `longest`."""
    begin = bisect_left(writes, stamp, key=_get_time_of_answer)
    end = bisect_left(writes, stamp + SECOND + longest, key=_get_time_of_answer)
    return writes[begin:end]


def _find_patches(
    patches: Mapping[int | str | None, Sequence[DatedItem]],
    used: Collection[int],
    states: Sequence[DatedItem],
    number: int,
) -> Sequence[DatedItem]:
    """Return the patches that may have made a renewal without a stamp: those that asked for its renewTime."""
    if not is_renewal(states, number):
        return []
    asking = [one for one in patches.get(get_renew_time(states[number]), ()) if id(one) not in used]
    before = find_exact_time(states, range(number - 1, -1, -1), -1)
    return [one for one in asking if one.time >= before - JITTER] or asking


def _find_only_patch(
    writes: Sequence[DatedItem], used: Collection[int], states: Sequence[DatedItem], number: int
) -> Sequence[DatedItem]:
    """Return the patch that made a state which left renewTime as it was, if the log has only one at that time.

    `writes` are in the order of their answers; those whose id is in `used` made other states.
    """
    if is_renewal(states, number):
        return ()
    before = find_exact_time(states, range(number - 1, -1, -1), -1)
    after = find_exact_time(states, range(number + 1, len(states)), None)
    begin = bisect_left(writes, before - TOLERANCE, key=_get_time_of_answer)
    end = len(writes) if after is None else bisect_left(writes, after + TOLERANCE, key=_get_time_of_answer)
    some = writes[begin : min(end, begin + _MAX_NEAR)]
    near = [one for one in some if one.observation.verb == "patch" and id(one) not in used]
    stamp = states[number].observation.latest_stamp
    if end - begin > _MAX_NEAR or len(near) != 1 or (stamp is not None and near[0].time < stamp):
        return ()
    asked = normalize(near[0].observation.patched_renew_time)
    return near if asked is not None and asked == get_renew_time(states[number]) else ()


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
