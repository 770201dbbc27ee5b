"""Holders that renew a lease more rarely than the others: what would be late by the rhythm of those need not be.

Another program, or another version of one, has settings of its own, such as a longer duration.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.kubernetes.times import SECOND

MIN_INTERVALS: Final = 3
"""Intervals of a holder that must be known before one of them can be called usual."""
_MOST: Final = 4
"""At most one interval of so many may be another one."""


class SlowTenure(Struct, frozen=True):
    """The time of such a holder, from its first renewal until the next one after its last was due.

    All are in microseconds, `start` and `end` since 1970.
    """

    number: int
    """The number of the tenure, counted from 1."""
    start: int
    end: int
    pace: int
    """The median of its intervals."""
    is_pace_known: bool
    """True if these are enough to call one of them usual."""

    @property
    def longest_usual(self) -> int:
        """Microseconds after which a renewal is missed."""
        return find_longest_usual(self.pace)

    def explains(self, length: int) -> bool:
        """Return whether a time without a renewal is how this holder renews, as far as is known."""
        return not self.is_pace_known or length <= self.longest_usual


def find_longest_usual(usual: int) -> int:
    """Return the microseconds after which a renewal is missed, of a lease that is renewed at usual intervals."""
    return usual * 3 // 2 + SECOND


def is_steady(intervals: Sequence[int], pace: int) -> bool:
    """Return whether nearly all intervals are about as long as their median: who has trouble renews at odd times."""
    alike = sum(1 for one in intervals if 4 * pace <= 5 * one and 4 * one <= 5 * pace)
    return _MOST * (len(intervals) - alike) <= len(intervals)


def find_slow_tenure(
    number: int, times: tuple[int, int], intervals: Sequence[int], longest_usual: int
) -> SlowTenure | None:
    """Return the tenure between two renewals if its latest intervals are longer than is usual, and alike; else None.

    Of few intervals it is not known whether they are: one of them may be a time in which renewals were missing.
    """
    pace = sorted(intervals)[len(intervals) // 2]
    is_pace_known = len(intervals) >= MIN_INTERVALS
    if pace <= longest_usual or (is_pace_known and not is_steady(intervals, pace)):
        return None
    return SlowTenure(number, times[0], times[1] + pace, pace, is_pace_known)
