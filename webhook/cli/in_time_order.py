"""Several inputs as one stream in the order of time: a watch and the audit log of the same hour, rotated logs.

Each input is in order already, or nearly so; one is open only while its time has come.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import Final

from webhook.api.objects import Lease
from webhook.cli.observed import Input
from webhook.cli.sources import STANDARD_INPUT
from webhook.history.moments import written_at
from webhook.observations.observation import Fenced, Item, LogEnd, Observation
from webhook.rules.times import SECOND

AFTER_LOG: Final = SECOND
"""How much later an object counts that does not say when it was seen: its stamps have whole seconds, and an audit log,
which knows the writer too, should come first."""
MOST_OPEN: Final = 500
"""Inputs that are read at the same time; a process may have 1024 open files, and a directory may hold more dumps."""
_MOST_PEEKED: Final = 1000
"""Items without a time at the start of an input, before it counts as one without."""

_Ready = tuple[int, int, Item, Iterator[Item]]
"""When an item was seen, a number that is no other's, the item, and what follows it in its input."""


def in_order_of_time(inputs: Iterable[Input], latest: int) -> Iterator[Item]:
    """Every item of all inputs, in order as far as they are; moments after `latest` are not believed."""
    numbers = count()
    waiting = [(_first_time(one, latest), next(numbers), one) for one in inputs]
    heapq.heapify(waiting)
    ready: list[_Ready] = []
    while waiting or ready:
        while waiting and len(ready) < MOST_OPEN and (not ready or waiting[0][0] <= ready[0][0]):
            _take_next(ready, next(numbers), heapq.heappop(waiting)[2].read(), 0, latest)
        if ready:
            before, _, item, rest = heapq.heappop(ready)
            yield item
            _take_next(ready, next(numbers), rest, before, latest)


def _take_next(ready: list[_Ready], number: int, rest: Iterator[Item], before: int, latest: int) -> None:
    item = next(rest, None)
    if item is not None:
        at = _time_of(item, latest)
        heapq.heappush(ready, (before if at is None else at, number, item, rest))


def _first_time(one: Input, latest: int) -> int:
    """When an input begins; 0 if that cannot be known, or not without losing what is read."""
    if one.path == STANDARD_INPUT:
        return 0
    times = (_time_of(item, latest) for item in islice(one.read(), _MOST_PEEKED))
    return next((at for at in times if at is not None), 0)


def _time_of(item: Item, latest: int) -> int | None:
    at = None
    if isinstance(item, LogEnd | Fenced):
        at = item.at
    elif isinstance(item, Observation):
        at = item.at
        if at is None:
            stamps = [item.latest_stamp]
            if isinstance(item.object, Lease):
                stamps.append(written_at(item.object.spec, item.entries))
            seen = max((stamp for stamp in stamps if stamp is not None), default=None)
            at = None if seen is None else seen + AFTER_LOG
    return None if at is None or at > latest else at
