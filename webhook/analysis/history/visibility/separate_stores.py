"""Whether two audit logs show writes of one lease, at the same time, that cannot be of one store.

In one store each write replaces the latest one. Where each write of a log replaces the one before it in that log, no
other write came between them: one that has a resourceVersion between theirs, and that the log does not have, is of
another store. After a store was put back, too, but then the writes of both are not of the same time.

In: the writes of logs. Out: two logs, and the holder in each of them.
"""

from bisect import bisect_left, bisect_right
from http import HTTPStatus
from typing import Final

from msgspec import Struct, field

from webhook.analysis.inputs.items import Observation, parse_number
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND

_SHORTEST: Final = 30 * SECOND
"""Clocks of API servers rarely differ by more."""
_MIN_WRITES: Final = 5
_MAX_LOGS: Final = 8
_MAX_WRITES: Final = 500
"""Writes of each log that are remembered, the latest."""


class Series(Struct):
    """The writes of a log each of which replaces the one before, by their resourceVersions, and when they came."""

    log: str
    since: int
    uid: str = ""
    until: int = 0
    holder: str = ""
    revisions: list[int] = field(default_factory=list)

    def add(self, seen: Observation, at: int, revision: int) -> None:
        """Add a write that replaces the latest one."""
        self.until = max(self.until, at)
        self.holder = (seen.object.spec.holder_identity or "") if isinstance(seen.object, Lease) else self.holder
        self.revisions.append(revision)
        if len(self.revisions) > 2 * _MAX_WRITES:
            del self.revisions[:_MAX_WRITES]

    def is_of_other(self, uid: str) -> bool:
        """Return whether it is of another object of that name, as far as UIDs are known."""
        return "" not in {self.uid, uid} and self.uid != uid

    def excludes(self, revision: int) -> bool:
        """Return whether a write would lie between two that follow each other."""
        place = bisect_left(self.revisions, revision)
        return 0 < place < len(self.revisions) and self.revisions[place] != revision

    def has_between(self, start: int, end: int) -> bool:
        """Return whether it has a write between two others."""
        return bisect_right(self.revisions, start) < bisect_left(self.revisions, end)


class SeparateStores(Struct):
    """What the logs of an input show of one lease; `found` are two series of one time, if they cannot be of one store.

    Writes of the logs in a pair exclude each other.
    """

    found: tuple[Series, Series] | None = None
    _series: dict[str, Series] = field(default_factory=dict)
    _pairs: set[frozenset[str]] = field(default_factory=set)

    def hear(self, seen: Observation) -> None:
        """Take in a write that was stored: a request says which state it replaced."""
        revision, replaced = parse_number(seen.resource_version), parse_number(seen.replaces)
        log, at = seen.log_path, seen.at
        if at is None or not revision or self.found is not None:
            return
        series = self._series.get(log)
        if series is None and len(self._series) >= _MAX_LOGS:
            return
        if series is not None and series.revisions[-1] == revision:
            return  # it changed nothing
        is_creation = _is_creation(seen)
        if series is None or is_creation or replaced != series.revisions[-1] or series.is_of_other(seen.uid):
            self._pairs = {pair for pair in self._pairs if log not in pair}
            series = self._series[log] = Series(log, at, seen.uid)
            series.revisions.extend([replaced] if 0 < replaced < revision and not is_creation else [])
        series.add(seen, at, revision)
        for other in self._series.values():
            if other is not series:
                self._compare(series, other)

    def _compare(self, series: Series, other: Series) -> None:
        """Note whether the latest write of a series and another one exclude each other, and both are of one time."""
        pair, (*before, latest) = frozenset({series.log, other.log}), series.revisions[-2:]
        if other.excludes(latest) or (before and other.has_between(before[0], latest)):
            self._pairs.add(pair)
        together = min(series.until, other.until) - max(series.since, other.since)
        are_long = min(len(series.revisions), len(other.revisions)) > _MIN_WRITES
        if pair in self._pairs and are_long and together >= _SHORTEST:
            first, second = sorted((series, other), key=lambda one: one.log)
            self.found = first, second


def _is_creation(seen: Observation) -> bool:
    """Return whether a write replaced nothing: an update may create, whatever its request says that it replaces."""
    return seen.answer is not None and seen.answer.code == HTTPStatus.CREATED
