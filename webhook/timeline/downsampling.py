"""Spans, renewals and marks in bounded memory: what is too much is aggregated, and said to be."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, groupby, takewhile
from typing import Final

from msgspec import Struct, field
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


class SpanRecord(Struct):
    """The spans of one lease. Each begins when the one before ends; a moment before that counts as that moment."""

    most: int = MAX_SPANS
    closed: list[Span] = field(default_factory=list)
    present: _Open | None = None

    def begin(self, kind: SpanKind, at: int, tenure: Tenure | None = None, manager: str = "") -> None:
        """End the present span and begin another one."""
        self.present = _Open(kind, self.end(at), tenure, manager)

    def turn(self, kind: SpanKind, at: int) -> None:
        """Begin another one if the holder let the lease expire, or holds it again after that."""
        one = self.present
        if one and one.tenure and one.kind is not kind:
            self.begin(kind, at, one.tenure, one.manager)

    def end(self, at: int) -> int:
        """The present span is over, or the object is gone; gives the moment that counts."""
        current = self.present
        if current is None:
            return max(at, self.closed[-1].ends or at) if self.closed else at
        at = max(at, current.begins)
        if at > current.begins:
            self.closed.append(current.span(at))
            if len(self.closed) > self.most:
                half = len(self.closed) // 2
                self.closed[:half] = merged(self.closed[:half], self.most // 4)
        self.present = None
        return at

    def spans(self, overdue_at: int | None, end: int, *, is_gone: bool) -> tuple[Span, ...]:
        """All spans.

        Args:
            overdue_at: since when the present holder is late, if it is.
            end: where the timeline ends, in microseconds since 1970.
            is_gone: the lease was deleted, so that no one holds it is nothing that lasts.

        """
        current = self.present
        if current is None or (is_gone and current.kind is SpanKind.LEADERLESS):
            return tuple(self.closed)
        if current.kind is not SpanKind.HELD or overdue_at is None or overdue_at >= end:
            return (*self.closed, current.span(None))
        since = max(overdue_at, current.begins)
        late = _Open(SpanKind.OVERDUE, since, current.tenure, current.manager).span(None)
        return (*self.closed, *([current.span(since)] if since > current.begins else []), late)


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


class MarkRecord(Struct):
    """The marks of one lane, in bounded memory."""

    most: int = MAX_MARKS
    _marks: list[Mark] = field(default_factory=list)

    def add(self, mark: Mark) -> None:
        """Take in a mark."""
        self._marks.append(mark)
        if len(self._marks) > self.most:
            half = self.most // 2
            self._marks[:half] = aggregated(self._marks[:half], self.most // 8)

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


class TickRecord(Struct):
    """The renewals of one lease. A moment before the last one counts as the last one."""

    _moments: "array[int]" = field(default_factory=lambda: array("q"))
    _buckets: list[Bucket] = field(default_factory=list)

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
    first = parts[0].begins
    width = (parts[-1].ends - first) // max(1, most - 1) + 1
    slots = groupby(parts, key=lambda part: (part.begins - first) // width)
    return [reduce(_one_bucket, group) for _, group in slots]


def _one_bucket(first: Bucket, other: Bucket) -> Bucket:
    return Bucket(first.begins, max(first.ends, other.ends), first.count + other.count)


def fitted(timeline: Timeline, largest: int = MAX_BYTES) -> Timeline:
    """The timeline with as much of it aggregated as is needed for `largest` bytes of page data."""
    if len(page_data(timeline)) <= largest:
        return timeline
    lanes = list(timeline.lanes)
    before = what_was_merged(lanes)
    others = tuple(one for one in timeline.thinned if one not in before)
    # Parts of one kind that a lane may have.
    most = max(max(_ticks(lane), len(lane.marks), len(lane.spans)) for lane in _each(lanes))
    dropped = 0
    while True:
        left_out = (
            f"{count(dropped, 'lease')} with the fewest changes are left out: narrow the input, or use --from and --to"
        )
        thinned = (*others, *([left_out] if dropped else []), *what_was_merged(lanes))
        thin = replace(timeline, lanes=tuple(lanes), thinned=thinned)
        size = len(page_data(thin))
        if size <= largest or not lanes:
            return thin
        if most > MIN_KEPT:
            most = max(MIN_KEPT, most // 2)
            lanes = [_limited(lane, most) for lane in lanes]
        else:
            # Leases of which least is known go first.
            kept = max(0, min(len(lanes) - 1, len(lanes) * largest // size))
            busiest = sorted(range(len(lanes)), key=lambda at: -len(lanes[at].marks) - len(lanes[at].spans))[:kept]
            dropped += len(lanes) - kept
            lanes = [lanes[at] for at in sorted(busiest)]


def what_was_merged(lanes: Sequence[Lane]) -> tuple[str, ...]:
    """Sentences about everything in some lanes that stands for more than itself."""
    every, said = list(_each(lanes)), []
    buckets = [one for lane in every for one in lane.ticks.buckets]
    if buckets:
        renewals, groups = sum(lane.ticks.count for lane in every), count(len(buckets), "group")
        said.append(
            f"{_counted(buckets)} of {count(renewals, 'renewal')} are counted in {groups}, not drawn one by one"
        )
    several = [mark for lane in every for mark in lane.marks if mark.count > 1]
    if several:
        said.append(
            f"{_counted(several)} marks are drawn as {len(several)}, each with the text of the first and a count"
        )
    short = [span for lane in every for span in lane.spans if span.kind is SpanKind.SEVERAL]
    if short:
        said.append(f"{_counted(short)} short spans are drawn as {len(short)}, without their holders")
    return tuple(said)


def _counted(parts: Iterable[Bucket | Mark | Span]) -> int:
    return sum(one.count for one in parts)


def _each(lanes: Sequence[Lane]) -> Iterator[Lane]:
    for lane in lanes:
        yield lane
        yield from lane.candidates


def _ticks(lane: Lane) -> int:
    return len(lane.ticks.moments) + 3 * len(lane.ticks.buckets)


def _limited(lane: Lane, most: int) -> Lane:
    ticks = lane.ticks
    if _ticks(lane) > most:
        ticks = Ticks((), tuple(merged_buckets(ticks.buckets, ticks.moments, max(1, most // 3))))
    spans = lane.spans
    if len(spans) > most:
        # The last one may go on.
        spans = (*merged(spans[:-1], most // 2), spans[-1])
    return replace(
        lane,
        ticks=ticks,
        marks=tuple(aggregated(lane.marks, most)),
        spans=spans,
        candidates=tuple(_limited(one, most) for one in lane.candidates),
    )


def clipped(timeline: Timeline, begins: int, ends: int) -> Timeline:
    """Return what happened from `begins` to `ends`; leases without anything in that time are left out."""
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
