"""Spans, renewals and marks in bounded memory: what is too much is aggregated, and said to be."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from operator import attrgetter
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission.rules.holders import names_pod
from webhook.analysis.claims.words import format_count
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.timeline.model import (
    UNLED,
    Bucket,
    Kind,
    Lane,
    Mark,
    Span,
    SpanKind,
    Ticks,
    Timeline,
    describe_writers,
    shorten_for_page,
)
from webhook.analysis.timeline.page import encode_page_data

MAX_SPANS: Final = 2000
MAX_MARKS: Final = 2000
MAX_BUCKETS: Final = 512
MAX_BYTES: Final = 2_600_000
"""Bytes of page data: with the page itself they stay below 3 MB."""
MIN_KEPT: Final = 4
"""Renewals, marks and spans of a lane that are kept at least."""
_UNKNOWN_DURATION: Final = "it may have expired before another writer made it last longer"


class Frozen(Struct, frozen=True):
    """A lease that no other replica can take, since when in microseconds, and why."""

    since: int
    reason: str


class _Open(Struct):
    kind: SpanKind
    begins: int
    tenure: Tenure | None = None
    manager: str = ""
    reason: str = ""
    stand_in: str = ""
    """The writer that stood in for the holder, which another input may name later."""

    @property
    def is_named(self) -> bool:
        """Whether it has a holder, whose last renewal is known, or bounded."""
        return self.kind is SpanKind.HELD or (self.kind is SpanKind.UNRECORDED and bool(self.tenure and self.reason))

    def make_span(self, ends: int | None) -> Span:
        tenure = self.tenure
        if tenure is None or (self.kind is SpanKind.UNRECORDED and not self.reason):
            return Span(self.kind, self.begins, ends, reason=self.reason)
        writers, manager = describe_writers(tenure), shorten_for_page(self.manager)
        holder = shorten_for_page(self.stand_in or tenure.holder)
        return Span(self.kind, self.begins, ends, holder, writers, manager, reason=self.reason)


class SpanRecord(Struct):
    """The spans of one lease. Each begins when the one before ends; a moment before that counts as that moment."""

    closed: list[Span] = field(default_factory=list)
    present: _Open | None = None

    def begin(self, kind: SpanKind, at: int, tenure: Tenure | None = None, manager: str = "", reason: str = "") -> None:
        """End the present span and begin another one."""
        stand_in = tenure.holder if tenure is not None and kind is SpanKind.WRITTEN else ""
        self.present = _Open(kind, self.end(at), tenure, manager, reason, stand_in)

    def turn(self, kind: SpanKind, at: int, reason: str = "") -> None:
        """Begin another span of the same holder, if its kind is another: expired, not recorded, or held again."""
        before = self.present
        is_other = before and (before.kind is not kind or (kind is SpanKind.UNRECORDED and before.reason != reason))
        if before and is_other and (before.tenure or kind is SpanKind.UNRECORDED):
            self.begin(kind, at, before.tenure, before.manager, reason)

    def delay(self, at: int, *, is_expired: bool) -> None:
        """Let the present span begin later: its holder was only chosen, after a time without a leader.

        Or `is_expired`: the lease had expired until then.
        """
        if self.present is None or at <= self.present.begins:
            return
        if is_expired or (self.closed and self.closed[-1].kind in UNLED):
            chosen = replace(self.present.make_span(at), kind=SpanKind.CHOSEN)
            self.closed.append(chosen)
            self.present.begins = at

    def end(self, at: int) -> int:
        """End the present span, or note that the object is gone; return the moment that counts."""
        current = self.present
        if current is None:
            return max(at, self.closed[-1].ends or at) if self.closed else at
        before = self.closed[-1] if current.kind is SpanKind.UNRECORDED and self.closed else None
        if before is not None and before.kind is SpanKind.HELD and before.begins < at < current.begins:
            # A stamp that is ahead had it begin too late: who held it until then held it until now.
            self.closed[-1] = replace(before, ends=at)
            self.present = None
            return at
        at = max(at, current.begins)
        if at > current.begins:
            self.closed.append(current.make_span(at))
            shorten(self.closed, MAX_SPANS, MAX_SPANS // 4)
        self.present = None
        return at

    def spans(
        self,
        overdue_at: int | None,
        end: int,
        frozen: Frozen | None = None,
        *,
        is_gone: bool,
        hidden_since: int | None = None,
        doubtful_at: int | None = None,
    ) -> tuple[Span, ...]:
        """Return all spans up to `end`, in microseconds since 1970.

        The present holder is late since `overdue_at`, if it is, or the lease is `frozen`. That no one holds a lease
        ends when it `is_gone`. What was written since `hidden_since` the input may lack. Since `doubtful_at` the
        present holder may have been late.
        """
        current = self.present
        if current is None or (is_gone and current.tenure is None):
            return tuple(self.closed)
        spans, turns = list(self.closed), []
        if current.kind is SpanKind.HELD and current.begins > end:
            before = [replace(one, ends=min(one.ends or end, end)) for one in spans if one.begins < end]
            if before and before[-1].kind is SpanKind.HELD:
                # By a stamp that is ahead: it is held at the end, since whenever that was, and not by the one before.
                spans, current = before, replace(current, begins=end)
        shown_until = min(end, hidden_since or end)
        if current.is_named and frozen and frozen.since < end:
            turns.append(_Open(SpanKind.FROZEN, frozen.since, current.tenure, current.manager, frozen.reason))
        elif current.is_named:
            if current.kind is SpanKind.HELD and doubtful_at is not None and doubtful_at < shown_until:
                turns.append(
                    _Open(SpanKind.UNRECORDED, doubtful_at, current.tenure, current.manager, _UNKNOWN_DURATION)
                )
            if overdue_at is not None and overdue_at < shown_until:
                turns.append(_Open(SpanKind.OVERDUE, overdue_at, current.tenure, current.manager))
        if hidden_since is not None:
            turns.append(_Open(SpanKind.UNRECORDED, hidden_since))
        for turned in turns:
            turned.begins = max(turned.begins, current.begins)
            spans += [current.make_span(turned.begins)] if turned.begins > current.begins else []
            current = turned
        return (*spans, current.make_span(None))


class TickRecord(Ticks):
    """The renewals of one lease. A moment before the last one counts as the last one."""

    moments: "array[int]" = field(default_factory=lambda: array("q"))
    buckets: list[Bucket] = field(default_factory=list)

    @property
    def latest(self) -> int:
        """The last moment; 0 without any."""
        return self.moments[-1] if self.moments else 0

    def add(self, at: int, most: int) -> None:
        """Take in a renewal; `most` are kept one by one, and older ones in half as many buckets."""
        moments = self.moments
        moments.append(max(at, moments[-1]) if moments else at)
        if len(moments) > most:
            half = len(moments) - most // 2
            kept = min(MAX_BUCKETS, most // 2)
            self.buckets = merge([*self.buckets, *(Bucket(one, one) for one in moments[:half])], kept)
            del moments[:half]


_Part = TypeVar("_Part", Bucket, Mark, Span)


def shorten(parts: list[_Part], most: int, kept: int) -> None:
    """Merge the older half of more than `most` parts, which are in order of time, to about `kept`."""
    if len(parts) > most:
        half = len(parts) // 2
        parts[:half] = merge(parts[:half], kept)


def merge(parts: Iterable[_Part], most: int) -> list[_Part]:
    """Return parts in order of time, joined to about twice `most`, or one of each kind; counts add up to the same."""
    ordered = list(parts)
    if len(ordered) <= most:
        return ordered
    kinds = {_get_kind(part) for part in ordered}
    width = (_get_end(ordered[-1]) - ordered[0].begins) // max(1, most // len(kinds)) + 1
    found: list[_Part] = []
    latest: dict[Kind | None, int] = {}
    for part in ordered:
        place = latest.get(_get_kind(part))
        if place is not None and _get_end(part) - found[place].begins <= width:
            found[place] = found[place].join(part)
        else:
            latest[_get_kind(part)] = len(found)
            found.append(part)
    return found


def _get_kind(part: Bucket | Mark | Span) -> Kind | None:
    """Return the kind that keeps marks apart; spans of any kinds may become one."""
    return part.kind if isinstance(part, Mark) else None


def _get_end(part: Bucket | Mark | Span) -> int:
    return part.begins if part.ends is None else part.ends


def fit_into(timeline: Timeline, largest: int = MAX_BYTES) -> Timeline:
    """Return the timeline, aggregated as far as is needed to fit into `largest` bytes of page data."""
    if len(encode_page_data(timeline)) <= largest:
        return timeline
    lanes = list(timeline.lanes)
    before = describe_merging(lanes)
    others = tuple(one for one in timeline.thinned if one not in before)
    # Parts of one kind that a lane may have.
    most = max(max(_count_ticks(lane), len(lane.marks), len(lane.spans)) for lane in lanes)
    dropped = 0
    while True:
        left_out = f"{format_count(dropped, 'lease')} with the fewest changes are left out: name some, or a namespace"
        thinned = (*([left_out] if dropped else []), *others, *describe_merging(lanes))
        thin = replace(timeline, lanes=tuple(lanes), thinned=thinned, left_out=timeline.left_out + dropped)
        size = len(encode_page_data(thin))
        if size <= largest or not lanes:
            return thin
        if most > MIN_KEPT:
            most = max(MIN_KEPT, most // 2)
            lanes = [_limit(lane, most) for lane in lanes]
        else:
            # Leases of which least is known go first.
            kept = max(0, min(len(lanes) - 1, len(lanes) * largest // size))
            busiest = sorted(range(len(lanes)), key=lambda at: _rank(lanes[at]), reverse=True)[:kept]
            dropped += len(lanes) - kept
            lanes = [lanes[at] for at in sorted(busiest)]


def describe_merging(lanes: Sequence[Lane]) -> tuple[str, ...]:
    """Return sentences about everything in some lanes that stands for more than itself."""
    said = []
    buckets = [one for lane in lanes for one in lane.ticks.buckets]
    if buckets:
        renewals, groups = sum(lane.ticks.count for lane in lanes), format_count(len(buckets), "group")
        text = f"{_count(buckets)} of {format_count(renewals, 'renewal')} are counted in {groups}, not drawn one by one"
        said.append(text)
    several = [mark for lane in lanes for mark in lane.marks if mark.count > 1]
    if several:
        text = f"{_count(several)} marks are drawn as {len(several)}, each with the text of the first and a count"
        said.append(text)
    short = [span for lane in lanes for span in lane.spans if span.kind is SpanKind.SEVERAL]
    if short:
        said.append(f"{_count(short)} short spans are drawn as {len(short)}, without their holders")
    return tuple(said)


def _count(parts: Iterable[Bucket | Mark | Span]) -> int:
    return sum(one.count for one in parts)


def _rank(lane: Lane) -> tuple[bool, int]:
    is_grave = bool(lane.problem) or any(span.kind is SpanKind.FROZEN for span in lane.spans)
    return is_grave, len(lane.marks) + len(lane.spans)


def _count_ticks(lane: Lane) -> int:
    return len(lane.ticks.moments) + 3 * len(lane.ticks.buckets)


def _limit(lane: Lane, most: int) -> Lane:
    ticks = lane.ticks
    if _count_ticks(lane) > most:
        buckets = (*ticks.buckets, *(Bucket(at, at) for at in ticks.moments))
        ticks = Ticks((), tuple(merge(buckets, max(1, most // 3))))
    spans = lane.spans
    if len(spans) > most:
        # The last one may go on.
        spans = (*merge(spans[:-1], most // 2), spans[-1])
    return replace(lane, ticks=ticks, marks=tuple(merge(lane.marks, most)), spans=spans)


def cut_lane(lane: Lane, begins: int, ends: int) -> Lane:
    """Cut a lane to what happened within; a span that began before keeps its beginning, an ongoing one has no end."""
    moments, buckets = lane.ticks.moments, lane.ticks.buckets
    first_moment, first_bucket = bisect_left(moments, begins), bisect_left(buckets, begins, key=attrgetter("ends"))
    last_bucket = bisect_right(buckets, ends, key=attrgetter("begins"))
    ticks = Ticks(tuple(moments[first_moment : bisect_right(moments, ends)]), tuple(buckets[first_bucket:last_bucket]))
    renewed_before = None
    if first_moment:
        renewed_before = moments[first_moment - 1]
    elif first_bucket:
        renewed_before = buckets[first_bucket - 1].ends
    spans = tuple(
        _cut_span(span, begins, ends)
        for span in takewhile(lambda span: span.begins <= ends, lane.spans)
        if span.ends is None or span.ends > begins
    )
    # Spans that were drawn together hide changes, which are still within.
    outside = [at for at in _list_changes(lane.spans) if not begins <= at <= ends]
    return replace(
        lane,
        renewed_before=renewed_before,
        spans=spans,
        ticks=ticks,
        marks=tuple(mark for mark in lane.marks if _get_end(mark) >= begins and mark.begins <= ends),
        handovers=max(0, lane.handovers - len(outside)),
    )


def _list_changes(spans: Iterable[Span]) -> Iterator[int]:
    """Yield when a holder follows another one, and not who wrote for it before it was named."""
    named = (span for span in spans if span.holder)
    return (following.begins for before, following in pairwise(named) if not _is_same_holder(before, following))


def _is_same_holder(before: Span, after: Span) -> bool:
    is_named_since = before.kind is SpanKind.WRITTEN and after.kind is not SpanKind.WRITTEN
    return before.holder == after.holder or (is_named_since and names_pod(after.holder, before.holder))


def _cut_span(span: Span, begins: int, ends: int) -> Span:
    if span.ends is not None and span.ends > ends:
        span = replace(span, ends=None)
    # A list of leases without any stamp does not say when one was created.
    return replace(span, begins=begins) if span.kind is SpanKind.NEVER_HELD and span.begins <= 0 else span
