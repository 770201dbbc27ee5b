"""Which entries of a policy concern one lease, found without looking at the entries that do not.

The key of a lease is `namespace/name`. Exact keys stand in a dict. Globs are grouped by their literal beginning and,
below it, by their literal end, so a lookup probes at most one beginning for each length of text, and matches in full
only the globs whose both ends fit; at most `MOST_ALIKE` of those exist (`TooManyAlikeError`).
"""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from msgspec import Struct

from webhook.rules import glob

T = TypeVar("T")
MOST_ALIKE: Final = 64
"""Globs with the same literal beginning and end, such as `*-a-*` and `*-b-*`; each costs about 0.5 us a lookup."""


class TooManyAlikeError(Exception):
    """More than `MOST_ALIKE` globs differ only between their wildcards."""


class _Pattern(Struct, Generic[T]):
    namespace: str
    lease: str
    matches_namespace: Callable[[str], object]
    matches_lease: Callable[[str], object]
    value: T


class LeaseIndex(Generic[T]):
    """Values by (namespace glob, lease glob); filled by `put`, then only read."""

    def __init__(self) -> None:
        self._exact: dict[tuple[str, str], T] = {}
        self._by_ends: dict[str, dict[str, list[_Pattern[T]]]] = {}
        self._beginning_lengths: list[int] = []
        self._end_lengths: dict[str, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._exact or self._by_ends)

    def put(self, namespace: str, lease: str, value: T, merge: Callable[[T, T], T]) -> None:
        """Add a value; one that stands under the same two globs already is merged: `merge(earlier, later)`.

        Raises TooManyAlikeError where the globs could no longer be told apart quickly.
        """
        if glob.is_literal(namespace) and glob.is_literal(lease):
            key = (namespace, lease)
            self._exact[key] = merge(self._exact[key], value) if key in self._exact else value
            return
        alike = self._alike(*_ends(f"{namespace}/{lease}"))
        for pattern in alike:
            if (pattern.namespace, pattern.lease) == (namespace, lease):
                pattern.value = merge(pattern.value, value)
                return
        if len(alike) == MOST_ALIKE:
            raise TooManyAlikeError
        alike.append(_Pattern(namespace, lease, glob.matcher(namespace), glob.matcher(lease), value))

    def find(self, namespace: str, name: str) -> Iterator[T]:
        """The values whose globs cover this lease, in no particular order."""
        if (namespace, name) in self._exact:
            yield self._exact[namespace, name]
        key = f"{namespace}/{name}"
        for beginning in _cuts(self._beginning_lengths, len(key), lambda length: key[:length]):
            by_end = self._by_ends.get(beginning)
            if by_end is None:
                continue
            for end in _cuts(self._end_lengths[beginning], len(key), lambda length: key[len(key) - length :]):
                for pattern in by_end.get(end, ()):
                    if pattern.matches_namespace(namespace) and pattern.matches_lease(name):
                        yield pattern.value

    def _alike(self, beginning: str, end: str) -> list[_Pattern[T]]:
        if beginning not in self._by_ends:
            self._by_ends[beginning] = {}
            self._end_lengths[beginning] = []
            self._beginning_lengths = sorted({*self._beginning_lengths, len(beginning)})
        by_end = self._by_ends[beginning]
        if end not in by_end:
            by_end[end] = []
            self._end_lengths[beginning] = sorted({*self._end_lengths[beginning], len(end)})
        return by_end[end]


def _cuts(lengths: list[int], longest: int, cut: Callable[[int], str]) -> Iterator[str]:
    return (cut(length) for length in lengths if length <= longest)


def _ends(pattern: str) -> tuple[str, str]:
    """What stands before the first and after the last wildcard."""
    wild = [position for position, character in enumerate(pattern) if character in glob.WILDCARDS]
    return pattern[: wild[0]], pattern[wild[-1] + 1 :]
