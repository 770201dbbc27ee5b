"""The drawing equals the data, whatever the size and the zoom."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from lab.page.conftest import OpenPage
from lab.page.timeline_page import Drawn, TimelinePage, list_spans
from tests.timeline.election_samples import NOON, SECOND, hostile_timeline, sample_timeline
from webhook.analysis.timeline.model import Lane, Span, SpanKind, Ticks, Timeline
from webhook.text.quoting import escape


def count_by_lane(page: TimelinePage, group: str) -> dict[str, int]:
    """Return how many spans or marks the elements of each lane stand for, from the first lane to the last."""
    counts: dict[str, int] = {}
    height = int(page.page.evaluate("document.getElementById('view').scrollHeight"))
    for top in range(0, height, 400):
        page.page.evaluate(f"document.getElementById('view').scrollTop = {top}")
        page.settle()
        counts |= page.count_items(group)
    return counts


def test_every_span_of_three_leases_is_drawn_with_its_holder_and_times(open_page: OpenPage) -> None:
    timeline = sample_timeline(3)
    page = open_page(timeline)
    expected = [span for lane in timeline.lanes for span in list_spans(lane, timeline)]
    assert sorted(page.list_drawn(), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("leases", [50, 500])
def test_every_span_and_mark_of_many_leases_is_drawn_or_counted(open_page: OpenPage, leases: int) -> None:
    timeline = sample_timeline(leases)
    page = open_page(timeline)
    lanes = timeline.lanes
    assert count_by_lane(page, "spans") == {lane.name: len(lane.spans) for lane in lanes}
    assert count_by_lane(page, "marks") == {lane.name: sum(mark.count for mark in lane.marks) for lane in lanes}


def test_lanes_out_of_view_have_no_elements(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(500))
    assert 3 <= len(page.lanes) < 20


def test_a_busy_lane_is_drawn_whole_in_windows_of_a_minute(open_page: OpenPage) -> None:
    timeline = sample_timeline(1, events=60, minutes=30)
    page = open_page(timeline)
    expected = list_spans(timeline.lanes[0], timeline)
    assert len(page.list_drawn()) < len(expected) + 2
    items: set[Drawn] = set()
    for minute in range(30):
        page.page.evaluate(f"show({minute * 60 * SECOND}, {(minute + 1) * 60 * SECOND})")
        page.settle()
        items |= {one for one in page.list_drawn() if one.kind != "several"}
    assert items == set(expected)


def test_bars_lie_where_their_times_are(open_page: OpenPage) -> None:
    timeline = sample_timeline(3)
    page = open_page(timeline)
    boxes = page.page.eval_on_selector_all(
        ".spans .item",
        """all => all.map(e => { const r = e.querySelector('.bar');
            return [e.items[0].begins, e.items[0].ends, Number(r.getAttribute('x')),
                Number(r.getAttribute('width')), r.classList[1]]; })""",
    )
    axis = page.page.eval_on_selector_all(
        "#axis .tick", "all => all.map(e => [e.textContent, e.transform.baseVal[0].matrix.e])"
    )
    (first, left), (last, right) = axis[0], axis[-1]
    seconds = {name: int(name[3:5]) * 60 for name in (first, last)}
    pixels = (right - left) / (seconds[last] - seconds[first])
    for begins, ends, x, width, kind in boxes:
        assert x == pytest.approx(left + (begins / SECOND - seconds[first]) * pixels, abs=1)
        if ends:
            least = 1 if kind == "held" else 4
            assert width == pytest.approx(max(least, (ends - begins) / SECOND * pixels), abs=1)


def test_times_without_a_leader_differ_from_held_ones_by_more_than_color(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    fills = page.page.eval_on_selector_all(
        ".bar", "all => all.map(e => [e.classList[1], getComputedStyle(e).fill])"
    )  # fmt: skip
    assert {fill for kind, fill in fills if kind == "leaderless"} == {'url("#red-hatch")'}
    assert all(not fill.startswith("url") for kind, fill in fills if kind == "held")
    hatched = page.page.eval_on_selector_all(".bar.overdue + .amber", "all => all.map(e => getComputedStyle(e).fill)")
    assert set(hatched) == {'url("#amber-hatch")'}


@pytest.mark.parametrize("how", ["keys", "wheel", "button"])
def test_zoom_shows_less_time_and_back(open_page: OpenPage, how: str) -> None:
    page = open_page(sample_timeline(3))
    whole = page.read_text("#axis")
    page.focus_lanes()
    if how == "keys":
        page.press("+", "+")
    elif how == "button":
        page.page.click("#closer")
        page.page.click("#closer")
    else:
        page.page.mouse.move(700, 450)
        page.page.keyboard.down("Control")
        page.page.mouse.wheel(0, -300)
        page.page.keyboard.up("Control")
    page.settle()
    assert page.read_text("#axis") != whole
    page.focus_lanes()
    page.press("0")
    assert page.read_text("#axis") == whole


def test_dragging_moves_the_window(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    page.focus_lanes()
    page.press("+", "+")
    before = page.page.evaluate("chart.scale.domain()")
    box = page.page.locator(".lane .sentence").first.bounding_box()
    page.page.mouse.move(box["x"] + 500, box["y"] + 5)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 300, box["y"] + 5, steps=4)
    page.page.mouse.up()
    page.settle()
    after = page.page.evaluate("chart.scale.domain()")
    assert after[0] > before[0]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0])


def test_a_short_time_without_a_leader_is_seen_at_any_scale(open_page: OpenPage) -> None:
    noon, day = 1_763_640_000_000_000, 86_400_000_000
    gap = Span(SpanKind.LEADERLESS, noon + day, noon + day + 1_000_000)
    spans = (Span(SpanKind.HELD, noon, noon + day, "a"), gap, Span(SpanKind.HELD, noon + day + 1_000_000, None, "b"))
    page = open_page(Timeline(noon, noon + 2 * day, (Lane("shop", "checkout", 15, spans),)))
    box = page.page.locator(".spans .bar.leaderless").bounding_box()
    assert box["width"] >= 4
    assert page.page.eval_on_selector_all(".spans .item", "all => all.at(-1).items[0].kind") == "leaderless"


def test_no_label_leaves_its_bar(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(50))
    assert page.page.eval_on_selector_all(".words text, .doubts text", "all => all.length") > 0
    assert page.page.eval_on_selector_all(
        ".words text, .doubts text", "all => all.every(e => getComputedStyle(e.parentNode).overflow === 'hidden')"
    )


def test_missing_renewals_are_dark(open_page: OpenPage) -> None:
    noon = 1_763_640_000_000_000
    moments = tuple(noon + second * 1_000_000 for second in (*range(0, 40, 2), *range(60, 100, 2)))
    lane = Lane("shop", "checkout", 60, (Span(SpanKind.HELD, noon, None, "a"),), ticks=Ticks(moments))
    page = open_page(Timeline(noon, noon + 100_000_000, (lane,)))
    assert page.page.evaluate("[...book.lanes.values()][0].late") == [[40e6, 60e6]]
    assert page.page.get_attribute(".late", "d").count("M") == 1


WINDOWS = (
    0.2, 0.5, 1, 2, 3, 5, 8, 10, 13, 15, 20, 30, 45, 60, 120, 300, 600, 1200, 3600, 4 * 3600, 86_400, 3 * 86_400,
    30 * 86_400, 400 * 86_400,
)  # fmt: skip
"""Seconds."""


@pytest.mark.parametrize("width", [420, 800, 1400, 1900])
@pytest.mark.parametrize("zone", ["UTC", "local"])
def test_no_label_of_the_axis_lies_over_another(open_page: OpenPage, width: int, zone: str) -> None:
    lane = Lane("shop", "checkout", 15, (Span(SpanKind.HELD, NOON, None, "a"),))
    page = open_page(Timeline(NOON, NOON + 400 * 86_400 * SECOND, (lane,)), width=width)
    if zone == "local":
        page.page.check("#local")
    for seconds in WINDOWS:
        page.page.evaluate(f"show({37 * SECOND}, {37 * SECOND + seconds * SECOND})")
        page.settle()
        boxes = page.page.eval_on_selector_all(
            "#axis text",
            "all => all.map(e => e.getBoundingClientRect()).map(r => [r.left, r.right, r.top, r.bottom])",
        )
        assert len(boxes) >= 2, seconds
        edge = page.page.evaluate("document.getElementById('axis').getBoundingClientRect().toJSON()")
        for number, (left, right, top, bottom) in enumerate(boxes):
            assert edge["left"] <= left <= right <= edge["right"] + 1, seconds
            for other in boxes[number + 1 :]:
                is_apart = right < other[0] or other[1] < left or bottom <= other[2] or other[3] <= top
                assert is_apart, (seconds, page.read_text("#axis"))


def test_times_can_be_those_of_the_place_where_one_is(browser: Any, open_page: OpenPage, tmp_path: Path) -> None:
    context = browser.new_context(timezone_id="Asia/Kolkata")
    page = TimelinePage(context.new_page(), tmp_path, sample_timeline(3))
    page.page.check("#local")
    page.settle()
    assert page.page.input_value("#at") == "17:40:00.000"
    assert page.read_text("#zone") == "UTC+05:30, API server's clock"
    assert "17:30:00 to 17:40:00 UTC+05:30" in page.read_text("#overall")
    page.page.fill("#at", "17:35")
    page.page.press("#at", "Enter")
    page.settle()
    assert page.page.evaluate("view.cursor") == 300 * SECOND
    page.page.fill("#at", "12:06Z")
    page.page.press("#at", "Enter")
    page.settle()
    assert page.page.evaluate("view.cursor") == 360 * SECOND
    assert page.messages == []
    context.close()


@pytest.mark.parametrize("name", ["samples", "hostile"])
@pytest.mark.parametrize("mode", ["", "c"])
def test_the_chart_can_be_saved_as_a_picture_that_needs_nothing_else(open_page: OpenPage, name: str, mode: str) -> None:
    timeline = sample_timeline(3) if name == "samples" else hostile_timeline()
    page = open_page(timeline)
    page.press(*mode)
    with page.page.expect_download() as download:
        page.page.click("#save")
    text = Path(download.value.path()).read_text()
    root = ET.fromstring(text)
    names = {one.tag.split("}")[1] for one in root.iter()}
    assert names <= {"svg", "title", "rect", "defs", "pattern", "circle", "path", "text", "g", "line"}
    assert not re.search(r"class=|style=|href|url\((?!#)|\son", re.sub(r">[^<]*<", "><", text))
    labels = "".join(root.itertext())
    assert all(escape(lane.name)[:5] in labels for lane in timeline.lanes)
    assert all(one.get("fill") for one in root.iter() if one.tag.endswith("}text"))
    page.requests[1:] = []


def test_a_lane_that_cannot_be_drawn_says_so(open_page: OpenPage) -> None:
    lane = Lane("shop", "broken", problem="this is a bug: ValueError: <b>x</b>")
    page = open_page(Timeline(NOON, NOON + SECOND, (lane, *sample_timeline(1).lanes)))
    assert page.read_text("h1") == "shop/broken: cannot be drawn, a defect of this program"
    assert "cannot be drawn: this is a bug: ValueError: <b>x</b>" in page.read_text("#lanes")
    assert "shop/broken: cannot be drawn." in page.read_text("#reading")
