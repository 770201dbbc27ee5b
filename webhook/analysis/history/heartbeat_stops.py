"""The heartbeats of nodes and API servers, compared: which stopped at one time, and how many did not.

In: the leases of a cluster, which may be those of thousands of nodes, each of which asks about the others after an
outage. So stops are kept in order of time, and of very many heartbeats a sample says whether others went on.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final, Self

from msgspec import Struct

from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import Renewals, Silence
from webhook.kubernetes.times import SECOND

MAX_COMPARED: Final = 200
"""Heartbeats that are looked at for whether they went on if there are twice as many or more; of fewer all are."""
_MISSED: Final = 3
"""A heartbeat has stopped that was not renewed for so many of its usual intervals."""
_MIN_USUAL: Final = 4 * SECOND
"""What is renewed more often may miss two renewals in an outage in which another one misses none."""


class Stop(Struct, frozen=True):
    """A long time without a renewal of a heartbeat that is usually renewed each `usual` microseconds."""

    history: LeaseHistory
    silence: Silence
    usual: int

    @property
    def start(self) -> int:
        """The last renewal before it, in microseconds since 1970."""
        return self.silence.start


class Heartbeats(Struct, frozen=True):
    """Heartbeats of a known rhythm, and their stops in order of time."""

    stops: Sequence[Stop]
    longest_usual: int
    compared: Sequence[LeaseHistory]
    """The heartbeats that are compared with those that stopped."""
    is_sample: bool

    @classmethod
    def from_histories(cls, heartbeats: Collection[LeaseHistory], until: int | None) -> Self:
        """Return what is compared of heartbeats, by their history `until` the end of the input."""
        known = [one for one in heartbeats if one.current_tenure is not None and _get_usual(one) >= _MIN_USUAL]
        known.sort(key=attrgetter("namespace", "name"))
        step = max(1, len(known) // MAX_COMPARED)
        stops = sorted(chain.from_iterable(_list_stops(one, until) for one in known), key=attrgetter("start"))
        return cls(stops, max(map(_get_usual, known), default=0), known[::step], is_sample=step > 1)

    def find_stops(self, history: LeaseHistory, start: int, due: int) -> list[Stop]:
        """Return the first stop of each other heartbeat that began from an interval before `start` to `due`."""
        first = bisect_left(self.stops, start - self.longest_usual - SECOND, key=attrgetter("start"))
        near = self.stops[first : bisect_right(self.stops, due, key=attrgetter("start"))]
        found: dict[tuple[str, str], Stop] = {}
        for stop in near:
            if stop.history is not history and stop.start >= start - stop.usual - SECOND:
                found.setdefault((stop.history.namespace, stop.history.name), stop)
        return list(found.values())

    def count_others_that_went_on(self, history: LeaseHistory, start: int, end: int) -> int:
        """Return how many of those that are looked at were renewed before, meanwhile and after, without a miss."""
        others = (one.renewals for one in self.compared if one is not history)
        return sum(1 for one in others if one.has_renewals_around(start, end) and not _has_missed(one, start, end))


def _get_usual(history: LeaseHistory) -> int:
    return history.renewals.usual or 0


def _list_stops(history: LeaseHistory, until: int | None) -> Iterator[Stop]:
    """Yield the long times without a renewal: between two of its own, and since the last one."""
    renewals, usual = history.renewals, _get_usual(history)
    last = [Silence(renewals.last, until)] if renewals.last is not None and until is not None else []
    for silence in (*renewals.silences, *last):
        is_unseen = any(hole.start < silence.end and silence.start < hole.end for hole in renewals.unseen)
        if silence.length >= _MISSED * usual and not is_unseen:
            yield Stop(history, silence, usual)


def _has_missed(renewals: Renewals, start: int, end: int) -> bool:
    """Return whether a lease may have missed a renewal in that time."""
    unseen = any(one.start < end and start < one.end for one in renewals.unseen)
    return unseen or renewals.find_longest_silence(start, end) > 0
