"""A timeline as JSON for programs and people, and as a trace that Perfetto and Chrome show."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from webhook.api.text import escape
from webhook.api.times import canonical
from webhook.timeline.model import Bucket, Lane, Mark, Span, SpanKind, Timeline

_COLORS: Final = {SpanKind.OVERDUE: "bad", SpanKind.LEADERLESS: "terrible", SpanKind.SEVERAL: "grey"}
"""Names of colors that Chrome's viewer has; Perfetto chooses its own by the name of a slice."""

Object = dict[str, Any]


def as_json(timeline: Timeline) -> Object:
    """Return the timeline as a JSON object: times as RFC 3339, and a name for every value."""
    return {
        "begins": canonical(timeline.begins),
        "ends": canonical(timeline.ends),
        "sources": [one.encode(errors="replace").decode() for one in timeline.sources],
        "thinned": list(timeline.thinned),
        "leases": [_lane(lane) for lane in timeline.lanes],
    }


def _lane(lane: Lane) -> Object:
    found: Object = {
        "namespace": lane.namespace,
        "name": lane.name,
        "duration_seconds": lane.duration_seconds,
        "spans": [_in_words(span) for span in lane.spans],
        "renewals": {
            "count": lane.ticks.count,
            "at": [canonical(at) for at in lane.ticks.moments],
            "groups": [_in_words(one) for one in lane.ticks.buckets],
        },
        "marks": [_in_words(mark) for mark in lane.marks],
    }
    if lane.kind == "Lease":
        found["candidates"] = [_lane(one) for one in lane.candidates]
    return found


def _in_words(one: Span | Mark | Bucket) -> Object:
    """Return the fields, with moments as RFC 3339."""
    fields = msgspec.structs.asdict(one)
    return fields | {key: canonical(fields[key]) for key in ("begins", "at", "ends") if fields.get(key) is not None}


def chrome_trace(timeline: Timeline) -> Object:
    """Return the trace as a JSON object: namespaces as processes, leases as threads, spans as slices.

    Source: Trace Event Format, JSON object format: `X` are slices with a duration, `i` instants, `M` names; times are
    microseconds. Every instant and slice has its texts as `args`.
    """
    return {
        "traceEvents": list(_events(timeline)),
        "displayTimeUnit": "ms",
        "otherData": {"sources": escape(", ".join(timeline.sources)), "thinned": " ".join(timeline.thinned)},
    }


def _events(timeline: Timeline) -> Iterator[Object]:
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


def _of_lane(lane: Lane, end: int, place: Object) -> Iterator[Object]:
    for span in lane.spans:
        yield _slice(span, end, place)
    for at in lane.ticks.moments:
        yield {"ph": "i", "s": "t", "cat": "renewal", "name": "renewal", "ts": at, **place}
    for bucket in lane.ticks.buckets:
        args = {"count": bucket.count, "until": bucket.ends}
        yield {"ph": "i", "s": "t", "cat": "renewal", "name": "renewals", "ts": bucket.begins, **place, "args": args}
    for mark in lane.marks:
        yield _instant(mark, place)


def _slice(span: Span, end: int, place: Object) -> Object:
    args = {"holder": span.holder, "writer": span.writer, "manager": span.manager, "goes on": span.ends is None}
    if span.count > 1:
        args["count"] = span.count
    color = _COLORS.get(span.kind)
    return {
        "ph": "X",
        "cat": span.kind.value,
        "name": span.holder if span.kind is SpanKind.HELD else f"{span.kind.words} {span.holder}".rstrip(),
        "ts": span.begins,
        "dur": max(0, (end if span.ends is None else span.ends) - span.begins),
        **place,
        **({"cname": color} if color else {}),
        "args": args,
    }


def _instant(mark: Mark, place: Object) -> Object:
    args: Object = {"text": mark.text, "holder": mark.holder, "writer": mark.writer}
    if mark.count > 1:
        args |= {"count": mark.count, "until": mark.ends}
    return {"ph": "i", "s": "t", "cat": mark.kind.value, "name": mark.kind.value, "ts": mark.at, **place, "args": args}
