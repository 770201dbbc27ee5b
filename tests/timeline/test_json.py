"""SVG and JSON of a timeline: complete, well formed, and harmless whatever names leases have."""

import json
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.fake_server import SECOND, START
from webhook.timeline.json_formats import as_json
from webhook.timeline.model import Bucket, Lane, Mark, MarkKind, Span, SpanKind, Ticks, Timeline
from webhook.timeline.svg import MAX_MARKS, svg
from webhook.timeline.texts import sentence, shown

ENDS = START + 60 * SECOND
SVG = "{http://www.w3.org/2000/svg}"


def at(seconds: float) -> int:
    return START + int(seconds * SECOND)


CANDIDATE = Lane(
    "LeaseCandidate",
    "shop",
    "db-a",
    spans=(Span(SpanKind.OFFERED, at(1)),),
    marks=(Mark(MarkKind.PINGED, at(20), "asked"),),
)
LANE = Lane(
    "Lease",
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
    (CANDIDATE,),
)


def timeline(lane: Lane = LANE) -> Timeline:
    return Timeline(START, ENDS, (lane,), ("3 of 5 renewals are counted in 1 group",), ("leases.json",))


def texts(document: str) -> str:
    return " ".join("".join(node.itertext()) for node in ET.fromstring(document).iter())


def test_a_picture_says_in_words_what_it_shows() -> None:
    document = svg(timeline())
    root = ET.fromstring(document)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == "Timeline of lease shop/db"
    words = description.text or ""
    assert "held by a_1, from 2026-11-18T11:06:40Z to 2026-11-18T11:07:05Z, 25 s" in words
    assert "overdue: held by a_1, no leader for" in words
    assert "; no leader for " in words
    assert "held by b_1, from 2026-11-18T11:07:15Z on" in words


@pytest.mark.parametrize(
    "part",
    [
        pytest.param("denied (7 times, the first): a write was denied", id="marks with their counts"),
        pytest.param("candidate db-a", id="candidates"),
        pytest.param("3 of 5 renewals are counted in 1 group", id="what was thinned"),
        pytest.param("duration 15 s", id="the duration"),
        pytest.param("overdue", id="what the colors mean"),
        pytest.param("11:07:00", id="the axis"),
    ],
)
def test_a_picture_shows(part: str) -> None:
    assert part in texts(svg(timeline()))


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    document = svg(timeline())
    rest = document.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|href|src=|<script|@import|<image|<foreignObject", rest)
    assert "prefers-color-scheme: dark" in document


def test_a_picture_lists_so_many_marks_and_counts_the_others() -> None:
    kinds = [MarkKind.STEAL, MarkKind.EDIT]
    marks = tuple(Mark(kinds[number % 2], at(number / 10), f"number {number}") for number in range(MAX_MARKS + 5))
    lane = Lane("Lease", "shop", "db", 15, LANE.spans, marks=marks)
    found = texts(svg(timeline(lane)))
    assert f"number {MAX_MARKS - 1}" in found
    assert f"number {MAX_MARKS}" not in found
    assert "5 more marks are not listed" in found


def test_a_run_of_marks_of_one_kind_is_one_number() -> None:
    marks = tuple(Mark(MarkKind.FENCED, at(number), "refused") for number in range(10))
    found = texts(svg(timeline(Lane("Lease", "shop", "db", 15, LANE.spans, marks=marks))))
    assert "fenced (10 times, the first): refused" in found


def test_an_empty_lane_has_a_picture() -> None:
    assert "nothing is known" in svg(timeline(Lane("Lease", "shop", "db")))


def test_many_holders_and_gaps_find_room_or_stay_unnamed() -> None:
    spans = []
    for number in range(40):
        spans.append(Span(SpanKind.HELD, at(number), at(number + 0.5), f"a-long-name-of-a-holder-{number}"))
        spans.append(Span(SpanKind.LEADERLESS, at(number + 0.5), at(number + 1)))
    document = svg(timeline(Lane("Lease", "shop", "db", 15, tuple(spans))))
    assert 1 < document.count('"alarm">no leader for ') < 40
    for number in range(40):
        assert f">a-long-name-of-a-holder-{number}</text>" in document


LENGTHS = [1, 10, 61, 600, 3600, 86_400, 40 * 86_400, 4000 * 86_400, 100_000 * 86_400]


@pytest.mark.parametrize("seconds", LENGTHS)
def test_an_axis_has_a_few_labels_whatever_it_spans(seconds: int) -> None:
    document = svg(Timeline(START, START + seconds * SECOND, (Lane("Lease", "shop", "db"),)))
    places = [float(x) for x in re.findall(r'<text x="([0-9.]+)"[^>]* class="axis faint">', document)]
    assert 1 <= len(places) <= 12
    assert all(16 <= x <= 944 for x in places)


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
        "Lease",
        shown(name),
        shown(name),
        15,
        (Span(SpanKind.HELD, at(0), at(10), shown(name), shown(name), shown(name)), Span(SpanKind.LEADERLESS, at(10))),
        marks=(Mark(MarkKind.STEAL, at(5), sentence(name), shown(name), shown(name)),),
        candidates=(Lane("LeaseCandidate", shown(name), shown(name), spans=(Span(SpanKind.OFFERED, at(0)),)),),
    )
    return timeline(lane)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_in_every_format(name: str) -> None:
    one = hostile(name)
    document = svg(one)
    elements = {node.tag.removeprefix(SVG) for node in ET.fromstring(document).iter()}
    known = {"svg", "title", "desc", "style", "defs", "pattern", "line", "rect", "text", "circle"}
    assert elements <= known
    for text in (document, json.dumps(as_json(one))):
        text.encode()
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e\u2028]", text)


@settings(max_examples=40)
@given(st.text(max_size=300))
def test_any_name_gives_a_well_formed_picture(name: str) -> None:
    ET.fromstring(svg(hostile(name)))


def test_json_names_everything() -> None:
    document = as_json(timeline())
    (lease,) = document["leases"]
    assert [span["kind"] for span in lease["spans"]] == ["held", "overdue", "leaderless", "several", "held"]
    assert lease["spans"][-1]["ends"] is None
    assert lease["renewals"]["count"] == 17
    assert lease["marks"][1]["at"] == "2026-11-18T11:07:20.000000Z"
    assert [one["name"] for one in lease["candidates"]] == ["db-a"]
    assert json.loads(json.dumps(document)) == document
