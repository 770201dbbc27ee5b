"""The search chooses lanes and events; the worst come first."""

import pytest

from lab.page.conftest import OpenPage
from lab.page.timeline_page import TimelinePage
from tests.timeline.election_samples import NOON, SECOND, sample_timeline
from webhook.analysis.timeline.model import Lane, Mark, MarkKind, Span, SpanKind, Ticks, Timeline


def fill(page: TimelinePage, field: str, text: str) -> None:
    page.page.fill(field, text)
    page.settle()


def test_each_word_may_name_a_lease_a_holder_or_a_writer(open_page: OpenPage) -> None:
    timeline = sample_timeline(50)
    page = open_page(timeline)
    fill(page, "#search", "payments/")
    assert page.list_values("lane.namespace") == {"payments"}
    assert "17 of 50 leases, " in page.read_text("#overall")
    fill(page, "#search", "controller-49")
    assert page.lanes == ["controller-49"]
    fill(page, "#search", "controller-7-")
    assert page.lanes == ["controller-7"]
    fill(page, "#search", "intruder-0")
    lanes = [lane for lane in timeline.lanes if any(span.holder == "intruder-0" for span in lane.spans)]
    assert f"{len(lanes)} of 50 leases, " in page.read_text("#overall")
    assert page.page.locator(".dimmed").count() > 0
    fill(page, "#search", "payments other:intruder")
    assert page.list_values("writer") == {"system:serviceaccount:other:intruder"}
    assert page.list_values("lane.namespace") == {"payments"}


def test_search_finds_leases_and_texts(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(50))
    fill(page, "#search", "Controller-3")
    assert set(page.lanes) <= {"controller-3", *(f"controller-3{n}" for n in range(10))}
    fill(page, "#search", "which had renewed")
    assert page.list_values("kind") == {"steal", "contested"}
    fill(page, "#search", "takeover after release")
    assert page.list_values("kind") == {"takeover-by-release"}
    fill(page, "#search", "nothing has this name")
    assert page.lanes == []
    assert page.page.is_visible("#none")
    assert page.read_text("h1") == "No lease matches"
    assert page.read_text("#reading") == "At the end: no lease matches."
    assert page.read_text("#details") == ""


def test_the_legend_has_what_is_drawn(open_page: OpenPage) -> None:
    legend = open_page(sample_timeline(3)).read_text("#legend")
    assert all(words in legend for words in ("held", "no leader", "steal", "renewals"))
    assert "forged" not in legend


def test_stolen_leases_come_first_and_of_those_the_one_that_no_one_led_for_the_longest_time(
    open_page: OpenPage,
) -> None:
    timeline = sample_timeline(50)
    page = open_page(timeline)
    lanes = [lane for lane in timeline.lanes if any(mark.kind is MarkKind.STEAL for mark in lane.marks)]
    gaps = {lane.name: lane.list_gaps(timeline.ends) for lane in lanes}
    worst = max(gaps, key=lambda name: sum(gap.ends - gap.begins for gap in gaps[name]))
    assert page.lanes[0] == worst


def make_lane(name: str, *spans: Span, marks: tuple[Mark, ...] = (), ticks: tuple[int, ...] = (0,)) -> Lane:
    return Lane("shop", name, 15, spans, Ticks(tuple(NOON + at * SECOND for at in ticks)), marks)


HELD = Span(SpanKind.HELD, NOON, None, "a")
RELEASED = (
    Span(SpanKind.HELD, NOON, NOON + 9 * SECOND, "a"),
    Span(SpanKind.LEADERLESS, NOON + 9 * SECOND, NOON + 10 * SECOND),
    Span(SpanKind.HELD, NOON + 10 * SECOND, None, "b"),
)
EXPIRED = (Span(SpanKind.HELD, NOON, NOON + 75 * SECOND, "a"), Span(SpanKind.OVERDUE, NOON + 75 * SECOND, None, "a"))
LANES = (
    make_lane("a-healthy", HELD),
    make_lane("b-released", *RELEASED),
    make_lane("c-expired", *EXPIRED),
    make_lane("d-never", Span(SpanKind.NEVER_HELD, NOON)),
    make_lane("e-frozen", Span(SpanKind.FROZEN, NOON, None, "a", reason="no other replica can take it: so it is")),
    make_lane("f-stolen", HELD, marks=(Mark(MarkKind.STEAL, NOON, "b took it", "b"),)),
)
MIXED = Timeline(NOON, NOON + 120 * SECOND, LANES)


def test_the_worst_come_first_and_what_was_never_held_is_no_trouble(open_page: OpenPage) -> None:
    page = open_page(MIXED, height=1600)
    assert page.lanes == ["e-frozen", "f-stolen", "c-expired", "b-released", "a-healthy", "d-never"]
    assert page.read_text("h1") == "shop/e-frozen: frozen, no other replica can take it"
    assert "1 is frozen, 1 was never held." in page.read_text("#reading")
    assert "shop/e-frozen: frozen from 12:00:00 on, held by a" in page.read_text("#reading")
    page.page.select_option("#order", "name")
    page.settle()
    assert page.lanes == sorted(page.lanes)


def test_only_leases_with_trouble(open_page: OpenPage) -> None:
    page = open_page(MIXED)
    assert page.read_text("#bad") == "Only with trouble (3)"
    page.press("o")
    assert page.lanes == ["e-frozen", "f-stolen", "c-expired"]
    page.press("o")
    assert len(page.lanes) == 6


def test_many_short_times_without_a_leader_are_worse_than_one_that_is_little_longer(open_page: OpenPage) -> None:
    def make_lost_lane(name: str, *lengths: int) -> Lane:
        spans, at = [], NOON
        for number, long in enumerate(lengths):
            expires, takeover = at + 60 * SECOND, at + (60 + long) * SECOND
            spans += [
                Span(SpanKind.HELD, at, expires, f"{number}"),
                Span(SpanKind.OVERDUE, expires, takeover, f"{number}"),
            ]
            at = takeover
        return make_lane(name, *spans, Span(SpanKind.HELD, at, None, "last"))

    page = open_page(
        Timeline(NOON, NOON + 900 * SECOND, (make_lost_lane("a-once", 21), make_lost_lane("b-often", 20, 20, 20, 20)))
    )
    assert page.lanes == ["b-often", "a-once"]


def test_fifty_leases_are_seen_at_once_in_compact_mode(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(50), width=1400, height=900)
    assert page.read_text("#range") == "Leases 1 to 7 of 50, 43 more below, 43 of them with trouble"
    page.press("c")
    rows = page.page.eval_on_selector_all(".lane", "all => all.map(e => e.getBoundingClientRect().bottom)")
    assert len(rows) == 50
    assert max(rows) <= 900
    assert not page.page.is_visible("#below")


def test_what_is_below_is_counted_while_one_scrolls(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(500), width=420)
    assert " of 500, " in page.read_text("#range")
    page.page.evaluate("document.getElementById('view').scrollTop = 1e6")
    page.settle()
    page.settle()
    assert page.read_text("#range").endswith(" to 500 of 500")


@pytest.mark.parametrize("mode", ["", "c"])
def test_on_a_narrow_page_names_that_differ_at_their_ends_can_be_told_apart(open_page: OpenPage, mode: str) -> None:
    names = [f"payments-{'very-' * 8}long-controller-{number}" for number in range(3)]
    page = open_page(Timeline(NOON, NOON + SECOND, tuple(make_lane(name, HELD) for name in names)), width=420)
    page.press(*mode)
    ends = page.page.eval_on_selector_all(
        ".name", "all => all.map(e => [e.lastChild.textContent, e.lastChild.getBoundingClientRect().right])"
    )
    assert [text for text, _ in ends] == [name[-12:] for name in names]
    assert all(right <= 420 for _, right in ends)


def test_the_address_leads_to_one_lease(open_page: OpenPage) -> None:
    page = open_page(sample_timeline(50))
    page.page.evaluate("location.hash = '#lease=payments%2Fcontroller-49'")
    page.settle()
    assert page.page.text_content("#details h2 span") == "payments/controller-49"
    assert page.page.get_attribute("#details .link", "href") == "#lease=payments%2Fcontroller-49"
    assert "controller-49" in page.lanes


def test_what_is_chosen_is_in_the_address(open_page: OpenPage) -> None:
    page = open_page(MIXED)
    page.press("c", "o")
    page.page.check("#local")
    page.page.select_option("#order", "name")
    page.page.wait_for_timeout(600)  # it is written when nothing has changed for a moment
    page.page.reload()
    page.settle()
    assert page.page.is_checked("#compact")
    assert page.lanes == ["c-expired", "e-frozen", "f-stolen"]
    assert page.page.is_checked("#local")
    page.requests.pop()


def test_words_fit_into_the_bars_of_a_compact_lane(open_page: OpenPage) -> None:
    page = open_page(MIXED)
    page.press("c")
    inside = page.page.eval_on_selector_all(
        ".words text:not(:empty)",
        """all => all.map(e => [e.getBoundingClientRect(), e.parentNode.getBoundingClientRect()])
            .map(([text, bar]) => [text.top - bar.top, bar.bottom - text.bottom])""",
    )
    assert len(inside) >= 6
    assert all(above >= -1.5 and below >= -1.5 for above, below in inside)


def test_a_page_on_which_nothing_is_seen_does_not_say_that_all_is_well(open_page: OpenPage) -> None:
    assert (
        open_page(Timeline(NOON, NOON, (make_lane("checkout", ticks=()),))).read_text("h1")
        == "1 lease, nothing is seen"
    )


@pytest.mark.parametrize("width", [420, 1400])
def test_a_long_namespace_keeps_its_begin_and_the_slash(open_page: OpenPage, width: int) -> None:
    replica = f"operator-7d9f5c6b8-x2x8p_{'0' * 36}"
    spans = (
        Span(SpanKind.HELD, NOON, NOON + SECOND, replica),
        Span(SpanKind.OVERDUE, NOON + SECOND, None, replica),
    )
    name = "cert-manager-cainjector-leader-election"
    lane = Lane("observability-platform", name, 15, spans, Ticks((NOON,)))
    page = open_page(Timeline(NOON, NOON + 60 * SECOND, (lane,)), width=width)
    parts = page.page.eval_on_selector_all(
        ".title span span", "all => all.map(e => [e.textContent, e.getBoundingClientRect().width])"
    )
    assert [text for text, _ in parts][:2] == ["observability-platform", "/"]
    assert parts[0][1] >= 25
    assert parts[1][1] > 0
    (who,) = page.page.eval_on_selector_all(
        ".state .who", "all => all.map(e => [e.textContent, e.scrollWidth - e.clientWidth])"
    )
    assert who[0].startswith("op")
    assert who[0].endswith("0")
    assert who[1] <= 0, "it is shortened in its middle, and not a second time at its end"
