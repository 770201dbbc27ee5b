"""What came again and again, cut where it rested."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

_Event = TypeVar("_Event")


def split_runs(found: Sequence[_Event], *, apart: int, time: Callable[[_Event], int]) -> list[Sequence[_Event]]:
    """Return the runs of events, in order of time, that lie no further apart than so many microseconds."""
    breaks = [number for number, (one, after) in enumerate(pairwise(found), 1) if time(after) - time(one) > apart]
    return [found[start:end] for start, end in pairwise([0, *breaks, len(found)])] if found else []
