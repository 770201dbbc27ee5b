"""Spans by themselves: cut to a window, at the end of a lease, and in words."""

import pytest
from msgspec.structs import replace

from webhook.analysis.timeline.downsampling import Frozen, SpanRecord, cut_lane
from webhook.analysis.timeline.model import Bucket, Lane, Span, SpanKind, Ticks, Timeline, make_timeline_json


def lane(*spans: Span) -> Lane:
    return Lane("shop", "checkout", 15, spans, Ticks((), ()), ())


def test_a_span_that_ends_after_the_window_goes_on() -> None:
    cut = cut_lane(lane(Span(SpanKind.HELD, 10, 90, "a")), 20, 50)
    assert cut.spans == (Span(SpanKind.HELD, 10, None, "a"),)


def test_a_span_that_ends_within_the_window_stays_as_it_is() -> None:
    held = Span(SpanKind.HELD, 10, 40, "a")
    assert cut_lane(lane(held), 20, 50).spans == (held,)


def test_a_lease_that_was_never_held_begins_with_the_window_if_its_creation_is_unknown() -> None:
    cut = cut_lane(lane(Span(SpanKind.NEVER_HELD, 0)), 20, 50)
    assert cut.spans == (Span(SpanKind.NEVER_HELD, 20),)


@pytest.mark.parametrize(
    ("begins", "ends", "buckets", "moments", "renewed_before"),
    [
        pytest.param(0, 100, 2, (50, 60, 70), None, id="all"),
        pytest.param(15, 60, 2, (50, 60), None, id="from within the first bucket to a moment"),
        pytest.param(21, 49, 1, (), 20, id="the second bucket"),
        pytest.param(41, 100, 0, (50, 60, 70), 40, id="after the buckets"),
        pytest.param(50, 69, 0, (50, 60), 40, id="between moments"),
        pytest.param(71, 100, 0, (), 70, id="after all"),
        pytest.param(0, 9, 0, (), None, id="before all"),
    ],
)
def test_renewals_outside_of_the_window_are_left_out(
    begins: int, ends: int, buckets: int, moments: tuple[int, ...], renewed_before: int | None
) -> None:
    ticks = Ticks((50, 60, 70), (Bucket(10, 20, 5), Bucket(30, 40, 5)))
    cut = cut_lane(replace(lane(), ticks=ticks), begins, ends)
    assert (len(cut.ticks.buckets), cut.ticks.moments, cut.renewed_before) == (buckets, moments, renewed_before)


@pytest.mark.parametrize(
    ("begins", "ends", "handovers"),
    [
        pytest.param(0, 100, 2, id="all"),
        pytest.param(0, 45, 0, id="before the first"),
        pytest.param(0, 70, 1, id="before the second"),
        pytest.param(65, 100, 1, id="after the first"),
        pytest.param(45, 100, 2, id="from a time without a holder on"),
        pytest.param(80, 100, 1, id="from the second on"),
        pytest.param(85, 100, 0, id="after both"),
    ],
)
def test_handovers_outside_of_the_window_do_not_count(begins: int, ends: int, handovers: int) -> None:
    held = Span(SpanKind.HELD, 10, 40, "a"), Span(SpanKind.LEADERLESS, 40, 50), Span(SpanKind.HELD, 50, 80, "b")
    whole = replace(lane(*held, Span(SpanKind.HELD, 80, None, "a")), handovers=2)
    assert cut_lane(whole, begins, ends).handovers == handovers


def test_a_holder_that_is_named_after_its_writer_is_no_handover() -> None:
    spans = Span(SpanKind.HELD, 10, 20, "b"), Span(SpanKind.WRITTEN, 20, 40, "a"), Span(SpanKind.HELD, 40, 60, "a_1")
    whole = replace(lane(*spans, Span(SpanKind.HELD, 60, None, "c")), handovers=2)
    assert cut_lane(whole, 50, 100).handovers == 1


@pytest.mark.parametrize(
    ("writer", "kind", "holder", "is_same"),
    [
        pytest.param("db-1", SpanKind.HELD, "db-1_8c1", True, id="a holder whose name has the pod"),
        pytest.param("db-1", SpanKind.HELD, "db-10_8c1", False, id="a holder whose name has a longer one"),
        pytest.param("db-1", SpanKind.WRITTEN, "db-10", False, id="a writer whose name begins so"),
        pytest.param("shop/db", SpanKind.WRITTEN, "shop/db-2", False, id="another user"),
        pytest.param("db-1", SpanKind.WRITTEN, "db-1_8c1", False, id="a writer of another name"),
    ],
)
def test_a_writer_is_followed_by_itself_only_if_the_holder_names_it(
    writer: str, kind: SpanKind, holder: str, *, is_same: bool
) -> None:
    spans = Span(SpanKind.WRITTEN, 20, 40, writer), Span(kind, 40, 60, holder), Span(SpanKind.HELD, 60, None, "c")
    whole = replace(lane(*spans), handovers=2)
    assert cut_lane(whole, 50, 100).handovers == (2 if is_same else 1)


@pytest.mark.parametrize("kind", [SpanKind.LEADERLESS, SpanKind.NEVER_HELD])
def test_that_no_one_holds_a_lease_ends_with_the_lease(kind: SpanKind) -> None:
    record = SpanRecord()
    record.begin(kind, 10)
    assert record.spans(None, 50, is_gone=True) == ()
    assert [span.kind for span in record.spans(None, 50, is_gone=False)] == [kind]


@pytest.mark.parametrize(("at", "kinds"), [(10, [SpanKind.HELD]), (12, [SpanKind.CHOSEN, SpanKind.HELD])])
def test_a_holder_that_renews_when_it_is_chosen_leads_from_then_on(at: int, kinds: list[SpanKind]) -> None:
    record = SpanRecord()
    record.begin(SpanKind.HELD, 10)
    record.delay(at, is_expired=True)
    assert [span.kind for span in record.spans(None, 50, is_gone=False)] == kinds


@pytest.mark.parametrize(
    ("known", "ends"), [(SpanKind.HELD, 32), (SpanKind.LEADERLESS, 45)], ids=["it was held", "it was free"]
)
def test_a_holder_goes_on_until_a_write_that_came_before_a_stamp_that_is_ahead(known: SpanKind, ends: int) -> None:
    record = SpanRecord()
    record.begin(known, 10)
    record.begin(SpanKind.UNRECORDED, 45)
    record.begin(SpanKind.HELD, 32)
    assert [(span.kind, span.begins, span.ends) for span in record.spans(None, 50, is_gone=False)] == [
        (known, 10, ends),
        (SpanKind.HELD, ends, None),
    ]


def test_a_frozen_lease_is_not_overdue_as_well() -> None:
    record = SpanRecord()
    record.begin(SpanKind.HELD, 10)
    spans = record.spans(30, 50, Frozen(20, "renewTime is of another age"), is_gone=False)
    assert [span.kind for span in spans] == [SpanKind.HELD, SpanKind.FROZEN]


@pytest.mark.parametrize(
    ("span", "text"),
    [
        pytest.param(Span(SpanKind.HELD, 0, holder="a"), "held by a", id="held"),
        pytest.param(Span(SpanKind.HELD, 0), "held by a holder that the input does not name", id="held, by no name"),
        pytest.param(Span(SpanKind.HELD, 0, holder="a", reason="so"), "held by a, so", id="held, by a first state"),
        pytest.param(
            Span(SpanKind.WRITTEN, 0, holder="a"),
            "written by a: the input does not show who holds it",
            id="written",
        ),
        pytest.param(
            Span(SpanKind.REMOVED, 0),
            "no one holds it: another writer removed its holder, which may still lead",
            id="holder removed",
        ),
        pytest.param(Span(SpanKind.FROZEN, 0, holder="a", reason="why"), "frozen: held by a, and why", id="frozen"),
        pytest.param(Span(SpanKind.NEVER_HELD, 0), "never held: any replica may take it", id="never held"),
        pytest.param(Span(SpanKind.SEVERAL, 0, count=3), "3 short spans, too many changes to draw", id="several"),
    ],
)
def test_a_span_in_words(span: Span, text: str) -> None:
    assert span.describe((), 50) == text


def test_only_a_span_with_a_reason_has_one_in_json() -> None:
    spans = (Span(SpanKind.HELD, 10, 20, "a"), Span(SpanKind.FROZEN, 20, holder="a", reason="why"))
    held, frozen = make_timeline_json(Timeline(10, 50, (lane(*spans),)))["leases"][0]["spans"]
    assert "reason" not in held
    assert frozen["reason"] == "why"
