"""What is drawn equals the data, whatever the size and the zoom."""

import pytest

from tests.page.conftest import Open
from tests.page.opened import Drawn, Opened, spans_of
from tests.timeline.election_samples import SECOND, sample_timeline
from webhook.timeline.model import Lane, Span, SpanKind, Ticks, Timeline


def counted(page: Opened, group: str) -> dict[str, int]:
    """Return how many spans or marks the elements of each lane stand for, from the first lane to the last."""
    found: dict[str, int] = {}
    height = int(page.page.evaluate("document.getElementById('view').scrollHeight"))
    for top in range(0, height, 400):
        page.page.evaluate(f"document.getElementById('view').scrollTop = {top}")
        page.settle()
        found |= page.counts(group)
    return found


def test_every_span_of_three_leases_is_drawn_with_its_holder_and_times(opened: Open) -> None:
    timeline = sample_timeline(3)
    page = opened(timeline)
    expected = [span for lane in timeline.lanes for span in spans_of(lane, timeline)]
    assert sorted(page.drawn(), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("leases", [50, 500])
def test_every_span_and_mark_of_many_leases_is_drawn_or_counted(opened: Open, leases: int) -> None:
    timeline = sample_timeline(leases)
    page = opened(timeline)
    lanes = timeline.lanes
    assert counted(page, "spans") == {lane.name: len(lane.spans) for lane in lanes}
    assert counted(page, "marks") == {lane.name: sum(mark.count for mark in lane.marks) for lane in lanes}


def test_lanes_out_of_view_have_no_elements(opened: Open) -> None:
    page = opened(sample_timeline(500))
    assert 3 <= len(page.lanes) < 20


def test_a_busy_lane_is_drawn_whole_in_windows_of_a_minute(opened: Open) -> None:
    timeline = sample_timeline(1, events=60, minutes=30)
    page = opened(timeline)
    expected = spans_of(timeline.lanes[0], timeline)
    assert len(page.drawn()) < len(expected) + 2
    found: set[Drawn] = set()
    for minute in range(30):
        page.page.evaluate(f"show({minute * 60 * SECOND}, {(minute + 1) * 60 * SECOND})")
        page.settle()
        found |= {one for one in page.drawn() if one.kind != "several"}
    assert found == set(expected)


def test_bars_lie_where_their_times_are(opened: Open) -> None:
    timeline = sample_timeline(3)
    page = opened(timeline)
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
    seconds = {name: int(name[3:5]) * 60 + int(name[6:]) for name in (first, last)}
    pixels = (right - left) / (seconds[last] - seconds[first])
    for begins, ends, x, width, kind in boxes:
        assert x == pytest.approx(left + (begins / SECOND - seconds[first]) * pixels, abs=1)
        if ends:
            least = 1 if kind == "held" else 4
            assert width == pytest.approx(max(least, (ends - begins) / SECOND * pixels), abs=1)


def test_times_without_a_leader_differ_from_held_ones_by_more_than_color(opened: Open) -> None:
    page = opened(sample_timeline(3))
    fills = page.page.eval_on_selector_all(
        ".bar", "all => all.map(e => [e.classList[1], getComputedStyle(e).fill])"
    )  # fmt: skip
    assert {fill for kind, fill in fills if kind == "leaderless"} == {'url("#red-hatch")'}
    assert all(not fill.startswith("url") for kind, fill in fills if kind == "held")
    hatched = page.page.eval_on_selector_all(".bar.overdue + .amber", "all => all.map(e => getComputedStyle(e).fill)")
    assert set(hatched) == {'url("#amber-hatch")'}


@pytest.mark.parametrize("how", ["keys", "wheel", "button"])
def test_zoom_shows_less_time_and_back(opened: Open, how: str) -> None:
    page = opened(sample_timeline(3))
    whole = page.text("#axis")
    page.to_lanes()
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
    assert page.text("#axis") != whole
    page.to_lanes()
    page.press("0")
    assert page.text("#axis") == whole


def test_dragging_moves_the_window(opened: Open) -> None:
    page = opened(sample_timeline(3))
    page.to_lanes()
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


def test_a_short_time_without_a_leader_is_seen_at_any_scale(opened: Open) -> None:
    noon, day = 1_763_640_000_000_000, 86_400_000_000
    gap = Span(SpanKind.LEADERLESS, noon + day, noon + day + 1_000_000)
    spans = (Span(SpanKind.HELD, noon, noon + day, "a"), gap, Span(SpanKind.HELD, noon + day + 1_000_000, None, "b"))
    page = opened(Timeline(noon, noon + 2 * day, (Lane("shop", "checkout", 15, spans),)))
    box = page.page.locator(".spans .bar.leaderless").bounding_box()
    assert box["width"] >= 4
    assert page.page.eval_on_selector_all(".spans .item", "all => all.at(-1).items[0].kind") == "leaderless"


def test_no_label_leaves_its_bar(opened: Open) -> None:
    page = opened(sample_timeline(50))
    assert page.page.eval_on_selector_all(".words text, .doubts text", "all => all.length") > 0
    assert page.page.eval_on_selector_all(
        ".words text, .doubts text", "all => all.every(e => getComputedStyle(e.parentNode).overflow === 'hidden')"
    )


def test_missing_renewals_are_dark(opened: Open) -> None:
    noon = 1_763_640_000_000_000
    moments = tuple(noon + second * 1_000_000 for second in (*range(0, 40, 2), *range(60, 100, 2)))
    lane = Lane("shop", "checkout", 60, (Span(SpanKind.HELD, noon, None, "a"),), ticks=Ticks(moments))
    page = opened(Timeline(noon, noon + 100_000_000, (lane,)))
    assert page.page.evaluate("[...book.lanes.values()][0].late") == [[40e6, 60e6]]
    assert page.page.get_attribute(".late", "d").count("M") == 1
