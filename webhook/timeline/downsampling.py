"""Spans, renewals and marks in bounded memory: what is too much is aggregated, and said to be."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, groupby, takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.explanation.words import count
from webhook.history.events import Tenure
from webhook.timeline.model import Bucket, Lane, Mark, MarkKind, Span, SpanKind, Ticks, Timeline
from webhook.timeline.page import page_data
from webhook.timeline.texts import shown, writers_of

MAX_SPANS: Final = 2000
MAX_MARKS: Final = 2000
MAX_BUCKETS: Final = 512
MIN_BUCKETS: Final = 16
MAX_BYTES: Final = 2_600_000
"""Bytes of page data: with the page itself they stay below 3 MB."""
MIN_KEPT: Final = 4
"""Renewals, marks and spans of a lane that are kept at least."""

_TICK: Final = 9
_MARK: Final = 40
_SPAN: Final = 45


class _Open(Struct):
    kind: SpanKind
    begins: int
    tenure: Tenure | None = None
    manager: str = ""

    def span(self, ends: int | None) -> Span:
        tenure = self.tenure
        if tenure is None:
            return Span(self.kind, self.begins, ends)
        return Span(self.kind, self.begins, ends, shown(tenure.holder), writers_of(tenure), shown(self.manager))


class SpanRecord:
    """The spans of one lease. Each begins when the one before ends; a moment before that counts as that moment."""

    __slots__ = ("_closed", "_most", "_open")

    def __init__(self, most: int = MAX_SPANS) -> None:
        self._closed: list[Span] = []
        self._open: _Open | None = None
        self._most = most

    @property
    def is_empty(self) -> bool:
        """Whether nothing was recorded yet."""
        return self._open is None and not self._closed

    @property
    def begins(self) -> int | None:
        """When the present span began."""
        return self._open.begins if self._open else None

    def hold(self, at: int, tenure: Tenure, manager: str) -> None:
        """From now on it is held."""
        self._begin(SpanKind.HELD, at, tenure, manager)

    def overdue(self, at: int) -> None:
        """It was not renewed in time: from `at` on anyone could have taken it."""
        if self._open and self._open.kind is SpanKind.HELD:
            self._begin(SpanKind.OVERDUE, at, self._open.tenure, self._open.manager)

    def renewed(self, at: int) -> None:
        """It is held again by the one that had let it expire."""
        if self._open and self._open.kind is SpanKind.OVERDUE:
            self._begin(SpanKind.HELD, at, self._open.tenure, self._open.manager)

    def vacate(self, at: int) -> None:
        """From now on no one holds it."""
        self._begin(SpanKind.LEADERLESS, at, None, "")

    def offer(self, at: int) -> None:
        """From now on a candidate exists."""
        self._begin(SpanKind.OFFERED, at, None, "")

    def end(self, at: int) -> int:
        """The present span is over, or the object is gone; gives the moment that counts."""
        current = self._open
        if current is None:
            return max(at, self._closed[-1].ends or at) if self._closed else at
        at = max(at, current.begins)
        if at > current.begins:
            self._closed.append(current.span(at))
            if len(self._closed) > self._most:
                half = len(self._closed) // 2
                self._closed[:half] = merged(self._closed[:half], self._most // 4)
        self._open = None
        return at

    def spans(self, overdue_at: int | None, end: int, *, is_gone: bool) -> tuple[Span, ...]:
        """All spans.

        Args:
            overdue_at: since when the present holder is late, if it is.
            end: where the timeline ends, in microseconds since 1970.
            is_gone: the lease was deleted, so that no one holds it is nothing that lasts.

        """
        current = self._open
        if current is None or (is_gone and current.kind is SpanKind.LEADERLESS):
            return tuple(self._closed)
        if current.kind is not SpanKind.HELD or overdue_at is None or overdue_at >= end:
            return (*self._closed, current.span(None))
        since = max(overdue_at, current.begins)
        late = _Open(SpanKind.OVERDUE, since, current.tenure, current.manager).span(None)
        return (*self._closed, *([current.span(since)] if since > current.begins else []), late)

    def _begin(self, kind: SpanKind, at: int, tenure: Tenure | None, manager: str) -> None:
        self._open = _Open(kind, self.end(at), tenure, manager)


def merged(spans: Sequence[Span], most: int) -> list[Span]:
    """Spans that have ended as at most about twice `most`: runs of short ones become one each."""
    if len(spans) <= most:
        return list(spans)
    ends = [span.begins if span.ends is None else span.ends for span in spans]
    width = (ends[-1] - spans[0].begins) // max(1, most) + 1
    found: list[Span] = []
    for span, end in zip(spans, ends, strict=True):
        last = found[-1] if found else None
        if last is not None and end - last.begins <= width:
            found[-1] = Span(SpanKind.SEVERAL, last.begins, end, count=last.count + span.count)
        else:
            found.append(span)
    return found


class MarkRecord:
    """The marks of one lane, in bounded memory."""

    __slots__ = ("_marks", "_most")

    def __init__(self, most: int = MAX_MARKS) -> None:
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
            self._buckets = merged_buckets(self._buckets, moments[:half], max(MIN_BUCKETS, min(MAX_BUCKETS, most // 2)))
            del moments[:half]

    @property
    def ticks(self) -> Ticks:
        """All of them, as they are kept."""
        return Ticks(tuple(self._moments), tuple(self._buckets))


def merged_buckets(buckets: Iterable[Bucket], moments: Iterable[int], most: int) -> list[Bucket]:
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


class _Most(Struct):
    """How many parts of a kind a lane may have."""

    ticks: int
    marks: int
    spans: int


def fitted(timeline: Timeline, largest: int = MAX_BYTES) -> Timeline:
    """The timeline with as much of it aggregated as is needed for `largest` bytes of page data."""
    if len(page_data(timeline)) <= largest:
        return timeline
    every = list(_each(timeline.lanes))
    most = _Most(
        max(_ticks(lane) for lane in every),
        max(len(lane.marks) for lane in every),
        max(len(lane.spans) for lane in every),
    )
    lanes = list(timeline.lanes)
    before = what_was_merged(timeline.lanes)
    others = tuple(one for one in timeline.thinned if one not in before)
    dropped = 0
    while True:
        thin = replace(timeline, lanes=tuple(lanes), thinned=(*others, *_dropped(dropped), *what_was_merged(lanes)))
        size = len(page_data(thin))
        if size <= largest or not lanes:
            return thin
        if _lower(most, lanes):
            lanes = [_limited(lane, most) for lane in lanes]
        else:
            # Leases of which least is known go first.
            kept = max(0, min(len(lanes) - 1, len(lanes) * largest // size))
            busiest = sorted(lanes, key=lambda lane: -len(lane.marks) - len(lane.spans))[:kept]
            names = {(lane.namespace, lane.name) for lane in busiest}
            dropped += len(lanes) - kept
            lanes = [lane for lane in lanes if (lane.namespace, lane.name) in names]


def what_was_merged(lanes: Sequence[Lane]) -> tuple[str, ...]:
    """Sentences about everything in some lanes that stands for more than itself."""
    return tuple(_merged(list(_each(lanes))))


def _merged(every: Sequence[Lane]) -> Iterator[str]:
    buckets = [one for lane in every for one in lane.ticks.buckets]
    if buckets:
        inside, renewals = sum(one.count for one in buckets), sum(lane.ticks.count for lane in every)
        groups = count(len(buckets), "group")
        yield f"{inside} of {count(renewals, 'renewal')} are counted in {groups}, not drawn one by one"
    several = [mark for lane in every for mark in lane.marks if mark.count > 1]
    if several:
        inside = sum(mark.count for mark in several)
        yield f"{inside} marks are drawn as {len(several)}, each with the text of the first and a count"
    merged_spans = [span for lane in every for span in lane.spans if span.kind is SpanKind.SEVERAL]
    if merged_spans:
        inside = sum(span.count for span in merged_spans)
        yield f"{inside} short spans are drawn as {len(merged_spans)}, without their holders"


def _dropped(number: int) -> tuple[str, ...]:
    if not number:
        return ()
    return (f"{count(number, 'lease')} with the fewest changes are left out: narrow the input, or use --from and --to",)


def _each(lanes: Sequence[Lane]) -> Iterator[Lane]:
    for lane in lanes:
        yield lane
        yield from lane.candidates


def _lower(most: _Most, lanes: Sequence[Lane]) -> bool:
    """Halve the limit of what takes most space; false if nothing can be lowered."""
    every = list(_each(lanes))
    texts = sum(len(text) for text in {mark.text for lane in every for mark in lane.marks})
    sizes = {
        "ticks": _TICK * sum(map(_ticks, every)) if most.ticks > MIN_KEPT else 0,
        "marks": _MARK * sum(len(lane.marks) for lane in every) + texts if most.marks > MIN_KEPT else 0,
        "spans": _SPAN * sum(len(lane.spans) for lane in every) if most.spans > MIN_KEPT else 0,
    }
    largest = max(sizes, key=lambda part: sizes[part])
    if not sizes[largest]:
        return False
    setattr(most, largest, max(MIN_KEPT, getattr(most, largest) // 2))
    return True


def _ticks(lane: Lane) -> int:
    return len(lane.ticks.moments) + 3 * len(lane.ticks.buckets)


def _limited(lane: Lane, most: _Most) -> Lane:
    ticks = lane.ticks
    if _ticks(lane) > most.ticks:
        ticks = Ticks((), tuple(merged_buckets(ticks.buckets, ticks.moments, max(1, most.ticks // 3))))
    spans = lane.spans
    if len(spans) > most.spans:
        # The last one may go on.
        spans = (*merged(spans[:-1], most.spans // 2), spans[-1])
    return replace(
        lane,
        ticks=ticks,
        marks=tuple(aggregated(lane.marks, most.marks)),
        spans=spans,
        candidates=tuple(_limited(one, most) for one in lane.candidates),
    )


def clipped(timeline: Timeline, begins: int, ends: int) -> Timeline:
    """What happened from `begins` to `ends`; leases without anything in that time are left out."""
    lanes = (lane_within(lane, begins, ends) for lane in timeline.lanes)
    return replace(timeline, begins=begins, ends=ends, lanes=tuple(lane for lane in lanes if not _is_empty(lane)))


def lane_within(lane: Lane, begins: int, ends: int) -> Lane:
    """A lane with what happened within; a span that began before keeps its beginning, one that goes on has no end."""
    buckets = tuple(one for one in lane.ticks.buckets if one.ends >= begins and one.begins <= ends)
    moments = tuple(at for at in lane.ticks.moments if begins <= at <= ends)
    candidates = (lane_within(one, begins, ends) for one in lane.candidates)
    return replace(
        lane,
        spans=tuple(
            _cut(span, ends)
            for span in takewhile(lambda span: span.begins <= ends, lane.spans)
            if span.ends is None or span.ends > begins
        ),
        ticks=Ticks(moments, buckets),
        marks=tuple(mark for mark in lane.marks if (mark.ends or mark.at) >= begins and mark.at <= ends),
        candidates=tuple(one for one in candidates if not _is_empty(one)),
    )


def _cut(span: Span, ends: int) -> Span:
    return replace(span, ends=None) if span.ends is not None and span.ends > ends else span


def _is_empty(lane: Lane) -> bool:
    return not (lane.spans or lane.marks or lane.ticks.count or lane.candidates)
