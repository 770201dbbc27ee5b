"""A timeline as a trace that Perfetto and Chrome show: namespaces as processes, leases as threads, spans as slices.

Source: Trace Event Format, JSON object format: `X` are slices with a duration, `i` instants, `M` names; times are
microseconds. Every instant and slice has its texts as `args`.
"""

from collections.abc import Iterator
from typing import Any, Final

from webhook.api.text import escape
from webhook.timeline.model import Lane, Mark, Span, SpanKind, Timeline

_NAMES: Final = {
    SpanKind.OVERDUE: "overdue",
    SpanKind.LEADERLESS: "no one",
    SpanKind.OFFERED: "candidate",
    SpanKind.SEVERAL: "several holders",
}
_COLORS: Final = {SpanKind.OVERDUE: "bad", SpanKind.LEADERLESS: "terrible", SpanKind.SEVERAL: "grey"}
"""Names of colors that Chrome's viewer has; Perfetto chooses its own by the name of a slice."""

Event = dict[str, Any]


def chrome_trace(timeline: Timeline) -> Event:
    """The trace as a JSON object."""
    return {
        "traceEvents": list(_events(timeline)),
        "displayTimeUnit": "ms",
        "otherData": {"sources": escape(", ".join(timeline.sources)), "thinned": " ".join(timeline.thinned)},
    }


def _events(timeline: Timeline) -> Iterator[Event]:
    processes: dict[str, int] = {}
    thread = 0
    for lane in timeline.lanes:
        process = processes.setdefault(lane.namespace, len(processes) + 1)
        for one, name in _named(lane):
            thread += 1
            place = {"pid": process, "tid": thread}
            yield {"ph": "M", "name": "process_name", **place, "args": {"name": lane.namespace}}
            yield {"ph": "M", "name": "thread_name", **place, "args": {"name": name}}
            yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": thread}}
            yield from _of_lane(one, timeline.ends, place)


def _named(lane: Lane) -> Iterator[tuple[Lane, str]]:
    yield lane, lane.name
    for one in lane.candidates:
        yield one, f"{lane.name}, candidate {one.name}"


def _of_lane(lane: Lane, end: int, place: Event) -> Iterator[Event]:
    for span in lane.spans:
        yield _slice(span, end, place)
    for at in lane.ticks.moments:
        yield {"ph": "i", "s": "t", "cat": "renewal", "name": "renewal", "ts": at, **place}
    for bucket in lane.ticks.buckets:
        args = {"count": bucket.count, "until": bucket.ends}
        yield {"ph": "i", "s": "t", "cat": "renewal", "name": "renewals", "ts": bucket.begins, **place, "args": args}
    for mark in lane.marks:
        yield _instant(mark, place)


def _slice(span: Span, end: int, place: Event) -> Event:
    args = {"holder": span.holder, "writer": span.writer, "manager": span.manager, "goes on": span.ends is None}
    if span.count > 1:
        args["count"] = span.count
    color = _COLORS.get(span.kind)
    return {
        "ph": "X",
        "cat": span.kind.value,
        "name": span.holder if span.kind is SpanKind.HELD else " ".join(filter(None, (_NAMES[span.kind], span.holder))),
        "ts": span.begins,
        "dur": max(0, (end if span.ends is None else span.ends) - span.begins),
        **place,
        **({"cname": color} if color else {}),
        "args": args,
    }


def _instant(mark: Mark, place: Event) -> Event:
    args: Event = {"text": mark.text, "holder": mark.holder, "writer": mark.writer}
    if mark.count > 1:
        args |= {"count": mark.count, "until": mark.ends}
    return {"ph": "i", "s": "t", "cat": mark.kind.value, "name": mark.kind.value, "ts": mark.at, **place, "args": args}
