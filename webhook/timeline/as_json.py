"""A timeline as JSON for programs and people: times as RFC 3339, and a name for every value."""

from typing import Any

from webhook.api.micro_time import canonical
from webhook.timeline.model import Lane, Mark, Span, Timeline


def as_json(timeline: Timeline) -> dict[str, Any]:
    """The timeline as a JSON object."""
    return {
        "begins": canonical(timeline.begins),
        "ends": canonical(timeline.ends),
        "sources": [one.encode(errors="replace").decode() for one in timeline.sources],
        "thinned": list(timeline.thinned),
        "leases": [_lane(lane) for lane in timeline.lanes],
    }


def _lane(lane: Lane) -> dict[str, Any]:
    found: dict[str, Any] = {
        "namespace": lane.namespace,
        "name": lane.name,
        "duration_seconds": lane.duration_seconds,
        "spans": [_span(span) for span in lane.spans],
        "renewals": {
            "count": lane.ticks.count,
            "at": [canonical(at) for at in lane.ticks.moments],
            "groups": [
                {"begins": canonical(one.begins), "ends": canonical(one.ends), "count": one.count}
                for one in lane.ticks.buckets
            ],
        },
        "marks": [_mark(mark) for mark in lane.marks],
    }
    if lane.kind == "Lease":
        found["candidates"] = [_lane(one) for one in lane.candidates]
    return found


def _span(span: Span) -> dict[str, Any]:
    return {
        "kind": span.kind.value,
        "begins": canonical(span.begins),
        "ends": None if span.ends is None else canonical(span.ends),
        "holder": span.holder,
        "writer": span.writer,
        "manager": span.manager,
        "count": span.count,
    }


def _mark(mark: Mark) -> dict[str, Any]:
    return {
        "kind": mark.kind.value,
        "at": canonical(mark.at),
        "text": mark.text,
        "holder": mark.holder,
        "writer": mark.writer,
        "count": mark.count,
        "ends": None if mark.ends is None else canonical(mark.ends),
    }
