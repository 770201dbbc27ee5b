"""What happened to a lease, mark by mark; if there are too many, those of one kind and time become one."""

from collections.abc import Iterable
from functools import reduce
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from webhook.timeline.model import Mark, MarkKind

MOST_MARKS: Final = 2000


class MarkRecord:
    """The marks of one lane, in bounded memory."""

    __slots__ = ("_marks", "_most")

    def __init__(self, most: int = MOST_MARKS) -> None:
        self._marks: list[Mark] = []
        self._most = most

    def add(self, mark: Mark) -> None:
        """Take in a mark."""
        self._marks.append(mark)
        if len(self._marks) > self._most:
            half = self._most // 2
            self._marks[:half] = aggregated(self._marks[:half], self._most // 8)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All of them, in order of time."""
        return tuple(sorted(self._marks, key=lambda mark: mark.at))


def aggregated(marks: Iterable[Mark], most: int) -> list[Mark]:
    """The marks as at most about `most`, unless there are more kinds than that; the sum of their counts is the same."""
    ordered = sorted(marks, key=lambda mark: mark.at)
    kinds = {mark.kind for mark in ordered}
    if len(ordered) <= most:
        return ordered
    slots = max(1, most // len(kinds))
    width = (ordered[-1].at - ordered[0].at) // slots + 1
    groups: dict[tuple[int, MarkKind], Mark] = {}
    for mark in ordered:
        key = ((mark.at - ordered[0].at) // width, mark.kind)
        first = groups.get(key)
        groups[key] = mark if first is None else _together(first, mark)
    return sorted(groups.values(), key=lambda mark: mark.at)


def runs(marks: Iterable[Mark], longest: int = 3) -> list[Mark]:
    """Marks in order, with each run of more than `longest` of one kind as one."""
    found: list[Mark] = []
    for _, same in groupby(sorted(marks, key=lambda mark: mark.at), key=lambda mark: mark.kind):
        run = list(same)
        found += run if len(run) <= longest else [reduce(_together, run)]
    return found


def _together(first: Mark, other: Mark) -> Mark:
    return replace(
        first,
        count=first.count + other.count,
        ends=max(first.ends or first.at, other.ends or other.at),
        holder=first.holder if first.holder == other.holder else "",
        writer=first.writer if first.writer == other.writer else "",
    )
