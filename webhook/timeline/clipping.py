"""The part of a lane that lies between two instants."""

from itertools import takewhile

from msgspec.structs import replace

from webhook.timeline.model import Lane, Span, Ticks, Timeline


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
