"""Renewals in bounded memory: the latest one by one, older ones counted in buckets."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from webhook.timeline.model import Bucket, Ticks

MOST_BUCKETS: Final = 512
FEWEST_BUCKETS: Final = 16


class TickRecord:
    """The renewals of one lease. A moment before the last one counts as the last one."""

    __slots__ = ("_buckets", "_moments")

    def __init__(self) -> None:
        self._moments = array("q")
        self._buckets: list[Bucket] = []

    def add(self, at: int, most: int) -> None:
        """Take in a renewal; `most` are kept one by one, and older ones in half as many buckets."""
        moments = self._moments
        moments.append(max(at, moments[-1]) if moments else at)
        if len(moments) > most:
            half = len(moments) - most // 2
            self._buckets = folded(self._buckets, moments[:half], max(FEWEST_BUCKETS, min(MOST_BUCKETS, most // 2)))
            del moments[:half]

    @property
    def ticks(self) -> Ticks:
        """All of them, as they are kept."""
        return Ticks(tuple(self._moments), tuple(self._buckets))


def folded(buckets: Iterable[Bucket], moments: Iterable[int], most: int) -> list[Bucket]:
    """Buckets and the moments after them as at most `most` buckets of about the same length."""
    parts = list(chain(buckets, (Bucket(at, at, 1) for at in moments)))
    if len(parts) <= most:
        return parts
    width = (parts[-1].ends - parts[0].begins) // max(1, most - 1) + 1
    return _regrouped(parts, width)


def _regrouped(parts: Sequence[Bucket], width: int) -> list[Bucket]:
    first = parts[0].begins
    found: list[Bucket] = []
    slot = -1
    for part in parts:
        if found and (part.begins - first) // width == slot:
            last = found[-1]
            found[-1] = Bucket(last.begins, max(last.ends, part.ends), last.count + part.count)
        else:
            slot = (part.begins - first) // width
            found.append(part)
    return found
