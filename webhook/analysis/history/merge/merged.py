"""Several inputs as one history: in order of time, and each write once, with all that is known of it.

An event of an audit log and a change of a watch that have the same resourceVersion are one write: the log knows when it
was made and by whom, the watch shows the object. What is stored is ordered by resourceVersions, of each write or else
of the state that it replaced, because the clocks of API servers differ; the rest is ordered by time.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from webhook.analysis.history.merge.collection_deletions import list_deletions
from webhook.analysis.history.merge.dated import JITTER, DatedItem, describe, is_of_dump
from webhook.analysis.history.merge.estimates import is_claimed, place_undated
from webhook.analysis.history.merge.one_object import order_records
from webhook.analysis.history.merge.reads import LatestReads
from webhook.analysis.history.merge.skew import measure_skew
from webhook.analysis.history.merge.streams import estimate_time, merge_by_time
from webhook.analysis.history.visibility.restores import mark_restores
from webhook.analysis.inputs.items import (
    Act,
    ClockSkew,
    FenceReport,
    Input,
    InputKind,
    Item,
    LogEnd,
    Observation,
    Place,
    StoreRestored,
    Unreadable,
)
from webhook.analysis.inputs.stamp_reader import StampReader

MAX_PENDING: Final = 10_000
"""Observations that wait for others of the same write, and for earlier ones."""
MAX_PENDING_SIZE: Final = 128 * 1024 * 1024
"""Bytes of the documents of those: what was decoded of them takes as many again, and more."""
MAX_LISTED: Final = 1000
"""The same while one input has shown nothing but lists: those of a large cluster are not to be held all at once."""

_MAX_LATEST: Final = 16
"""Who reads an object is shown one of its latest writes."""

_Key = tuple[str, str, str]
_place: Final = attrgetter("time", "revision")


class Merged:
    """The items of all inputs, in order; `unplaced` counts those that are older than what had been passed on before.

    `skew` is what the clocks of the API servers that wrote several logs differ by, at least, in microseconds.
    Moments after `latest`, in microseconds since 1970, are not believed. `stamps` dates states where stamps are
    believed: what their writers claim may be hours off.
    """

    def __init__(self, inputs: Iterable[Input], latest: int, stamps: StampReader | None = None) -> None:
        self.unplaced = 0
        self.skew = 0
        self._inputs = list(inputs)
        self._latest = latest
        self._stamps = stamps or StampReader({})
        self._pending: dict[_Key, list[DatedItem]] = {}
        self._number = 0
        self._size = 0
        self._is_list = len(self._inputs) == 1
        self._end: LogEnd | None = None
        self._passed: dict[_Key, int] = {}
        """The last resourceVersion that was passed on."""
        self._collection_deletions: list[Observation] = []
        self._reads = LatestReads()

    def __iter__(self) -> Iterator[Item]:
        for item in mark_restores(merge_by_time(self._inputs, self._latest, self._stamps), self._stamps):
            yield from self._feed(item)
        self._add_states_of_reads()
        yield from self._pass_on(1)
        if self._end is not None:
            yield self._end
        if self.unplaced:
            text = f"{self.unplaced} records are older than what was read before them, and left out: sort the input"
            yield Unreadable(Place(self._inputs[0].path), text)

    def _feed(self, item: Item) -> Iterator[Item]:
        """Take in one item, and yield those whose time has come."""
        if isinstance(item, Observation) and item.act is not Act.COLLECTION:
            key = (item.kind, item.namespace, item.name)
            seen = describe(self._take_read(key, item))
            if 0 < seen.revision < self._passed.get(key, 0):
                self.unplaced += 1
                return
            self._add_state_before_deletion(key, seen)
        elif isinstance(item, FenceReport):
            key, seen = ("Lease", item.namespace, item.name), DatedItem(item, item.at, is_exact=True)
        elif isinstance(item, LogEnd):
            self._end = item if self._end is None else LogEnd(max(self._end.at, item.at))
            return
        elif isinstance(item, StoreRestored):
            # From here on resourceVersions do not compare with those before.
            yield from self._pass_on(1)
            self._passed.clear()
            self._reads.clear()
            yield item
            return
        else:
            yield item
            if isinstance(item, Observation) and item.collection_deletion and item.is_stored:
                self._collection_deletions.append(item)
                self._is_list = False
                yield from self._count(item.size)
            return
        self._pending.setdefault(key, []).append(seen)
        self._is_list = self._is_list and is_of_dump(seen)
        yield from self._count(seen.size)

    def _take_read(self, key: _Key, item: Observation) -> Observation:
        """Keep what the answer to a read shows; return it without that."""
        if not item.answered_object:
            return item
        latest = islice(reversed(self._pending.get(key, ())), _MAX_LATEST)
        return self._reads.take(key, item, {one.revision for one in latest})

    def _count(self, size: int) -> Iterator[Item]:
        """Count one more that waits, of a document of so many bytes; if that is too much, yield the first ones."""
        self._number += 1
        self._size += size
        if self._number > (MAX_LISTED if self._is_list else MAX_PENDING) or self._size > MAX_PENDING_SIZE:
            yield from self._pass_on(2)

    def _pass_on(self, parts: int) -> Iterator[Item]:
        """Yield the first of so many parts of what is waiting of each object; all of what only dumps show."""
        self._clear()
        self._add_states_between()
        pending, self._pending, self._number, self._size = self._pending, {}, 0, 0
        if all(len(lane) == 1 and is_of_dump(lane[0]) for lane in pending.values()):
            # A list shows each object once: there is nothing to bring into an order.
            for key, (item,) in pending.items():
                self._passed[key] = max(item.revision, self._passed.get(key, 0))
                yield item.item
            return
        for item in chain.from_iterable(pending.values()):
            if not item.has_time:
                at = estimate_time(item.item, self._latest, self._stamps)
                item.time = -1 if at is None else at
                item.is_claimed = is_claimed(item, self._stamps)
        lanes = {key: order_records(items) for key, items in pending.items()}
        place_undated([one for lane in lanes.values() for one in lane if one.revision])
        if (skew := measure_skew(lanes.values(), self._latest)) > max(self.skew, JITTER):
            self.skew = skew
            yield ClockSkew(skew, is_within=len(self._inputs) == 1)
        streams: dict[_Key, list[DatedItem]] = {}
        for key, lane in lanes.items():
            is_dump = all(map(is_of_dump, lane))
            end = len(lane) if is_dump else -(-len(lane) // parts)
            self._passed[key] = max([one.revision for one in lane[:end]] + [self._passed.get(key, 0)])
            if lane[end:]:
                self._pending[key] = lane[end:]
                self._number += len(lane) - end
                self._size += sum(one.size for one in lane[end:])
            if is_dump:
                yield from (one.item for one in lane)
            else:
                streams[key] = lane[:end]
        # Ties are broken by resourceVersion and name, so the order of the input does not matter.
        for item in heapq.merge(*(streams[key] for key in sorted(streams)), key=_place):
            yield item.item

    def _add_states_of_reads(self) -> None:
        """Add what reads show of objects after all writes of theirs that the input has."""
        for key, state in self._reads.list_states():
            seen = describe(state)
            known = max((one.revision for one in self._pending.get(key, ())), default=0)
            if seen.revision > max(known, self._passed.get(key, 0)):
                self._pending.setdefault(key, []).append(seen)
        for key, lane in self._pending.items():
            self._note_unchanged(key, lane)

    def _note_unchanged(self, key: _Key, lane: Sequence[DatedItem]) -> None:
        """Have the last write of an object say until when reads show that no other one followed."""
        last = max(lane, key=attrgetter("revision"))
        at = self._reads.find_unchanged(key, last.revision) if last.revision else None
        if at is not None and last.observation.input_kind is InputKind.AUDIT_LOG:
            last.item = replace(last.observation, unchanged_at=at)

    def _add_states_between(self) -> None:
        """Add what reads show of objects between two writes, where a log has the answer to each write that it has."""
        for key, lane in self._pending.items():
            writes = [one for one in lane if one.is_stored_write]
            is_logged = all(one.observation.input_kind is InputKind.AUDIT_LOG for one in writes)
            if is_logged and all(one.revision or one.is_deletion for one in writes):
                revisions = {one.revision for one in writes if one.revision}
                lane.extend(map(describe, self._reads.take_states_between(key, revisions)))

    def _add_state_before_deletion(self, key: _Key, seen: DatedItem) -> None:
        """Add what a read shows of an object of which a log has the deletion, and no write before that.

        Who never renews a lease writes it once, perhaps before the log begins.
        """
        is_logged = seen.is_deletion and seen.is_stored_write and seen.observation.input_kind is InputKind.AUDIT_LOG
        if not is_logged or key in self._passed or any(one.is_stored_write for one in self._pending.get(key, ())):
            return
        if (state := self._reads.find_state(key)) is not None:
            self._pending.setdefault(key, []).append(describe(state))

    def _clear(self) -> None:
        """Replace each deletion of many objects in a namespace by a deletion of each object."""
        requests, self._collection_deletions = self._collection_deletions, []
        if requests:
            for key, deletion in [*list_deletions(requests, self._pending, self._passed)]:
                self._pending.setdefault(key, []).append(describe(deletion))
