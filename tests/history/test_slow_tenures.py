"""A holder that renews more rarely than those before it: it is late by its own rhythm, and not by theirs."""

from collections.abc import Iterable

import pytest

from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import LEASE, View, follow_log, follow_watch
from webhook.analysis.history.renewals import OtherLeases, Renewals

MAIL = (("shop", "mail"),)
BOTH = pytest.mark.parametrize("view", [follow_watch, follow_log], ids=["watch", "audit log"])


def make_renewals(*holders: Iterable[float]) -> Renewals:
    """Return renewals by one holder after another, each after so many seconds; each takes it once it has expired."""
    renewals, at = Renewals(), 0
    for intervals in holders:
        at += 16 * SECOND
        renewals.restart_with_holder(at, has_expired=True)
        for interval in intervals:
            at += int(interval * SECOND)
            renewals.add(at)
    return renewals


def was_late(renewals: Renewals, seconds_before_last: int, length: int) -> bool | None:
    assert renewals.last is not None
    start = renewals.last - seconds_before_last * SECOND
    return renewals.was_late(start, start + length * SECOND)


@BOTH
@pytest.mark.parametrize("ends", [False, True], ids=["holds it still", "lost it"])
def test_a_new_holder_with_a_longer_duration_is_on_time_by_its_own_rhythm(view: View, ends: bool) -> None:
    server = FakeServer()
    server.elector("a", "shop/mail").lead(60)
    server.wait(20)
    slow = server.elector("b", "shop/mail", duration=60, retry=10)
    slow.lead(30)
    a = server.elector("a", "shop/db")
    a.take()
    start = server.now
    slow.lead(20)
    server.wait(2)
    server.elector("b", "shop/db").take()
    end = server.now
    slow.lead(20)
    if ends:
        server.wait(62)
        server.elector("c", "shop/mail").lead(40)
    histories = view(server)
    others = histories.index.compare_with_others(histories.leases[LEASE], start, end)
    assert others == OtherLeases(on_time=1, named_on_time=MAIL)


@pytest.mark.parametrize(
    ("intervals", "is_late"),
    [
        ([10] * 5, False),
        ([10] * 4 + [0.1] + [10] * 4, False),
        ([10, 10, 10, 10, 30], True),
        ([10] * 2, None),
        ([10, 25, 12, 40], True),
        ([2, 10, 10, 10], True),
        ([2] * 10, False),
    ],
    ids=[
        "a rhythm of its own",
        "one renewal repeated",
        "late by its own rhythm",
        "too few to tell",
        "intervals that are not alike",
        "a renewal in the rhythm of those before",
        "the rhythm of those before",
    ],
)
def test_whether_a_new_holder_is_late(intervals: list[float], is_late: bool | None) -> None:
    renewals = make_renewals([2] * 30, intervals)
    assert was_late(renewals, 20, 20) is is_late
    # It is so once another holder has followed, in the rhythm of the first, too.
    assert renewals.last is not None
    start, end = renewals.last - 20 * SECOND, renewals.last
    followed = make_renewals([2] * 30, intervals, [2] * 10)
    assert followed.was_late(start, end) is is_late


def test_a_slow_holder_is_not_compared_in_a_time_in_which_it_was_due_once() -> None:
    renewals = make_renewals([2] * 30, [10] * 5, [2] * 10)
    assert was_late(renewals, 20 + 16 + 25, 12) is None
    # Until its next renewal is due, neither is the time after its last one.
    assert was_late(renewals, 20 + 16 - 1, 8) is None
    assert was_late(renewals, 20, 12) is False


def test_who_has_few_renewals_was_late_if_the_holder_before_was() -> None:
    renewals = make_renewals([2] * 30, [10])
    assert was_late(renewals, 24, 18) is True


def test_the_pace_of_a_slow_holder_is_no_pause() -> None:
    renewals = make_renewals([2] * 30, [10] * 5)
    assert renewals.last is not None
    assert renewals.find_longest_silence(renewals.last - 25 * SECOND, renewals.last) == 0


@pytest.mark.parametrize(("intervals", "has_stopped"), [([10] * 4, False), ([2] * 20, True)], ids=["slow", "as before"])
def test_a_slow_holder_has_not_stopped_while_its_next_renewal_is_hardly_due(
    intervals: list[float], *, has_stopped: bool
) -> None:
    renewals = make_renewals([2] * 30, intervals)
    assert renewals.last is not None
    assert renewals.has_stopped_by(renewals.last + SECOND, renewals.last + 12 * SECOND) is has_stopped
