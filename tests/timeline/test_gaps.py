"""What one lane shows: who led, and for how long no one did."""

from msgspec.structs import replace

from tests.timeline.election_samples import NOON, SECOND
from webhook.analysis.timeline.model import (
    Bucket,
    Gap,
    Lane,
    Mark,
    MarkKind,
    Span,
    SpanKind,
    Ticks,
)

END = NOON + 600 * SECOND
FIRST = Span(SpanKind.HELD, NOON, NOON + 75 * SECOND, "a")
OVERDUE = Span(SpanKind.OVERDUE, NOON + 75 * SECOND, NOON + 77 * SECOND, "a")
SECOND_HOLDER = Span(SpanKind.HELD, NOON + 77 * SECOND, None, "b")
TAKEN = Mark(MarkKind.TAKEOVER_BY_EXPIRY, NOON + 77 * SECOND, "b took it", "b")
RENEWALS = Ticks((NOON, NOON + 60 * SECOND, NOON + 77 * SECOND))


def lane(*spans: Span, ticks: Ticks = RENEWALS, marks: tuple[Mark, ...] = (TAKEN,)) -> Lane:
    return Lane("shop", "checkout", 15, spans, ticks, marks)


def test_an_expired_lease_had_no_leader_since_its_last_renewal_at_most() -> None:
    gaps = lane(FIRST, OVERDUE, SECOND_HOLDER).list_gaps(END)
    begins, expires, ends = NOON + 60 * SECOND, NOON + 75 * SECOND, NOON + 77 * SECOND
    gap = Gap(begins, expires, ends, 17 * SECOND, "a", is_bound=True)
    assert gaps == (gap,)
    assert gap.describe(END) == "no leader for up to 17 s"


def test_a_last_renewal_within_a_bucket_counts() -> None:
    ticks = Ticks((), (Bucket(NOON, NOON + 58 * SECOND, 30), Bucket(NOON + 77 * SECOND, NOON + 99 * SECOND, 9)))
    assert lane(FIRST, OVERDUE, SECOND_HOLDER, ticks=ticks).list_gaps(END)[0].begins == NOON + 58 * SECOND


def test_without_a_renewal_it_counts_from_the_beginning_of_the_holder() -> None:
    assert lane(FIRST, OVERDUE, ticks=Ticks()).list_gaps(END)[0].begins == NOON
    assert lane(OVERDUE, ticks=Ticks()).list_gaps(END)[0].begins == OVERDUE.begins


def test_a_released_lease_had_no_leader_since_the_release() -> None:
    held = Span(SpanKind.HELD, NOON, NOON + 60_250_000, "a")
    free = Span(SpanKind.LEADERLESS, NOON + 60_250_000, NOON + 61_750_000)
    taken = Span(SpanKind.HELD, NOON + 61_750_000, None, "b")
    (gap,) = lane(held, free, taken).list_gaps(END)
    assert (gap.holder, gap.describe(END)) == ("a", "no leader for 1.5 s")
    (still,) = lane(held, replace(free, ends=None)).list_gaps(END)
    assert still.describe(END) == "no holder since 12:01:00.2Z"


def test_a_renewal_that_was_not_recorded_does_not_count() -> None:
    unrecorded = Span(SpanKind.UNRECORDED, NOON + 60 * SECOND, NOON + 75 * SECOND)
    (gap,) = lane(unrecorded, OVERDUE, SECOND_HOLDER).list_gaps(END)
    assert (gap.begins, gap.describe(END)) == (NOON + 75 * SECOND, "no leader for up to 2 s")
    later = Ticks((NOON, NOON + 70 * SECOND))
    assert lane(unrecorded, OVERDUE, SECOND_HOLDER, ticks=later).list_gaps(END)[0].begins == NOON + 70 * SECOND


def test_a_late_holder_may_lead_although_its_last_renewal_is_not_known() -> None:
    (gap,) = lane(OVERDUE, SECOND_HOLDER, ticks=Ticks()).list_gaps(END)
    assert gap.describe(END) == "no leader for up to 2 s"


def test_overdue_and_then_deleted_is_one_time_without_a_leader() -> None:
    deleted = Span(SpanKind.LEADERLESS, NOON + 77 * SECOND, None)
    (gap,) = lane(FIRST, OVERDUE, deleted).list_gaps(END)
    assert (gap.begins, gap.ends, gap.is_open) == (NOON + 60 * SECOND, END, True)
    assert gap.describe(END) == "not renewed since 12:01:00Z"


def test_a_holder_that_renews_late_keeps_it() -> None:
    again = Span(SpanKind.HELD, NOON + 77 * SECOND, None, "a")
    (gap,) = lane(FIRST, OVERDUE, again).list_gaps(END)
    assert gap.describe(END) == "no leader for up to 17 s"


def test_spans_say_what_they_are() -> None:
    several = Span(SpanKind.SEVERAL, NOON - SECOND, NOON, count=4)
    drawn = lane(several, FIRST, OVERDUE, SECOND_HOLDER)
    assert [span.describe(drawn.list_gaps(END), END) for span in drawn.spans] == [
        "4 short spans, too many changes to draw",
        "held by a",
        "overdue: held by a, no leader for up to 17 s",
        "held by b",
    ]
    unnamed = lane(Span(SpanKind.HELD, NOON))
    assert [span.describe((), END) for span in unnamed.spans] == ["held by a holder that the input does not name"]


def test_who_was_chosen_and_has_not_renewed_is_a_part_of_the_time_without_a_leader() -> None:
    chosen = Span(SpanKind.CHOSEN, NOON + 77 * SECOND, NOON + 80 * SECOND, "b")
    drawn = lane(FIRST, OVERDUE, chosen, replace(SECOND_HOLDER, begins=NOON + 80 * SECOND))
    (gap,) = drawn.list_gaps(END)
    assert (gap.begins, gap.ends) == (NOON + 60 * SECOND, NOON + 80 * SECOND)
    assert chosen.describe([gap], END) == "chosen: b, which has not renewed it yet, no leader for up to 20 s"


def test_the_last_renewal_before_the_timeline_begins_counts() -> None:
    (gap,) = replace(lane(FIRST, OVERDUE, ticks=Ticks()), renewed_before=NOON + 59 * SECOND).list_gaps(END)
    assert gap.begins == NOON + 59 * SECOND


def test_until_the_lease_before_would_have_expired_a_steal_leaves_two_that_may_lead() -> None:
    stolen = Mark(MarkKind.STEAL, NOON + 61 * SECOND, "b took it from a", "b", contested_until=NOON + 75 * SECOND)
    spans = (Span(SpanKind.HELD, NOON, stolen.begins, "a"), Span(SpanKind.HELD, stolen.begins, None, "b"))
    ((doubt, text),) = lane(*spans, marks=(stolen,)).list_doubts((), END)
    assert (doubt.begins, doubt.ends, text) == (stolen.begins, NOON + 75 * SECOND, stolen.text)
    ((unknown, _),) = lane(marks=(replace(stolen, contested_until=None),)).list_doubts((), END)
    assert unknown.ends == stolen.begins


def test_two_may_lead_no_longer_once_the_holder_before_a_steal_is_back() -> None:
    stolen = Mark(MarkKind.STEAL, NOON + 61 * SECOND, "b took it from a", "b", contested_until=NOON + 600 * SECOND)
    back = Span(SpanKind.HELD, NOON + 90 * SECOND, None, "a")
    spans = (Span(SpanKind.HELD, NOON, stolen.begins, "a"), Span(SpanKind.HELD, stolen.begins, back.begins, "b"), back)
    ((doubt, _),) = lane(*spans, marks=(stolen,)).list_doubts((), END)
    assert doubt.ends == back.begins
    joined = replace(stolen, count=2, ends=back.begins)
    ((doubt, _),) = lane(*spans, marks=(joined,)).list_doubts((), END)
    assert doubt.ends == stolen.contested_until


def test_a_lease_that_was_never_held_had_no_time_without_a_leader() -> None:
    refused = Mark(MarkKind.DENIED, NOON, "a write was answered with 403")
    assert lane(marks=(refused,), ticks=Ticks()).list_gaps(END) == ()


def test_a_node_has_no_heartbeat_rather_than_no_leader() -> None:
    drawn = replace(lane(FIRST, replace(OVERDUE, ends=None)), namespace="kube-node-lease")
    (gap,) = drawn.list_gaps(END)
    assert gap.describe(END) == "no heartbeat since 12:01:00Z"


REMOVED = Span(SpanKind.UNRECORDED, NOON + 60 * SECOND, NOON + 75 * SECOND, reason="its holder was removed")


def test_who_let_a_lease_expire_after_an_undated_removal_has_a_gap_of_its_own() -> None:
    written_in = Span(SpanKind.OVERDUE, NOON + 75 * SECOND, None, "b")
    held = Span(SpanKind.HELD, NOON, NOON + 60 * SECOND, "a")
    drawn = lane(held, REMOVED, written_in)
    (gap,) = drawn.list_gaps(END)
    assert (gap.begins, gap.holder, gap.is_open) == (written_in.begins, "b", True)
    assert written_in.describe(drawn.list_gaps(END), END) == "overdue: held by b, not renewed since 12:01:15Z"


def test_after_an_undated_removal_that_nothing_follows_there_is_no_gap() -> None:
    held = Span(SpanKind.HELD, NOON, NOON + 60 * SECOND, "a")
    assert lane(held, replace(REMOVED, ends=None)).list_gaps(END) == ()
