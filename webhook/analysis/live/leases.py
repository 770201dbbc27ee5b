"""The present state of leases by a watch: for the live table, and for the metrics and Events of `record`."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from typing import Final

from webhook.admission.rules.expiry import BOUND
from webhook.admission.rules.limits import FindLimits, find_default_limits
from webhook.admission.rules.stamps import Stamps
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.cluster import LEASES
from webhook.analysis.inputs.items import Act, Item, Observation, RecordingGap, Unreadable
from webhook.analysis.inputs.stamp_reader import StampReader
from webhook.analysis.live.server_clock import ServerClock, read_clock
from webhook.analysis.live.watch import Listing
from webhook.kubernetes.times import SECOND

KEPT_AFTER_DELETION: Final = 3600 * SECOND
"""For how long the history of a deleted lease is kept: it may be created again, and names may be new each time."""


class LiveLeases:
    """Follows the leases of a watch; every method may be called from any thread."""

    def __init__(
        self, stamps: Mapping[str, Stamps] | None = None, find_limits: FindLimits = find_default_limits
    ) -> None:
        """`stamps` are those of a policy file, by namespace: where what the API server records is believed.

        `find_limits` returns the numbers of rules that the file has for a lease.
        """
        self.status = ""
        """Why the watch has ended; "" while it lasts."""
        self._lock = threading.Lock()
        self._histories = ClusterHistory(stamped=frozenset(stamps or ()), find_limits=find_limits)
        self._reader = StampReader(stamps or {})
        self._listing = Listing()
        self._clock = ServerClock()
        self._seen_until: int | None = None
        """When a watch showed a lease last, by the clock of the API server as far as that is known."""
        self._deleted: dict[Key, int] = {}
        """When each deleted lease was seen to be, by this computer's clock, in that order."""
        self._has_ended = False

    def begin(self, resource: str) -> None:
        """Note that the watch of leases begins, perhaps again: what it did not show meanwhile is not known."""
        if resource == LEASES:
            with self._lock:
                leases = self._histories.leases.items()
                self._listing.begin({key for key, history in leases if not history.is_deleted})
                self._has_ended = self._seen_until is not None

    def observe(self, item: Item) -> None:
        """Take in one item."""
        now = read_clock()
        with self._lock:
            item = self._reader.read(item)
            # The API server's clock may be ahead of this computer's.
            self._histories.bounds.latest = now + BOUND
            if isinstance(item, Unreadable) and item.place.path == LEASES:
                self._listing.note_unreadable()
            if isinstance(item, Observation) and item.kind == "Lease":
                self._clock.measure(item, now)
                # Gaps are compared with what API servers date.
                there = self._clock.estimate(now, self._histories.bounds.until)
                if self._has_ended and self._seen_until is not None:
                    start = min(self._seen_until, there)
                    self._histories.add(RecordingGap(start, there, "the watch began again"))
                self._has_ended, self._seen_until = False, there
                self._listing.note(item, now / SECOND)
                self._note_deletion(item, now)
                self._forget_deleted(now)
            self._histories.add(item)

    def show_status(self, status: str) -> None:
        """Remember what to say about the connection to the cluster."""
        self.status = status

    @property
    def is_watching(self) -> bool:
        """True once a watch has shown something, until it ends."""
        return self._seen_until is not None and not self.status

    @contextmanager
    def lock(self) -> Iterator[tuple[ClusterHistory, int]]:
        """Give all that is known, and the moment by the API server's clock, while the watch waits."""
        now = read_clock()
        with self._lock:
            for gone in self._listing.find_deleted(now / SECOND):
                self._note_deletion(gone, now)
                self._histories.add(gone)
            self._forget_deleted(now)
            yield self._histories, self._clock.estimate(now, self._histories.bounds.until)

    def _note_deletion(self, seen: Observation, now: int) -> None:
        """Note that a lease was deleted, or that there is one."""
        key = (seen.namespace, seen.name)
        self._deleted.pop(key, None)
        if seen.act is Act.DELETED:
            self._deleted[key] = now

    def _forget_deleted(self, now: int) -> None:
        """Forget the leases that were deleted long ago."""
        for key in [*takewhile(lambda one: now - self._deleted[one] > KEPT_AFTER_DELETION, self._deleted)]:
            del self._deleted[key]
            self._histories.forget_lease(key)
