"""A timeline as JSON for programs: times as RFC 3339, and a name for every value."""

from typing import Any

import msgspec

from webhook.api.times import canonical
from webhook.timeline.model import Bucket, Lane, Mark, Span, Timeline

Object = dict[str, Any]


def as_json(timeline: Timeline) -> Object:
    """Return the timeline as a JSON object."""
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
    fields = msgspec.structs.asdict(one)
    return fields | {key: canonical(fields[key]) for key in ("begins", "at", "ends") if fields.get(key) is not None}
