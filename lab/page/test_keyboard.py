"""Everything can be reached and read by keyboard."""

import pytest

from lab.page.conftest import OpenPage
from lab.page.timeline_page import TimelinePage
from tests.timeline.election_samples import NOON, SECOND, sample_timeline
from webhook.analysis.timeline.model import Lane, Mark, MarkKind, Span, SpanKind, Timeline


def read_active_item(page: TimelinePage) -> tuple[str, str]:
    """Return kind and beginning of the focused item."""
    kind, begins = page.page.evaluate("[view.active.kind, String(view.active.begins)]")
    return str(kind), str(begins)


def list_in_order(lane: Lane, timeline: Timeline) -> list[tuple[str, str]]:
    spans = [(span.begins, 0, span.kind.value) for span in lane.spans]
    marks = [(mark.begins, 1, mark.kind.value) for mark in lane.marks]
    items = sorted([*spans, *marks], key=lambda item: item[:2])
    return [(kind, str(begins - timeline.begins)) for begins, _, kind in items]


def test_the_lanes_are_one_stop_of_tab(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(50))
    stops = []
    for _ in range(20):
        page.press("Tab")
        stops.append(page.page.evaluate("document.activeElement.id"))
    assert stops.count("lanes") == 1


def test_the_link_at_the_top_skips_to_the_lanes(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    page.press("Tab", "Enter")
    assert page.page.evaluate("document.activeElement.id") == "lanes"


def test_arrows_walk_through_all_of_a_lane_in_the_order_of_time(open_page: OpenPage) -> None:
    timeline = sample_timeline(3)
    page = open_page(timeline)
    page.focus_lanes()
    page.press("ArrowRight")
    name = page.lanes[0]
    (lane,) = [one for one in timeline.lanes if one.name == name]
    assert page.active.startswith(f"{lane.namespace}/{lane.name}")
    items = []
    for _ in range(len(lane.spans) + len(lane.marks)):
        page.press("ArrowRight")
        items.append(read_active_item(page))
        assert page.active
    assert items == list_in_order(lane, timeline)
    page.press("ArrowRight")
    assert read_active_item(page) == items[-1]
    page.press("ArrowLeft")
    assert read_active_item(page) == items[-2]
    page.press("Home", "End")
    assert read_active_item(page) == items[-1]


def test_up_and_down_walk_through_all_lanes_and_scroll(open_page: OpenPage) -> None:
    timeline = sample_timeline(50)
    page = open_page(timeline)
    page.focus_lanes()
    page.press("ArrowRight")
    items = [page.active]
    for _ in range(len(timeline.lanes) - 1):
        page.press("ArrowDown")
        items.append(page.active)
    assert len(set(items)) == len(timeline.lanes)
    box = page.page.evaluate("document.querySelector('.label.active').getBoundingClientRect().toJSON()")
    view = page.page.evaluate("document.getElementById('view').getBoundingClientRect().toJSON()")
    assert view["top"] <= box["top"] <= box["bottom"] <= view["bottom"] + 1
    page.press("PageUp")
    assert page.active == items[-11]


def test_the_note_of_an_item_comes_with_the_focus_and_goes_with_escape(open_page: OpenPage) -> None:
    timeline = sample_timeline(3)
    page = open_page(timeline)
    page.focus_lanes()
    page.press("ArrowRight", "n", "ArrowRight", "ArrowRight")
    while read_active_item(page)[0] not in set(MarkKind):
        page.press("ArrowRight")
    texts = {mark.text for lane in timeline.lanes for mark in lane.marks}
    assert any(text in page.read_text("#tip") for text in texts)
    assert page.page.is_visible("#tip")
    page.press("Escape")
    assert not page.page.is_visible("#tip")
    assert page.page.is_visible(".cursor")
    page.press("Escape")
    assert not page.page.is_visible(".cursor")


def test_the_note_of_an_item_comes_with_the_pointer(open_page: OpenPage) -> None:
    timeline = sample_timeline(3)
    page = open_page(timeline)
    for title in ("held", "takeover after expiry", "steal"):
        node = page.page.locator(f".item[aria-label*='{title}']").first
        node.locator(".target, .bar").first.hover(force=True)
        page.settle()
        begins = node.evaluate("e => e.items[0].begins")
        texts = {mark.text for lane in timeline.lanes for mark in lane.marks if mark.begins - timeline.begins == begins}
        assert page.page.is_visible("#tip")
        assert title == "held" or any(text in page.read_text("#tip") for text in texts)


def test_n_and_p_go_from_one_time_without_a_leader_to_the_next(open_page: OpenPage) -> None:
    timeline = sample_timeline(3)
    page = open_page(timeline)
    gaps = sorted(
        str(span.begins - timeline.begins)
        for lane in timeline.lanes
        for span in lane.spans
        if span.kind in {SpanKind.OVERDUE, SpanKind.LEADERLESS}
    )
    page.focus_lanes()
    items = []
    for _ in gaps:
        page.press("n")
        items.append(read_active_item(page)[1])
    assert sorted(items) == gaps
    assert sorted(items, key=int) == items
    page.press("p")
    assert read_active_item(page)[1] == items[-2]


def test_enter_goes_to_the_details_and_escape_back(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    page.focus_lanes()
    page.press("n", "Enter")
    assert page.page.evaluate("document.activeElement.id") == "details"
    assert "no leader" in page.read_text("#details").lower()
    page.press("Escape")
    assert page.page.evaluate("document.activeElement.id") == "lanes"


def test_letters_lead_to_the_instant_and_to_the_search(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    for key, field in (("t", "at"), ("/", "search")):
        page.focus_lanes()
        page.press(key)
        assert page.page.evaluate("document.activeElement.id") == field


def test_the_window_follows_what_the_keyboard_is_on(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    page.focus_lanes()
    page.press("ArrowRight", *["+"] * 5, "End")
    begins = page.page.evaluate("view.active.begins")
    first, last = page.page.evaluate("chart.scale.domain()")
    assert first <= begins <= last
    page.press("Shift+ArrowLeft")
    assert page.page.evaluate("chart.scale.domain()")[0] < first


@pytest.mark.parametrize(("key", "focused"), [("t", "at"), ("/", "search"), ("n", "lanes")])
def test_letters_work_on_a_page_that_was_just_opened(open_page: OpenPage, key: str, focused: str) -> None:
    page = open_page(sample_timeline(3))
    page.press(key)
    assert page.page.evaluate("document.activeElement.id") == focused


def test_letters_that_are_typed_into_a_field_do_nothing_else(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    page.press("/", "c", "o", "n", "t", "0")
    assert page.page.input_value("#search") == "cont0"
    assert not page.page.is_checked("#compact")


def test_a_note_says_once_what_happened_often(open_page: OpenPage) -> None:
    marks = tuple(Mark(MarkKind.FENCED, NOON + at * 100_000, "a write was refused") for at in range(5))
    span = Span(SpanKind.HELD, NOON, None, "a")
    page = open_page(Timeline(NOON, NOON + 600 * SECOND, (Lane("shop", "checkout", 15, (span,), marks=marks),)))
    page.page.locator(".target").first.hover(force=True)
    page.settle()
    lines = page.page.eval_on_selector_all("#tip li", "all => all.map(e => e.textContent)")
    assert lines == ["12:00:00.000 to 12:00:00.400 fenced, 5 times: a write was refused"]


def test_a_long_note_can_be_reached_and_scrolled(open_page: OpenPage) -> None:
    marks = tuple(Mark(MarkKind.DENIED, NOON + at * 100_000, f"refused {at}: {'because ' * 150}") for at in range(5))
    span = Span(SpanKind.HELD, NOON, None, "a")
    page = open_page(Timeline(NOON, NOON + 600 * SECOND, (Lane("shop", "checkout", 15, (span,), marks=marks),)))
    page.page.locator(".target").first.hover(force=True)
    page.settle()
    box = page.page.locator("#tip").bounding_box()
    assert box["height"] <= 0.46 * 900
    page.page.mouse.move(box["x"] + 50, box["y"] + 50)
    page.page.mouse.wheel(0, 300)
    page.page.wait_for_timeout(500)
    assert page.page.is_visible("#tip")
    assert page.page.evaluate("document.getElementById('tip').scrollTop") > 0
    page.page.mouse.move(5, 5)
    page.page.wait_for_timeout(500)
    assert not page.page.is_visible("#tip")
