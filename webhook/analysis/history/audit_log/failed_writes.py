"""Writes whose answer says that they failed, and which were stored all the same, or may have been.

An API server that loses etcd, or whose request times out, does not know what becomes of a write: etcd may store it when
the answer is long sent. What follows may show it: the next state is what the write asked for, or another write replaced
the state that it was to replace.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.analysis.inputs.items import Act, Observation, parse_number
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND, normalize

_WRITES: Final = frozenset({Act.CREATED, Act.UPDATED})
_FAILED: Final = 500
_TIMEOUT: Final = 504
_UNKNOWN: Final = re.compile(r"timed out|deadline exceeded|context canceled|leader changed")
"""What an API server says that does not know what became of a request to etcd."""
_BEFORE_STORAGE: Final = "failed calling webhook"
"""How an API server answers a write that got no further than admission."""


def has_failed(seen: Observation) -> bool:
    """Return whether an API server answered that it was unable to store a write."""
    return seen.act in _WRITES and seen.answer is not None and seen.answer.code >= _FAILED and not seen.is_dry_run


def find_outcomes(order: Sequence[Observation]) -> Iterator[tuple[Observation, bool | None, Observation | None]]:
    """Yield each write of one object that failed, whether it was stored all the same, and the state that it made then.

    Whether it was is None where the inputs do not show it. `order` is what they show of the object, in order.
    """
    failed = [number for number, one in enumerate(order) if has_failed(one)]
    states = [one for one in order if _is_state(one)] if failed else []
    # If several states have one version, the first of them counts.
    following = {parse_number(before.resource_version): after for before, after in reversed([*pairwise(states)])}
    found = [(number, _find_state_made(order[number], following)) for number in failed]
    without_place = _find_numbers_without_place(order) if failed else frozenset()
    made = Counter(id(state) for _, state in found if state is not None)
    # What is stored is replaced by one write only.
    replaced = {one.replaces for one in states}
    replaced |= {order[number].replaces for number, state in found if state is not None}
    for number, state in found:
        request = order[number]
        if state is None:
            is_excluded = request.replaces in replaced if request.replaces else number in without_place
            may_be_stored = _is_unknown(request) and not is_excluded
            yield request, None if may_be_stored else False, None
        elif made[id(state)] > 1:
            yield request, None, None  # one of several requests that asked for the same made it
        else:
            yield request, True, state


def _is_state(seen: Observation) -> bool:
    return seen.is_stored and seen.act is not Act.READ


def _find_state_made(request: Observation, following: Mapping[int, Observation]) -> Observation | None:
    """Return the state after the one that an update was to replace, if no other request made it and it is as asked.

    `following` are the states that come after others, by the versions of those.
    """
    replaced = parse_number(request.replaces)
    state = following.get(replaced) if replaced else None
    return state if state is not None and _is_as_asked(request, state) else None


def _is_as_asked(request: Observation, state: Observation) -> bool:
    """Return whether a state of which no log shows the request has what a request asked for, with a stamp of its time.

    An API server stamps a write when it has received it, in whole seconds.
    """
    asked, stored = request.asked, state.object
    is_logged = bool(state.verb) or request.at is None
    is_by_another = state.writer is not None and not state.writer.is_same(request.writer)
    if is_logged or is_by_another or asked is None or not isinstance(stored, Lease):
        return False
    if asked.spec.renew_time is None or normalize_times(asked.spec) != normalize_times(stored.spec):
        return False
    return state.latest_stamp is None or may_stamp(request, state.latest_stamp)


def may_stamp(request: Observation, stamp: int) -> bool:
    """Return whether an API server that had a request may have stamped so: stamps are whole seconds."""
    assert request.at is not None
    return (request.at - request.took) // SECOND * SECOND <= stamp <= request.at


def normalize_times(spec: LeaseSpec) -> tuple[LeaseSpec, int | str | None, int | str | None]:
    """Return a spec so that those which differ only in how they write their times are equal."""
    plain = replace(spec, renew_time=None, acquire_time=None)
    return plain, normalize(spec.renew_time), normalize(spec.acquire_time)


def _is_unknown(request: Observation) -> bool:
    """Return whether an API server did not know whether it stored a write that it says has failed."""
    assert request.answer is not None
    message = request.answer.message
    return (request.answer.code == _TIMEOUT or bool(_UNKNOWN.search(message))) and _BEFORE_STORAGE not in message


def _find_numbers_without_place(order: Sequence[Observation]) -> frozenset[int]:
    """Return the numbers of the order at which other writes leave no place for one that failed.

    Each state from the one before it on was replaced by the next one, or the first one that there is was created.
    """
    full: set[int] = set()
    between: list[int] = []
    after: Observation | None = None
    for number in range(len(order) - 1, -1, -1):
        state = order[number]
        if not _is_state(state):
            between.append(number)
            continue
        if after is not None:
            if not after.replaces or after.replaces != state.resource_version:
                return frozenset(full)
            full.update(between)
        between, after = [], state
    if after is not None and after.act is Act.CREATED:
        full.update(between)
    return frozenset(full)
