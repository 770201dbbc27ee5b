"""Makes a timeline small enough for a page, and says what that cost."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.explanation.words import count
from webhook.timeline.marks import aggregated
from webhook.timeline.model import Lane, SpanKind, Ticks, Timeline
from webhook.timeline.page_data import page_data
from webhook.timeline.spans import merged
from webhook.timeline.ticks import folded

LARGEST: Final = 2_600_000
"""Bytes of data: with the page itself they stay below 3 MB."""
FEWEST: Final = 4
"""Renewals, marks and spans of a lane that are kept at least."""

_TICK: Final = 9
_MARK: Final = 40
_SPAN: Final = 45


class _Most(Struct):
    """How many parts of a kind a lane may have."""

    ticks: int
    marks: int
    spans: int


def fitted(timeline: Timeline, largest: int = LARGEST) -> Timeline:
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
    before = what_was_thinned(timeline.lanes)
    others = tuple(one for one in timeline.thinned if one not in before)
    dropped = 0
    while True:
        thin = replace(timeline, lanes=tuple(lanes), thinned=(*others, *_dropped(dropped), *what_was_thinned(lanes)))
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


def what_was_thinned(lanes: Sequence[Lane]) -> tuple[str, ...]:
    """Sentences about everything in some lanes that stands for more than itself."""
    return tuple(_thinned(list(_each(lanes))))


def _thinned(every: Sequence[Lane]) -> Iterator[str]:
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
        "ticks": _TICK * sum(map(_ticks, every)) if most.ticks > FEWEST else 0,
        "marks": _MARK * sum(len(lane.marks) for lane in every) + texts if most.marks > FEWEST else 0,
        "spans": _SPAN * sum(len(lane.spans) for lane in every) if most.spans > FEWEST else 0,
    }
    largest = max(sizes, key=lambda part: sizes[part])
    if not sizes[largest]:
        return False
    setattr(most, largest, max(FEWEST, getattr(most, largest) // 2))
    return True


def _ticks(lane: Lane) -> int:
    return len(lane.ticks.moments) + 3 * len(lane.ticks.buckets)


def _limited(lane: Lane, most: _Most) -> Lane:
    ticks = lane.ticks
    if _ticks(lane) > most.ticks:
        ticks = Ticks((), tuple(folded(ticks.buckets, ticks.moments, max(1, most.ticks // 3))))
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
