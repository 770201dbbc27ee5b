"""How often a lease is renewed, and when it was not: intervals, and silences that were longer than usual."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import Struct, field

from webhook.api.times import MINUTE, SECOND
from webhook.history.events import Tenure
from webhook.history.status import LeaseStatus

_KEPT: Final = 200
"""Intervals and silences that are kept: a stream may be of any length."""
_PAIRS: Final = 5
"""Pairs of intervals that must be alike."""
FEWEST: Final = 3
"""Intervals that must be known before one of them can be called usual."""


_TOGETHER: Final = MINUTE
"""Leases that were last renewed within this time before one stopped with it."""


class Silence(Struct, frozen=True):
    """A time without a renewal, in microseconds since 1970: from the last one before it to the first one after it.

    `requests` is how many requests of the holder's pods were received meanwhile, None if that cannot be known.
    """

    start: int
    end: int
    requests: int | None = None

    @property
    def length(self) -> int:
        """Microseconds."""
        return self.end - self.start

    def overlap(self, start: int, end: int) -> int:
        """Microseconds that it shares with another stretch of time."""
        return max(0, min(self.end, end) - max(self.start, start))


class Renewals(Struct):
    """The renewals of one lease, as they go by."""

    count: int = 0
    first: int | None = None
    last: int | None = None
    intervals: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    latest: deque[int] = field(default_factory=lambda: deque(maxlen=2 * _PAIRS))
    silences: deque[Silence] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _usual: int | None = None

    def add(self, at: int, tenure: Tenure | None = None) -> int | None:
        """Take in one renewal after another, those of `tenure`; return the microseconds of a silence before it."""
        assert self.last is not None
        gap, usual, is_silence = max(0, at - self.last), self.usual, False
        self.latest.append(gap)
        if usual is not None and gap > 1.5 * usual + SECOND:
            is_silence = True
            self.silences.append(Silence(self.last, at, received_within(tenure, self.last, at)))
        else:
            self.intervals.append(gap)
            self._usual = None
        self.restart(at)
        self.count += 1
        return gap if is_silence else None

    def restart(self, at: int) -> None:
        """A replica holds it from now on: the time since the last renewal is not an interval."""
        self.first = at if self.first is None else self.first
        self.last = at if self.last is None else max(at, self.last)

    @property
    def usual(self) -> int | None:
        """The median of the latest intervals in microseconds; None as long as there are few."""
        if self._usual is None and len(self.intervals) >= FEWEST:
            self._usual = sorted(self.intervals)[len(self.intervals) // 2]
        return self._usual

    def silent_within(self, start: int, end: int) -> int:
        """Microseconds of the longest silence that lie between two instants."""
        # Silences are in order, and each lease of a cluster is asked about every late renewal of the others.
        first = bisect_right(self.silences, start, key=lambda one: one.end)
        after = bisect_left(self.silences, end, key=lambda one: one.start)
        return max((one.overlap(start, end) for one in islice(self.silences, first, after)), default=0)

    @property
    def is_doubled(self) -> bool:
        """Whether the latest renewals alternate between short and long intervals whose sums are alike.

        So do those of two processes that each renew at a steady rate.
        """
        latest = list(self.latest)
        if len(latest) < 2 * _PAIRS:
            return False
        pairs = list(zip(latest[::2], latest[1::2], strict=True))
        sums = sorted(sum(pair) for pair in pairs)
        is_steady = sums[-1] - sums[0] < sums[0] // 4
        return is_steady and (
            all(3 * first < 2 * second for first, second in pairs)
            or all(3 * second < 2 * first for first, second in pairs)
        )

    @property
    def longest(self) -> int:
        """The longest time without a renewal by a holder that went on, in microseconds."""
        return max([*self.intervals, *(one.length for one in self.silences)], default=0)


def received_within(tenure: Tenure | None, start: int, end: int) -> int | None:
    """How many requests of a holder were received within a silence; None if that cannot be known.

    Those of its end do not count: what a network held back arrives at once when it works again.
    """
    return None if tenure is None else tenure.requests_between(start, end - (end - start) // 4)


class OtherLeases(Struct, frozen=True):
    """What the other leases did while one was silent; `is_sample` if only some of them were compared."""

    late: int = 0
    on_time: int = 0
    is_sample: bool = False

    @property
    def is_known(self) -> bool:
        """Whether any other lease can serve as a comparison."""
        return self.late + self.on_time > 0

    @property
    def all_were_late(self) -> bool:
        """Whether most were late: then the cause is what they share, the API server or what it depends on."""
        return self.late > self.on_time


def other_leases(others: Iterable[Renewals], start: int, end: int) -> OtherLeases:
    """How many other leases were late, and how many were renewed as usual, between two instants.

    Only leases that had been renewed before count, if often enough that a renewal would be missed within that time.
    """
    late = on_time = 0
    for other in others:
        usual, first, last = other.usual, other.first, other.last
        if usual is None:
            continue
        assert first is not None
        assert last is not None
        if first >= start or last < start - 3 * usual - SECOND or 2 * usual > end - start:
            continue
        silent = other.silent_within(start, end)
        stopped = end - max(start, last) if last < end else 0
        if max(silent, stopped - usual) * 2 >= end - start:
            late += 1
        else:
            on_time += 1
    return OtherLeases(late, on_time)


class LastRenewals(Struct, frozen=True):
    """Of the held leases at `now`, in order: last renewals, and these less half a duration; microseconds since 1970."""

    now: int
    last: tuple[int, ...]
    going_on: tuple[int, ...]

    @classmethod
    def of(cls, statuses: Iterable[LeaseStatus | None], now: int) -> "LastRenewals":
        """Of leases that are held, and say for how long."""
        found = [
            (one.last_renewal, max(0, one.duration) * SECOND // 2)
            for one in statuses
            if one and one.holder and one.last_renewal is not None and one.duration is not None
        ]
        return cls(now, tuple(sorted(at for at, _ in found)), tuple(sorted(at - half for at, half in found)))

    def counted(self, since: int) -> tuple[int, int]:
        """How many stopped with one that was last renewed at `since`, and how many went on."""
        on_time = len(self.going_on) - bisect_right(self.going_on, since)
        return len(self.last) - bisect_right(self.last, since - _TOGETHER) - on_time, on_time

    def others(self, since: int, itself: "LastRenewals") -> OtherLeases:
        """The same without `itself`."""
        late, on_time = self.counted(since)
        own_late, own_on_time = itself.counted(since)
        return OtherLeases(late - own_late, on_time - own_on_time)
