"""Where the clock of an API server, or those of holders, were set: its times leap, and renewTime does not.

In: by how much a holder's clock was ahead at two renewals that follow each other. Out: the steps that a later renewal
confirms. What a client writes may be wrong, so one lease alone shows nothing: several must show one step at once.
"""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.kubernetes.times import SECOND

TOLERANCE: Final = 2 * SECOND
"""Stamps have whole seconds, and requests take some time."""
_SHORTEST: Final = 5 * SECOND


class ClockStep(Struct, frozen=True):
    """Between two renewals, at `start` and `end`, a holder's clock moved `by` microseconds against the API server's."""

    start: int
    end: int
    by: int

    def is_like(self, other: "ClockStep") -> bool:
        """Return whether both may be the same step of one clock."""
        is_at_once = self.start <= other.end and other.start <= self.end
        return is_at_once and abs(self.by - other.by) <= TOLERANCE


class ClockSteps(Struct):
    """The latest steps that one lease shows."""

    known: deque[ClockStep] = field(default_factory=partial(deque, (), MAX_LISTED))
    _next: tuple[ClockStep, int] | None = None
    """One that the next renewal may confirm, and by how much the clock is ahead since."""
    _before: int | None = None
    """By how much it was ahead at the renewal before the last one."""

    def take(self, start: int, end: int, before: int | None, after: int | None) -> None:
        """Take in a renewal at `end` after one at `start`: by how much the holder's clock was ahead at each.

        A single odd renewTime may be that of a late request: two must agree before a step, and two after it.
        """
        if self._next is not None and _do_agree(after, self._next[1]):
            self.known.append(self._next[0])
        self._next = None
        known, self._before = self._before, before
        if before is None or after is None or not _do_agree(known, before):
            return
        if abs(after - before) > _SHORTEST:
            # By a clock that is set back, the later renewal is dated before the earlier one.
            self._next = ClockStep(min(start, end), max(start, end), after - before), after

    def find_within(self, start: int, end: int) -> ClockStep | None:
        """Return the latest step between two instants; None if there is none."""
        return next((one for one in reversed(self.known) if one.start >= start and one.end <= end), None)


def _do_agree(ahead: int | None, other: int) -> bool:
    return ahead is not None and abs(ahead - other) <= TOLERANCE
