"""The rhythm of renewals: one or two at once, without those that were counted before, and whatever the clock says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import LEASE, follow_watch
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.renewals import Renewals
from webhook.analysis.inputs.items import CountedRenewals


def make_renewals(*intervals: float) -> Renewals:
    renewals, at = Renewals(), 0
    renewals.restart(at)
    for interval in intervals:
        at += int(interval * SECOND)
        renewals.add(at)
    return renewals


@pytest.mark.parametrize("pair", [(1.8, 0.3), (0.3, 1.8), (1.3, 0.8)], ids=str)
def test_two_rhythms_are_told_from_twelve_renewals_on(pair: tuple[float, float]) -> None:
    assert make_renewals(*pair * 6).is_doubled
    assert not make_renewals(*pair * 4).is_doubled


@pytest.mark.parametrize(
    ("intervals", "seconds"),
    [
        ([2] * 12, None),
        ([2] * 5 + [0.3, 1.7] * 6, (10, 22)),
        ([2] * 5 + [0.3, 1.7] * 6 + [2] * 20, (10, 22)),
        ([0.3, 1.7] * 6 + [2] * 12 + [0.5, 1.5] * 7, (36.5, 50)),
        ([0.3], None),
    ],
    ids=["one rhythm", "two since then", "two for a while", "two again", "a single interval"],
)
def test_when_there_were_two_rhythms_is_remembered(intervals: list[float], seconds: tuple[float, float] | None) -> None:
    found = make_renewals(*intervals).two_rhythms
    assert (found and (found.start / SECOND, found.end / SECOND)) == seconds


def test_two_rhythms_by_a_clock_of_writers_are_not_dated() -> None:
    renewals, at = Renewals(), 0
    renewals.restart(at, is_claimed=True)
    for interval in [0.3, 1.7] * 6:
        at += int(interval * SECOND)
        renewals.add(at, is_claimed=True)
    assert renewals.is_doubled
    assert renewals.two_rhythms is None


@given(st.lists(st.floats(1.7, 2.4), min_size=10, max_size=40))
def test_one_rhythm_with_jitter_is_not_two(intervals: list[float]) -> None:
    assert not make_renewals(*intervals).is_doubled


def test_intervals_that_differ_without_order_are_not_two_rhythms() -> None:
    assert not make_renewals(2, 0.3, 1, 2, 0.5, 2, 2, 0.2, 2, 1).is_doubled


def test_what_another_record_has_shown_is_not_counted_twice() -> None:
    renewals = make_renewals(*[2] * 10)
    renewals.resume(CountedRenewals([2 * SECOND] * 3), 12 * SECOND)
    assert (renewals.count, renewals.last) == (10, 20 * SECOND)
    renewals.resume(CountedRenewals([2 * SECOND] * 3), 28 * SECOND)
    assert (renewals.count, renewals.last) == (12, 26 * SECOND)


@pytest.mark.parametrize("is_claimed", [True, False], ids=["a log after a claim", "a claim after a log"])
def test_the_time_between_renewals_that_two_clocks_date_is_no_silence(is_claimed: bool) -> None:
    renewals = make_renewals(*[2] * 10)
    renewals.restart(20 * SECOND, is_claimed=is_claimed)
    assert renewals.add(340 * SECOND, 15, is_claimed=not is_claimed) is None
    assert (renewals.longest, list(renewals.silences)) == (2 * SECOND, [])
    assert renewals.add(380 * SECOND, 15, is_claimed=not is_claimed) == 40 * SECOND


@pytest.mark.parametrize(("is_claimed", "longest"), [(False, 320), (True, 2)], ids=["one clock", "another clock"])
def test_the_time_until_another_process_renews_is_a_gap_if_one_clock_dates_both(
    *, is_claimed: bool, longest: int
) -> None:
    renewals = make_renewals(*[2] * 10)
    renewals.note_gap(340 * SECOND, is_claimed=is_claimed)
    assert (renewals.longest, renewals.usual, list(renewals.silences)) == (longest * SECOND, 2 * SECOND, [])


def test_a_few_short_intervals_at_first_are_not_the_usual_ones() -> None:
    """So two API servers of one name begin, each of which renews every 10 s."""
    renewals = make_renewals(0.2, 10, 0.2, 10, 0.3, 10, 10, 10, 10)
    assert renewals.usual == 10 * SECOND
    assert not list(renewals.silences)


def test_a_few_outages_after_short_intervals_are_silences_as_long_as_they_are_not_alike() -> None:
    renewals = make_renewals(2, 2, 2, 20, 30, 60, 25)
    assert renewals.usual == 2 * SECOND
    assert [one.length for one in renewals.silences] == [length * SECOND for length in (20, 30, 60, 25)]


def test_what_nothing_dates_has_the_clock_of_what_it_follows() -> None:
    renewals = make_renewals(*[2] * 10)
    renewals.restart(20 * SECOND, is_claimed=True)
    renewals.restart(20 * SECOND)
    assert renewals.add(340 * SECOND, 15) is None


def test_renewals_that_a_record_counts_are_dated_by_the_clock_of_those_before() -> None:
    renewals = make_renewals(2)
    renewals.restart(2 * SECOND, is_claimed=True)
    renewals.resume(CountedRenewals([2 * SECOND] * 3), 8 * SECOND)
    assert (renewals.add(8 * SECOND, is_claimed=True), list(renewals.latest)) == (None, [2 * SECOND] * 4)


def test_a_clock_that_is_off_does_not_move_the_start_of_a_watch() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db", ahead=-40.0)
    a.lead(20)
    server.elector("b", "shop/db").lead(4)
    before, _ = follow_watch(server).leases[LEASE].tenures
    assert before.began is Handover.SEEN
    assert abs(before.since - server.now + 24 * SECOND) < 2 * SECOND
    assert before.clock.ahead is not None
    assert -41 * SECOND < before.clock.ahead < -39 * SECOND
    assert before.manager == "operator"


@pytest.mark.parametrize(
    ("start", "end", "is_sure"),
    [(1, 7, True), (12, 28, False), (12, 31, True), (9, 12, False), (1, 3, False), (39, 50, True), (40, 50, False)],
    ids=[
        "as usual",
        "before it was renewed again",
        "renewed again by then",
        "only before",
        "in less than renewals are apart",
        "the last one",
        "none since",
    ],
)
def test_whether_a_lease_was_surely_renewed_between_two_instants(start: int, end: int, *, is_sure: bool) -> None:
    renewals = make_renewals(2, 2, 2, 2, 2, 20, 2, 2, 2, 2, 2)
    assert renewals.was_renewed_between(start * SECOND, end * SECOND) is is_sure


def test_a_lease_without_a_renewal_was_not_renewed_between_two_instants() -> None:
    assert not Renewals().was_renewed_between(0, SECOND)
    # Of two renewals, it is not known whether there was one between.
    assert not make_renewals(2, 2).was_renewed_between(0, SECOND)


@pytest.mark.parametrize("first", [[15, 0.01, 0.01], [0.01, 0.01, 0.01, 22]], ids=["among the first", "after them"])
def test_one_long_time_does_not_keep_few_short_ones_the_usual_ones(first: list[float]) -> None:
    assert make_renewals(*first, *[2] * 6).usual == 2 * SECOND
