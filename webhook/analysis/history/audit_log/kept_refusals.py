"""The refused or failed requests that are kept of many: the latest of all, and the first ones of each process.

What was changed just before the first one may have caused them all. In: every such request, in the order of a log. Out:
those that are kept, and of each process when those came that are not, and how many they were.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.audit_log.refusal import Refusal, RefusedBy
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import MINUTE

MAX_REFUSALS: Final = 100
MAX_FIRST: Final = 8
_MAX_RUNS: Final = 2
_APART: Final = 2 * MINUTE
"""Requests of one process that lie further apart are of different runs, each of which has first ones."""


class _Beginnings(Struct):
    """The first requests of the latest runs of one process; `number` are those of the last run until `last`."""

    number: int
    last: int
    kept: deque[Refusal] = field(default_factory=deque)


class _Forgotten(Struct):
    """Requests of one kind of a process that are not kept: when the first and the last one of them came."""

    first: int
    last: int
    number: int = 0


class KeptRefusals(Struct):
    """Requests that were refused or failed: the number of those that are kept is limited, as is that of processes."""

    _latest: deque[Refusal] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    _beginnings: dict[Writer, _Beginnings] = field(default_factory=dict)
    _forgotten: dict[tuple[Writer, RefusedBy, bool], _Forgotten] = field(default_factory=dict)
    """What is not kept, by process, by what refused it, and by whether it was to read and was denied."""
    _others: _Forgotten | None = None
    """What is not kept, of all further processes together."""

    def __iter__(self) -> Iterator[Refusal]:
        """Iterate over those that are kept, in no order."""
        return chain(self._latest, *(one.kept for one in self._beginnings.values()))

    def append(self, refusal: Refusal) -> None:
        """Take in the next one."""
        if len(self._latest) == MAX_REFUSALS:
            self._retire(self._latest.popleft())
        self._latest.append(refusal)

    def _retire(self, refusal: Refusal) -> None:
        """Keep one that is no longer among the latest if it is one of the first of its process."""
        who = refusal.writer.process
        found = self._beginnings.get(who)
        if found is None:
            if len(self._beginnings) >= MAX_LISTED:
                self._forget(refusal)
                return
            found = self._beginnings[who] = _Beginnings(0, refusal.at)
        found.number = found.number + 1 if refusal.at - found.last <= _APART else 1
        found.last = max(found.last, refusal.at)
        if found.number > MAX_FIRST:
            self._forget(refusal)
            return
        found.kept.append(refusal)
        if len(found.kept) > MAX_FIRST * _MAX_RUNS:
            self._forget(found.kept.popleft())

    def _forget(self, refusal: Refusal) -> None:
        kind = refusal.writer.process, refusal.by, refusal.is_read and refusal.is_denied
        if kind in self._forgotten or len(self._forgotten) < MAX_REFUSALS:
            found = self._forgotten.setdefault(kind, _Forgotten(refusal.at, refusal.at))
        else:
            found = self._others = self._others or _Forgotten(refusal.at, refusal.at)
        found.first, found.last = min(found.first, refusal.at), max(found.last, refusal.at)
        found.number += 1

    def has_forgotten_between(self, start: int, end: int, who: Writer | None = None) -> bool:
        """Return whether some that are not kept may have come between two instants, in microseconds since 1970.

        `who`: only those of a process, or of users without a name, as which it may have asked.
        """
        return any(one.first <= end and one.last > start for one in self._list_forgotten(who))

    def count_forgotten_reads(self, who: Writer, by: RefusedBy) -> int | None:
        """Return how many reads by a process that were denied by a part of an API server are not kept.

        None if that is not known.
        """
        found = self._forgotten.get((who, by, True))
        return None if self._others is not None else found.number if found is not None else 0

    def _list_forgotten(self, who: Writer | None) -> Iterable[_Forgotten]:
        named = (one for (writer, _, _), one in self._forgotten.items() if who is None or _may_be(writer, who))
        return chain(named, (self._others,) if self._others is not None else ())


def _may_be(writer: Writer, who: Writer) -> bool:
    return not writer.user or writer.is_same(who)
