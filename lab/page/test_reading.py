"""Reading of one instant across all lanes, and of the details."""

import pytest
from msgspec.structs import replace

from lab.page.conftest import OpenPage
from lab.page.timeline_page import TimelinePage
from tests.timeline.election_samples import NOON, SECOND, sample_timeline
from webhook.analysis.timeline.model import Lane, Mark, MarkKind, Span, SpanKind, Ticks, Timeline

HELD = Span(SpanKind.HELD, NOON, NOON + 75 * SECOND, "a")
OVERDUE = Span(SpanKind.OVERDUE, NOON + 75 * SECOND, NOON + 77 * SECOND, "a")
NEXT = Span(SpanKind.HELD, NOON + 77 * SECOND, None, "b")
AGAIN = Span(SpanKind.HELD, NOON + 77 * SECOND, None, "a")


def make_timeline(
    *spans: Span, ticks: tuple[int, ...] = (0,), marks: tuple[Mark, ...] = (), handovers: int = 0
) -> Timeline:
    """Return one lease with a duration of 15 s, over two minutes; `ticks` in seconds since noon."""
    moments = Ticks(tuple(NOON + at * SECOND for at in ticks))
    lane = Lane("shop", "checkout", 15, spans, moments, marks, handovers=handovers)
    return Timeline(NOON, NOON + 120 * SECOND, (lane,))


def read(page: TimelinePage, typed: str) -> None:
    """Type an instant."""
    page.page.fill("#at", typed)
    page.page.press("#at", "Enter")
    page.settle()


def describe_instant(lane: Lane, timeline: Timeline, seconds: float) -> str:
    """Return the expected label of a lane."""
    at = timeline.begins + int(seconds * SECOND)
    (span,) = [one for one in lane.spans if one.begins <= at < (one.ends or timeline.ends)]
    if span.kind is SpanKind.LEADERLESS:
        return "no leader"
    return f"{span.holder}overdue" if span.kind is SpanKind.OVERDUE else span.holder


@pytest.mark.parametrize(("typed", "seconds"), [("12:03:10", 190), ("12:05", 300), ("2026-11-22 12:01:58.5", 118.5)])
def test_who_led_at_an_instant_stands_beside_every_lane(open_page: OpenPage, typed: str, seconds: float) -> None:
    timeline = sample_timeline(3)
    page = open_page(timeline)
    page.page.fill("#at", typed)
    page.page.press("#at", "Enter")
    page.settle()
    for lane in timeline.lanes:
        title = f"{lane.namespace}/{lane.name}"
        label = page.page.locator(f".lane:has(.title[title='{title}']) .state").text_content()
        assert label.startswith(describe_instant(lane, timeline, seconds))
        assert f"{lane.namespace}/{lane.name}: " in page.read_text("#reading")
    assert page.page.is_visible(".cursor.fixed")


def test_an_instant_after_the_end_is_said_to_be_so(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    page.page.fill("#at", "12:30")
    page.page.press("#at", "Enter")
    page.settle()
    assert page.read_text("#reading") == "At 12:30:00.000: outside of what was read, 12:00:00 to 12:10:00."


def test_a_holder_that_has_renewed_for_the_last_time_is_no_sure_leader(open_page: OpenPage) -> None:
    timeline = sample_timeline(50)
    page = open_page(timeline)
    page.page.fill("#at", "12:02:10.5")
    page.page.press("#at", "Enter")
    page.settle()
    at = timeline.begins + 130_500_000
    sure = 0
    for lane in timeline.lanes:
        last = max(tick for tick in lane.ticks.moments if tick <= at)
        next_one = min(tick for tick in lane.ticks.moments if tick > at)
        (span,) = [one for one in lane.spans if one.begins <= at < (one.ends or timeline.ends)]
        is_contested = any(
            mark.kind is MarkKind.STEAL
            and mark.begins <= at <= max(tick for tick in lane.ticks.moments if tick < mark.begins) + 15 * SECOND
            for mark in lane.marks
        )
        if span.kind is SpanKind.HELD and next_one - last < 15 * SECOND and not is_contested:
            sure += 1
    assert f"{sure} of 50 leases have a leader." in page.read_text("#reading")
    assert sure < 50


@pytest.mark.parametrize("typed", ["soon", "04:99", "24:00", "12:00:60", "2026-02-30 12:00", "2026-13-01 12:00"])
def test_what_is_no_instant_is_refused_with_the_reason_until_one_is_typed(open_page: OpenPage, typed: str) -> None:
    page = open_page(sample_timeline(3))
    read(page, typed)
    assert page.page.get_attribute("#at", "aria-invalid") == "true"
    assert page.read_text("#refused") == f'"{typed}" is not a time. Write it as 12:00:00'
    assert page.read_text("#reading").startswith("At the end")
    read(page, "12:05")
    assert page.page.get_attribute("#at", "aria-invalid") == "false"
    assert page.read_text("#refused") == ""


def test_after_the_last_renewal_before_expiry_there_is_possibly_no_leader(open_page: OpenPage) -> None:
    page = open_page(make_timeline(HELD, OVERDUE, NEXT, ticks=(0, 60, 77)))
    read(page, "12:01:05")
    assert page.read_text(".state .remark") == "possibly no leader"
    words = "shop/checkout: possibly no leader since 12:01:00, held by a from 12:00:00 on, last renewed at 12:01:00."
    assert words in page.read_text("#reading")
    assert page.read_text("h1") == "shop/checkout: no leader for up to 17 s, from 12:01:00"
    assert page.list_values("kind") >= {"silent"}


def test_a_holder_that_renewed_after_the_expiry_may_have_stopped_at_its_last_renewal(open_page: OpenPage) -> None:
    page = open_page(make_timeline(HELD, OVERDUE, AGAIN, ticks=(0, 60, 77)))
    assert "overdue: held by a, no leader for up to 17 s" in page.list_values("text")
    assert page.read_text("h1") == "shop/checkout: no leader for up to 17 s, from 12:01:00"


def test_after_a_steal_two_may_lead_until_the_lease_before_would_have_expired(open_page: OpenPage) -> None:
    steal = Mark(MarkKind.STEAL, NOON + 61 * SECOND, "b took it", "b", contested_until=NOON + 75 * SECOND)
    first = Span(SpanKind.HELD, NOON, NOON + 61 * SECOND, "a")
    page = open_page(
        make_timeline(first, Span(SpanKind.HELD, NOON + 61 * SECOND, None, "b"), ticks=(0, 60, 61), marks=(steal,))
    )
    assert page.read_text("h1") == "shop/checkout: taken from its holder at 12:01:01"
    assert page.read_text("#overall").startswith("b took it. 1 lease, 2026-11-22, ")
    assert page.page.is_disabled("#gap")
    read(page, "12:01:04")
    assert page.read_text(".state .remark") == "two may lead"
    assert "shop/checkout: two may lead since 12:01:01, held by b" in page.read_text("#reading")
    read(page, "12:01:16")
    assert "shop/checkout: held by b from 12:01:01 on" in page.read_text("#reading")


def test_the_button_moves_the_instant_to_the_next_time_without_a_leader(open_page: OpenPage) -> None:
    page = open_page(make_timeline(HELD, OVERDUE, NEXT, ticks=(0, 60, 77)))
    page.page.fill("#at", "12:00:30")
    page.page.click("#gap")
    page.settle()
    assert page.page.input_value("#at") == "12:01:15.000"
    assert "shop/checkout: overdue: held by a, no leader for up to 17 s" in page.read_text("#reading")
    page.page.fill("#at", "12:00:30")
    page.page.evaluate("document.getElementById('gap').click()")
    page.settle()
    assert page.page.input_value("#at") == "12:01:15.000"


def test_a_long_name_keeps_its_end_beside_the_lane(open_page: OpenPage) -> None:
    name = f"{'checkout-' * 5}7d4b9c-x2x8p_1f0e"
    page = open_page(make_timeline(Span(SpanKind.HELD, NOON, None, name)))
    label = page.read_text(".state .who")
    assert "…" in label
    assert label.startswith("check")
    assert label.endswith("x2x8p_1f0e")


@pytest.mark.parametrize("kind", [SpanKind.HELD, SpanKind.WRITTEN])
def test_a_name_that_is_too_long_for_its_bar_keeps_its_end(open_page: OpenPage, kind: SpanKind) -> None:
    page = open_page(make_timeline(Span(kind, NOON, None, f"{'checkout-' * 60}7d4b9c-x2x8p_1f0e")))
    text = page.read_text(".words .in")
    assert "…" in text
    assert text.endswith("x2x8p_1f0e")


def test_before_it_was_created_a_lease_is_not_seen(open_page: OpenPage) -> None:
    created = Mark(MarkKind.CREATED, NOON + 9 * SECOND, "a created it", "a")
    page = open_page(make_timeline(Span(SpanKind.HELD, NOON + 9 * SECOND, None, "a"), marks=(created,)))
    read(page, "12:00:05")
    assert page.read_text("#reading") == "At 12:00:05.000: 0 of 1 leases have a leader. shop/checkout: not seen."


def test_the_pointer_reads_the_instant_beneath_it(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    box = page.page.locator(".lane").first.bounding_box()
    page.page.mouse.move(box["x"] + 700, box["y"] + 30)
    page.settle()
    expected = page.page.evaluate("instant(chart.scale.invert(700), 3)")
    assert page.page.input_value("#at")[:8] == expected[:8]
    page.page.mouse.move(5, 5)
    page.settle()
    assert page.page.input_value("#at") == "12:10:00.000"


def test_the_facts_of_a_lease_stand_in_its_lane(open_page: OpenPage) -> None:
    steal = Mark(MarkKind.STEAL, NOON + 61 * SECOND, "b took it", "b", contested_until=NOON + 75 * SECOND)
    page = open_page(make_timeline(HELD, OVERDUE, NEXT, ticks=(0, 60, 77), marks=(steal,), handovers=1))
    chips = page.page.eval_on_selector_all(".chip", "all => all.map(e => e.textContent)")
    assert chips == ["steal", "no leader for up to 17 s, from 12:01:00", "1 handover"]


def test_facts_that_do_not_fit_are_counted(open_page: OpenPage) -> None:
    steal = Mark(MarkKind.STEAL, NOON + 61 * SECOND, "b took it", "b", contested_until=NOON + 75 * SECOND)
    page = open_page(make_timeline(HELD, OVERDUE, NEXT, ticks=(0, 60, 77), marks=(steal,), handovers=1), width=420)
    assert page.page.eval_on_selector_all(".chip", "all => all.map(e => e.textContent)") == ["steal", "2 more"]
    right = page.page.eval_on_selector(".sentence", "e => e.getBoundingClientRect().right")
    ends = page.page.eval_on_selector_all(".chip", "all => all.map(e => e.getBoundingClientRect())")
    assert all(end["right"] <= right + 1 and end["top"] == ends[0]["top"] for end in ends)


def test_the_worst_lease_is_named_first_and_can_be_gone_to(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(50))
    worst = page.read_text("h1 button").removesuffix(":")
    assert page.page.evaluate("view.lanes[0].title") == worst
    page.page.click("h1 button")
    page.settle()
    assert "steal" in page.active


def test_the_title_says_the_worst_thing(open_page: OpenPage) -> None:
    page = open_page(make_timeline(HELD, OVERDUE, NEXT, ticks=(0, 60, 77)))
    assert page.page.title() == page.read_text("h1") == "shop/checkout: no leader for up to 17 s, from 12:01:00"
    quiet = open_page(make_timeline(Span(SpanKind.HELD, NOON, None, "a")))
    assert quiet.page.title() == quiet.read_text("h1") == "1 lease, no trouble was seen"


def test_what_is_shown_is_in_the_address(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(50))
    page.page.fill("#search", "payments")
    page.page.evaluate("show(1e8, 2e8)")
    page.page.fill("#at", "12:02:30")
    page.page.keyboard.press("Enter")
    page.page.wait_for_timeout(600)  # it is written when nothing has changed for a moment
    window, lanes = page.page.evaluate("chart.scale.domain()"), page.lanes
    page.page.reload()
    page.settle()
    assert page.page.evaluate("chart.scale.domain()") == pytest.approx(window, abs=2)
    assert (page.page.input_value("#search"), page.page.input_value("#at")) == ("payments", "12:02:30.000")
    assert page.lanes == lanes
    page.requests.pop()


def test_an_address_that_means_nothing_changes_nothing(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(3))
    lanes, window = page.lanes, page.page.evaluate("chart.scale.domain()")
    page.page.evaluate("location.hash = '#times=a,b&lease=x&search='")
    page.page.reload()
    page.settle()
    assert (page.lanes, page.page.evaluate("chart.scale.domain()")) == (lanes, window)
    page.requests.pop()


def test_many_events_of_one_kind_in_a_row_are_told_once(open_page: OpenPage) -> None:
    fenced = tuple(Mark(MarkKind.FENCED, NOON + at * SECOND, f"refused at {at}") for at in range(5))
    page = open_page(make_timeline(HELD, marks=fenced))
    (entry,) = page.page.eval_on_selector_all(".story .whole", "all => all.map(e => e.textContent)")
    assert entry == "fenced, 5 times, the first: refused at 0"


def test_what_was_merged_and_read_is_said(open_page: OpenPage) -> None:
    timeline = sample_timeline(3)
    page = open_page(
        Timeline(timeline.begins, timeline.ends, timeline.lanes, ("7 renewals are counted",), ("a.json",), 0)
    )
    assert "7 renewals are counted" in page.read_text("#about")
    assert "a.json" in page.read_text("#about")
    assert "1970-01-01T00:00:00Z" in page.read_text("#about")


def test_an_empty_timeline_says_so(open_page: OpenPage) -> None:
    page = open_page(Timeline(0, 0))
    assert page.page.is_visible("#none")


def test_of_a_node_the_page_says_that_it_has_no_heartbeat(open_page: OpenPage) -> None:
    timeline = make_timeline(HELD, Span(SpanKind.OVERDUE, NOON + 75 * SECOND, None, "a"), ticks=(0, 60))
    (lane,) = timeline.lanes
    page = open_page(replace(timeline, lanes=(replace(lane, namespace="kube-node-lease"),)))
    assert page.read_text("h1") == "kube-node-lease/checkout: no heartbeat since 12:01:00"
    assert "overdue: held by a, no heartbeat since 12:01:00." in page.read_text("#reading")
    read(page, "12:01:05")
    assert page.read_text(".state .remark") == "no heartbeat"
