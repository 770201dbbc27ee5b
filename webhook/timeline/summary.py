"""What a lane shows: who led, how often that changed, and how long no one did, at most."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Final

from msgspec import Struct

from webhook.api.times import SECOND
from webhook.explanation.words import clock, count, length, name
from webhook.history.renewals import deadline_of
from webhook.timeline.model import Lane, Mark, MarkKind, Span, SpanKind

UNLED: Final = frozenset({SpanKind.OVERDUE, SpanKind.LEADERLESS})


class Gap(Struct, frozen=True, gc=False):
    """A time without a leader, in microseconds since 1970.

    It begins with the last renewal before the lease expired, as its holder may have died right after, or with the
    release or deletion; `expires` is then the same. A holder that was cut off went on as the leader for a while, so
    after an expiry its length is a bound. `holder` led before, "" if that is unknown. `ends` is the end of the timeline
    if it lasts until then.
    """

    begins: int
    expires: int
    ends: int
    length: int
    holder: str = ""
    is_open: bool = False

    def text(self, until: int) -> str:
        """Return what stands beside it; it says the same as time goes on."""
        if self.is_open:
            return f"no leader since {_moment(self.begins, until)}"
        return f"no leader for {'up to ' if self.begins < self.expires else ''}{length(self.length)}"


def gaps(lane: Lane, until: int) -> tuple[Gap, ...]:
    """Each time without a leader, in order; `until` is the end of the timeline."""
    found: list[Gap] = []
    number = 0
    for is_unled, group in groupby(lane.spans, key=lambda span: span.kind in UNLED):
        spans = list(group)
        number += len(spans)
        if is_unled:
            before = lane.spans[number - len(spans) - 1] if number > len(spans) else None
            found.append(_gap(lane, before, spans, lane.spans[number] if number < len(lane.spans) else None, until))
    return tuple(found)


def _gap(lane: Lane, before: Span | None, spans: list[Span], following: Span | None, until: int) -> Gap:
    first, last = spans[0], spans[-1]
    begins = expires = first.begins
    if first.kind is SpanKind.OVERDUE:
        begins = _last_renewal(lane, expires, before.begins if before else expires)
    ends = following.begins if following else max(begins, until if last.ends is None else last.ends)
    holder = first.holder or (before.holder if before else "")
    unled = ends - begins
    if begins < expires and holder and following and following.holder == holder:
        # It lived, so it led until its deadline.
        unled = max(0, unled - deadline_of(lane.duration_seconds))
    return Gap(begins, expires, ends, unled, holder, following is None and last.ends is None)


def _last_renewal(lane: Lane, at: int, since: int) -> int:
    """The last renewal until `at`, or `since` if none was seen after that."""
    moments = lane.ticks.moments
    number = bisect_right(moments, at)
    if number:
        return max(since, moments[number - 1])
    return max([since, *(bucket.ends for bucket in lane.ticks.buckets if bucket.ends <= at)])


def span_texts(lane: Lane, found: tuple[Gap, ...], until: int) -> Iterator[str]:
    """Yield each span in words, without its times; `found` are the gaps of the lane."""
    beginning = iter(found)
    gap: Gap | None = None
    for before, span in zip((None, *lane.spans), lane.spans, strict=False):
        if span.kind in UNLED and not (before and before.kind in UNLED):
            gap = next(beginning)
        yield _span_text(span, gap.text(until) if gap and span.kind in UNLED else "")


def _span_text(span: Span, unled: str) -> str:
    match span.kind:
        case SpanKind.LEADERLESS:
            return unled
        case SpanKind.SEVERAL:
            return f"{count(span.count, 'short span')}, too many changes to draw"
        case SpanKind.HELD:
            return f"held by {name(span.holder)}" if span.holder else "held by a holder that the input does not name"
        case _:
            return f"overdue: held by {name(span.holder)}, {unled}"


def doubts(lane: Lane, found: tuple[Gap, ...], until: int) -> list[tuple[Span, str]]:
    """Each time at which the holder may not have led, or not alone, in order, with its text; `found` are the gaps."""
    silent = [
        (Span(SpanKind.SILENT, gap.begins, gap.expires, gap.holder), gap.text(until))
        for gap in found
        if gap.begins < gap.expires
    ]
    contested = [
        (Span(SpanKind.CONTESTED, one.at, _contested_until(lane, one), one.holder), one.text)
        for one in lane.marks
        if one.kind is MarkKind.STEAL
    ]
    return sorted([*silent, *contested], key=lambda one: one[0].begins)


def _contested_until(lane: Lane, steal: Mark) -> int:
    before = [span.begins for span in lane.spans if span.begins < steal.at]
    renewed = _last_renewal(lane, steal.at - 1, before[-1] if before else steal.at)
    return max(steal.at, (steal.ends or renewed) + (lane.duration_seconds or 0) * SECOND)


def handovers(lane: Lane) -> int:
    """Return how often the lease changed hands, several short spans counted as one change each."""
    held = [span for span in lane.spans if span.kind not in UNLED]
    several = sum(span.count for span in held if span.kind is SpanKind.SEVERAL)
    return several + sum(one.holder != after.holder for one, after in pairwise(held))


def _moment(at: int, until: int) -> str:
    """An instant within a sentence: like a length, to a tenth of a second."""
    tenth = at % SECOND // (SECOND // 10)
    text = clock(at, until)
    return f"{text.removesuffix('Z')}.{tenth}Z" if tenth else text
