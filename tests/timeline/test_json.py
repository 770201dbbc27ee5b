"""JSON of a timeline: complete, well formed, and harmless whatever names leases have."""

import json
import re

import pytest

from tests.history.fake_server import SECOND, START
from webhook.analysis.timeline.model import (
    Bucket,
    Lane,
    Mark,
    MarkKind,
    Span,
    SpanKind,
    Ticks,
    Timeline,
    make_timeline_json,
    shorten_for_page,
)

ENDS = START + 60 * SECOND


def at(seconds: float) -> int:
    return START + int(seconds * SECOND)


LANE = Lane(
    "shop",
    "db",
    15,
    (
        Span(SpanKind.HELD, at(0), at(25), "a_1", "shop/db from pod a", "operator"),
        Span(SpanKind.OVERDUE, at(25), at(30), "a_1", "shop/db from pod a", "operator"),
        Span(SpanKind.LEADERLESS, at(30), at(31)),
        Span(SpanKind.SEVERAL, at(31), at(35), count=4),
        Span(SpanKind.HELD, at(35), None, "b_1", "shop/db from pod b", "operator"),
    ),
    Ticks(tuple(at(number) for number in range(36, 60, 2)), (Bucket(at(0), at(10), 5),)),
    (
        Mark(MarkKind.CREATED, at(0), "a_1 created it", "a_1"),
        Mark(MarkKind.DENIED, at(40), "a write was denied", "b_1", "intruder", 7, at(44)),
    ),
)


def timeline(lane: Lane = LANE) -> Timeline:
    return Timeline(START, ENDS, (lane,), ("3 of 5 renewals are counted in 1 group",), ("leases.json",))


HOSTILE = [
    pytest.param("<script>alert(1)</script>", id="a script"),
    pytest.param('"><svg onload=alert(1)>', id="an attribute"),
    pytest.param("a\u202egnp.exe", id="text that runs backwards"),
    pytest.param("\x1b[31mred\x07", id="escapes of a terminal"),
    pytest.param("]]><!-- &amp; &#x3c;", id="markup"),
    pytest.param("\ud800", id="half a surrogate pair"),
    pytest.param("\ufffe\uffff", id="no characters"),
    pytest.param("x" * 4096, id="four kilobytes"),
    pytest.param("\n\r\t\u2028\u2029", id="ends of lines"),
]


def hostile(name: str) -> Timeline:
    lane = Lane(
        shorten_for_page(name),
        shorten_for_page(name),
        15,
        (
            Span(SpanKind.HELD, at(0), at(10), shorten_for_page(name), shorten_for_page(name), shorten_for_page(name)),
            Span(SpanKind.LEADERLESS, at(10)),
        ),
        marks=(Mark(MarkKind.STEAL, at(5), shorten_for_page(name), shorten_for_page(name), shorten_for_page(name)),),
    )
    return timeline(lane)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    document = hostile(name)
    text = json.dumps(make_timeline_json(document))
    text.encode()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e\u2028]", text)


def test_json_names_everything() -> None:
    document = make_timeline_json(timeline())
    (lease,) = document["leases"]
    assert [span["kind"] for span in lease["spans"]] == ["held", "overdue", "leaderless", "several", "held"]
    assert lease["spans"][-1]["ends"] is None
    assert lease["renewals"]["count"] == 17
    assert lease["marks"][1]["at"] == "2026-11-18T11:07:20.000000Z"
    assert json.loads(json.dumps(document)) == document
