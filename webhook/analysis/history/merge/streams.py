"""The items of all inputs by their times, as ordered as each input is, with few inputs open at once."""

import heapq
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Final

from webhook.analysis.history.visibility.dating import date_by_itself
from webhook.analysis.inputs.items import (
    STANDARD_INPUT,
    FenceReport,
    Input,
    Item,
    LogEnd,
    ObjectAbsence,
    Observation,
    PodActivity,
    PodDeletion,
    PodRequest,
    RelatedWrite,
)
from webhook.analysis.inputs.stamp_reader import StampReader
from webhook.kubernetes.times import SECOND

AFTER_LOG: Final = SECOND
"""How much later an object counts that does not say when it was seen: its stamps have whole seconds, and an audit log,
which knows the writer too, should come first."""
MAX_OPEN: Final = 500
"""Inputs that are read at the same time; a process may have 1024 open files, and a directory may hold more dumps."""
_DATED: Final = (
    LogEnd | FenceReport | PodDeletion | PodRequest | PodActivity | RelatedWrite | ObjectAbsence | Observation
)
"""Items of an audit log, or that may be of one: those have the time of a request."""
_MAX_PEEKED: Final = 1000
"""Items without a time at the start of an input, before it counts as one without."""


def merge_by_time(inputs: Sequence[Input], latest: int, stamps: StampReader) -> Iterator[Item]:
    """Yield every item of all inputs, as ordered as each input is; none is opened before its time has come."""
    if len(inputs) == 1:
        yield from inputs[0].read()
        return
    numbers = count()
    waiting = [(_find_first_time(one, latest, stamps), next(numbers), one) for one in inputs]
    heapq.heapify(waiting)
    ready: list[tuple[int, int, Item, Iterator[Item]]] = []

    def take_next(rest: Iterator[Item], before: int) -> None:
        item = next(rest, None)
        if item is not None:
            at = estimate_time(item, latest, stamps)
            heapq.heappush(ready, (before if at is None else at, next(numbers), item, rest))

    while waiting or ready:
        while waiting and len(ready) < MAX_OPEN and (not ready or waiting[0][0] <= ready[0][0]):
            take_next(heapq.heappop(waiting)[2].read(), 0)
        if ready:
            before, _, item, rest = heapq.heappop(ready)
            yield item
            take_next(rest, before)


def _find_first_time(source: Input, latest: int, stamps: StampReader) -> int:
    """Return when an input begins; 0 if that cannot be known, or not without losing what is read."""
    if source.path == STANDARD_INPUT:
        return 0
    times = (estimate_time(item, latest, stamps) for item in islice(source.read(), _MAX_PEEKED))
    return next((at for at in times if at is not None), 0)


def estimate_time(item: Item, latest: int, stamps: StampReader) -> int | None:
    """Return when something was seen, or else about when it was written; none after `latest` is believed."""
    at = item.at if isinstance(item, _DATED) else None
    if at is None and isinstance(item, Observation):
        seen = date_by_itself(item, stamps)
        at = None if seen is None else seen + AFTER_LOG
    return None if at is None or at > latest else at
