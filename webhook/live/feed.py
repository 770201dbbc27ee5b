"""A live timeline in bounded memory: threads add observations, and listeners get what has changed."""

import threading
import time
from collections.abc import Iterable
from statistics import median_low
from typing import Final

from msgspec import Struct

from webhook.api.objects import Lease
from webhook.api.times import SECOND
from webhook.history.follow import Key
from webhook.history.status import written_at
from webhook.inputs.cluster import LEASES
from webhook.inputs.items import Act, Item, Observation
from webhook.live.watch import Listing
from webhook.rules.expiry import BOUND, MAX_TOLERANCE
from webhook.timeline.lanes import TimelineBuilder
from webhook.timeline.model import Timeline

MAX_TICKS: Final = 100_000
"""Renewals of all leases together that are drawn one by one."""
_MEASURED: Final = 64
"""Leases by whose writes the clocks are compared, each by its latest one: one with forged stamps is outvoted."""
_MAX_SEARCH: Final = 0.2
"""Seconds in which causes are sought for one message."""


class Change(Struct, frozen=True):
    """The changes since a version: lanes, if any changed, the moment by the API server's clock, and what to say."""

    version: int
    timeline: Timeline
    status: str
    has_ended: bool


class Feed:
    """One timeline; every method may be called from any thread."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._builder = TimelineBuilder(_now() + BOUND, max_ticks=MAX_TICKS)
        self._listing = Listing()
        self._version = 1
        self._versions: dict[Key, int] = {}
        self._delays: dict[Key, int] = {}
        self._shown_until = 0
        self._status = ""
        self._has_ended = False
        self._stands_still = False

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        with self._changed:
            return self._version

    def observe(self, item: Item) -> None:
        """Take in one item."""
        with self._changed:
            # The API server's clock may be ahead of this computer's.
            self._builder.clock = _now() + BOUND
            if isinstance(item, Observation) and item.kind == "Lease":
                self._listing.note(item, _now() / SECOND)
                self._measure(item)
            self._take(item)

    def read(self, items: Iterable[Item]) -> None:
        """Take in all that an input has."""
        for item in items:
            self.observe(item)
        self.stand_still("The input has ended.")

    def began(self, _: str = LEASES) -> None:
        """Note that the watch begins, perhaps again: at first it lists every lease that there is."""
        with self._changed:
            leases = self._builder.follower.leases.items()
            self._listing.begin({key for key, history in leases if not history.is_deleted})

    def show_status(self, status: str) -> None:
        """Set what the page says about the connection to the cluster."""
        with self._changed:
            self._status = status
            self._note(())

    def stand_still(self, status: str) -> None:
        """End the input: what it says goes no further than its last moment."""
        self._stands_still = True
        self.show_status(status)

    def end(self, why: str) -> None:
        """End the timeline: no more changes follow."""
        self._has_ended = True
        self.show_status(why)

    def wait(self, version: int, seconds: float) -> None:
        """Return when there is something newer than a version, at the latest after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > version or self._has_ended, seconds)

    def since(self, version: int) -> Change:
        """Return what has changed since a version; 0 is before everything."""
        with self._changed:
            for gone in self._listing.gone(_now() / SECOND):
                self._take(gone)
            ends = self._ends()
            # A lease that is not renewed has changed, without an observation.
            if overdue := self._builder.overdue_between(self._shown_until, ends):
                self._note(overdue)
            self._shown_until = ends
            keys = sorted(key for key, changed in self._versions.items() if changed > version)
            self._version = max([self._version, *(self._versions[key] for key in keys)])
            self._explain(keys, ends)
            timeline = self._builder.timeline(ends, (self._source,), keys=keys)
            return Change(self._version, timeline, self._status, self._has_ended)

    def _explain(self, keys: Iterable[Key], ends: int) -> None:
        """Seek causes for a limited time; leases that remain, or are undecided, follow with the next change."""
        began = time.monotonic()
        left = [key for key in keys if time.monotonic() - began > _MAX_SEARCH or not self._builder.explain(key, ends)]
        self._versions.update(dict.fromkeys(left, self._version + 1))

    def _measure(self, item: Observation) -> None:
        """Measure how late this computer learns of a write: the difference of the clocks, plus the latency."""
        if item.act is not Act.UPDATED or not isinstance(item.object, Lease):
            return
        at = written_at(item.object.spec, item.entries) if item.at is None else item.at
        if at is not None:
            key = (item.namespace, item.name)
            self._delays.pop(key, None)
            self._delays[key] = _now() - at
            if len(self._delays) > _MEASURED:
                del self._delays[next(iter(self._delays))]

    def _ends(self) -> int:
        """Return the present moment by the API server's clock, as far as that can be known."""
        if self._stands_still and self._builder.follower.bounds.until is not None:
            return self._builder.follower.bounds.until
        until = self._builder.follower.bounds.until or 0
        if not self._delays:
            return max(_now(), until)
        now = _now() - median_low(self._delays.values())
        return max(now, min(until, now + MAX_TOLERANCE))

    def _take(self, item: Item) -> None:
        if key := self._builder.observe(item):
            self._note([key])

    def _note(self, changed: Iterable[Key]) -> None:
        self._version += 1
        self._versions.update(dict.fromkeys(changed, self._version))
        self._changed.notify_all()


def _now() -> int:
    return time.time_ns() // 1000
