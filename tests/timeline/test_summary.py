"""The sentences about one lane: who led, and the longest time without a leader with its reason."""

import pytest
from msgspec.structs import replace

from tests.timeline.election_samples import NOON, SECOND
from webhook.timeline.model import Bucket, Lane, Mark, MarkKind, Span, SpanKind, Ticks
from webhook.timeline.summary import Gap, doubts, gaps, handovers, longest, span_texts, summary

END = NOON + 600 * SECOND
FIRST = Span(SpanKind.HELD, NOON, NOON + 75 * SECOND, "a")
OVERDUE = Span(SpanKind.OVERDUE, NOON + 75 * SECOND, NOON + 77 * SECOND, "a")
SECOND_HOLDER = Span(SpanKind.HELD, NOON + 77 * SECOND, None, "b")
TAKEN = Mark(MarkKind.TAKEOVER_BY_EXPIRY, NOON + 77 * SECOND, "b took it", "b")
RENEWALS = Ticks((NOON, NOON + 60 * SECOND, NOON + 77 * SECOND))


def lane(*spans: Span, ticks: Ticks = RENEWALS, marks: tuple[Mark, ...] = (TAKEN,)) -> Lane:
    return Lane("shop", "checkout", 15, spans, ticks, marks)


def test_an_expired_lease_had_no_leader_since_its_last_renewal_at_most() -> None:
    found = gaps(lane(FIRST, OVERDUE, SECOND_HOLDER), END)
    begins, expires, ends = NOON + 60 * SECOND, NOON + 75 * SECOND, NOON + 77 * SECOND
    gap = Gap(begins, expires, ends, 17 * SECOND, True, "a renewed it last at", "a", "b")
    assert found == (gap,)
    assert longest(found) == gap
    assert summary(lane(FIRST, OVERDUE, SECOND_HOLDER), END) == (
        "a led, then b from 12:01:17Z. Longest time without a leader: up to 17 s; "
        "a renewed it last at 12:01:00Z, and b took it at 12:01:17Z."
    )


def test_a_last_renewal_within_a_bucket_counts() -> None:
    ticks = Ticks((), (Bucket(NOON, NOON + 58 * SECOND, 30), Bucket(NOON + 77 * SECOND, NOON + 99 * SECOND, 9)))
    assert gaps(lane(FIRST, OVERDUE, SECOND_HOLDER, ticks=ticks), END)[0].begins == NOON + 58 * SECOND


def test_without_a_renewal_it_counts_from_the_beginning_of_the_holder() -> None:
    assert gaps(lane(FIRST, OVERDUE, ticks=Ticks()), END)[0].begins == NOON
    assert gaps(lane(OVERDUE, ticks=Ticks()), END)[0].begins == OVERDUE.begins


def test_a_released_lease_had_no_leader_since_the_release() -> None:
    held = Span(SpanKind.HELD, NOON, NOON + 60 * SECOND, "a")
    free = Span(SpanKind.LEADERLESS, NOON + 60 * SECOND, NOON + 61 * SECOND)
    taken = Span(SpanKind.HELD, NOON + 61 * SECOND, None, "b")
    assert summary(lane(held, free, taken), END) == (
        "a led, then b from 12:01:01Z. Longest time without a leader: 1 s; a released it at 12:01:00Z, "
        "and b took it at 12:01:01Z."
    )


def test_times_have_tenths_as_lengths_have() -> None:
    held = Span(SpanKind.HELD, NOON, NOON + 60_250_000, "a")
    free = Span(SpanKind.LEADERLESS, NOON + 60_250_000, NOON + 61_750_000)
    taken = Span(SpanKind.HELD, NOON + 61_750_000, None, "b")
    assert summary(lane(held, free, taken), END) == (
        "a led, then b from 12:01:01.7Z. Longest time without a leader: 1.5 s; a released it at 12:01:00.2Z, "
        "and b took it at 12:01:01.7Z."
    )


def test_without_a_last_renewal_the_time_is_exact() -> None:
    (gap,) = gaps(lane(OVERDUE, SECOND_HOLDER, ticks=Ticks()), END)
    assert gap.text(END) == "no leader for 2 s"


def test_a_deleted_lease_had_no_leader_since_the_deletion() -> None:
    held = Span(SpanKind.HELD, NOON, NOON + 60 * SECOND, "a")
    gone = Span(SpanKind.LEADERLESS, NOON + 60 * SECOND, NOON + 61 * SECOND)
    taken = Span(SpanKind.HELD, NOON + 61 * SECOND, None, "b")
    deleted = Mark(MarkKind.DELETED, NOON + 60 * SECOND, "deleted")
    assert "1 s; it was deleted at 12:01:00Z, and b took it at 12:01:01Z." in summary(
        lane(held, gone, taken, marks=(deleted,)), END
    )


def test_overdue_and_then_deleted_is_one_time_without_a_leader() -> None:
    deleted = Span(SpanKind.LEADERLESS, NOON + 77 * SECOND, None)
    (gap,) = gaps(lane(FIRST, OVERDUE, deleted), END)
    assert (gap.begins, gap.ends, gap.is_open) == (NOON + 60 * SECOND, END, True)
    assert "No one leads: a renewed it last at 12:01:00Z, and no one has taken it since." in summary(
        lane(FIRST, OVERDUE, deleted), END
    )
    assert gap.text(END) == "no leader since 12:01:00Z"


def test_a_holder_that_renews_late_keeps_it() -> None:
    again = Span(SpanKind.HELD, NOON + 77 * SECOND, None, "a")
    assert summary(lane(FIRST, OVERDUE, again), END) == (
        "a led. Longest time without a leader: up to 7 s; a renewed it last at 12:01:00Z, and again at 12:01:17Z."
    )


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ((), "It was not seen."),
        ((Span(SpanKind.LEADERLESS, NOON),), "No one held it."),
        ((Span(SpanKind.HELD, NOON, None, "a"),), "a led. It always had a leader."),
        (
            (Span(SpanKind.LEADERLESS, NOON, NOON + SECOND), Span(SpanKind.HELD, NOON + SECOND, None, "a")),
            "a led. Longest time without a leader: 1 s; no one held it at 12:00:00Z, and a took it at 12:00:01Z.",
        ),
        (
            (Span(SpanKind.SEVERAL, NOON, NOON + SECOND, count=70), Span(SpanKind.HELD, NOON + SECOND, None, "a")),
            "It changed hands about 71 times; a was the last leader. It always had a leader.",
        ),
    ],
)
def test_other_lanes(spans: tuple[Span, ...], said: str) -> None:
    assert summary(lane(*spans, marks=()), END) == said


def test_many_holders_are_counted() -> None:
    turns = [Span(SpanKind.HELD, NOON + n * SECOND, NOON + (n + 1) * SECOND, "abc"[n % 3]) for n in range(5)]
    assert summary(lane(*turns, marks=()), END) == (
        "a led first; 4 handovers among 3 holders, the last to b from 12:00:04Z. It always had a leader."
    )


def test_steals_are_named() -> None:
    stolen = Mark(MarkKind.STEAL, NOON + 5 * SECOND, "b took it from a", "b")
    held = Span(SpanKind.HELD, NOON, None, "b")
    assert summary(lane(held, marks=(stolen,)), END) == (
        "b took it at 12:00:05Z while it was held: two replicas may have acted as leader. b led."
    )
    assert "It was taken 2 times while it was held: two replicas may have acted as leader." in summary(
        lane(held, marks=(stolen, stolen)), END
    )


def test_one_moment_is_not_a_history() -> None:
    one = lane(FIRST)
    assert summary(one, END) == "a led. It always had a leader."
    assert summary(replace(one, is_moment=True), END).endswith(
        "The input shows one moment only, not what happened before."
    )


def test_spans_say_what_they_are() -> None:
    several = Span(SpanKind.SEVERAL, NOON - SECOND, NOON, count=4)
    one = lane(several, FIRST, OVERDUE, SECOND_HOLDER)
    assert list(span_texts(one, gaps(one, END), END)) == [
        "4 short spans, too many changes to draw",
        "held by a",
        "overdue: held by a, no leader for up to 17 s",
        "held by b",
    ]
    assert handovers(one) == 6
    unnamed = lane(Span(SpanKind.HELD, NOON))
    assert list(span_texts(unnamed, (), END)) == ["held by a holder that the input does not name"]


def test_until_the_lease_before_would_have_expired_a_steal_leaves_two_that_may_lead() -> None:
    stolen = Mark(MarkKind.STEAL, NOON + 61 * SECOND, "b took it from a", "b")
    spans = (Span(SpanKind.HELD, NOON, stolen.at, "a"), Span(SpanKind.HELD, stolen.at, None, "b"))
    ((doubt, text),) = doubts(lane(*spans, marks=(stolen,)), (), END)
    assert (doubt.begins, doubt.ends, text) == (stolen.at, NOON + 75 * SECOND, stolen.text)
    ((unknown, _),) = doubts(lane(marks=(stolen,), ticks=Ticks()), (), END)
    assert unknown.ends == stolen.at + 15 * SECOND
