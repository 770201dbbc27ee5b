"""When each held lease of a dump was last renewed, so that one can be compared with all others at once."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from webhook.history.lease_history import LeaseHistory
from webhook.history.renewals import Company
from webhook.rules.times import MINUTE, SECOND

_TOGETHER: Final = MINUTE
"""Leases that were last renewed within this time before one stopped with it."""


class Stops(Struct, frozen=True):
    """Of the held leases at `now`, in order: last renewals, and these less half a duration; microseconds since 1970."""

    now: int
    last: tuple[int, ...]
    going_on: tuple[int, ...]

    @classmethod
    def of(cls, leases: Iterable[LeaseHistory], now: int) -> "Stops":
        """Of leases that are held, and say for how long."""
        found = [
            (standing.last_renewal, max(0, standing.duration) * SECOND // 2)
            for standing in (one.standing(now) for one in leases)
            if standing and standing.holder and standing.last_renewal is not None and standing.duration is not None
        ]
        return cls(now, tuple(sorted(at for at, _ in found)), tuple(sorted(at - half for at, half in found)))

    def counted(self, since: int) -> tuple[int, int]:
        """How many stopped with one that was last renewed at `since`, and how many went on."""
        on_time = len(self.going_on) - bisect_right(self.going_on, since)
        return len(self.last) - bisect_right(self.last, since - _TOGETHER) - on_time, on_time

    def company(self, since: int, itself: "Stops") -> Company:
        """The same without `itself`."""
        late, on_time = self.counted(since)
        own_late, own_on_time = itself.counted(since)
        return Company(late - own_late, on_time - own_on_time)
