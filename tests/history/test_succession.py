"""The sequence of tenures: what one leaves to the next, what is counted, and what is forgotten."""

import pytest

from webhook.analysis.history.holders.beginning import Beginning
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.succession import MAX_TENURES, Succession
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.holders.vacancy import bound_time_between
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.inputs.items import Writer

SECOND = 1_000_000


def log(at: int) -> Write:
    """A write that a log dates to the microsecond."""
    return Write(at * SECOND, at * SECOND, at * SECOND, Dating.LOG)


def tenure(holder: str, since: int, how: Handover = Handover.RELEASED) -> Tenure:
    at = since * SECOND
    return Tenure(
        HolderProcesses(holder, "shop"), at, how, at, beginning=Beginning(log(since)), last_extension=log(since)
    )


def held(*holders: str) -> Succession:
    """One holder after another, each for 10 s, and the last one still there."""
    succession = Succession()
    for number, holder in enumerate(holders):
        if number:
            succession.end(10 * number * SECOND, Handover.RELEASED, log(10 * number), log(0))
        succession.begin(tenure(holder, 10 * number, Handover.RELEASED if number else Handover.SEEN))
    return succession


def test_of_no_tenure_nothing_is_known() -> None:
    none = Succession()
    assert (none.latest, none.before, none.holder, none.find_tenure_at(0)) == (None, None, None, None)


def test_a_holder_follows_the_one_before() -> None:
    succession = held("a", "b")
    assert succession.latest is succession.holder is succession.tenures[1]
    assert succession.before is succession.tenures[0]
    assert [one.previous for one in succession.tenures] == ["", "a"]


def test_a_holder_that_has_ended_is_the_latest_and_none_holds_the_lease() -> None:
    succession = held("a")
    ended = succession.end(10 * SECOND, Handover.RELEASED, log(10), log(0))
    assert ended is succession.latest
    assert ended is not None
    assert (ended.until, ended.ended, ended.is_end_dated) == (10 * SECOND, log(10), True)
    assert succession.holder is None


def test_a_release_that_nothing_dates_was_at_some_time() -> None:
    ended = held("a").end(10 * SECOND, Handover.RELEASED, Write(10 * SECOND), log(0))
    assert ended is not None
    assert not ended.is_end_dated


@pytest.mark.parametrize(
    ("renewed", "ended", "is_known"),
    [
        pytest.param(Dating.LOG, None, True, id="a holder that goes on"),
        pytest.param(Dating.LOG, Dating.LOG, True, id="a log dates both"),
        pytest.param(Dating.LOG, Dating.WRITER_CLOCK, False, id="the clock of who ended it"),
        pytest.param(Dating.WRITER_CLOCK, Dating.LOG, True, id="a log dates the end"),
        pytest.param(Dating.STAMP, Dating.ORDER, True, id="after a renewal that a stamp dates"),
        pytest.param(Dating.WRITER_CLOCK, Dating.ORDER, False, id="after a renewal by its own clock"),
    ],
)
def test_a_tenure_ends_at_a_known_time_if_no_clock_of_a_writer_dates_it(
    renewed: Dating, ended: Dating | None, *, is_known: bool
) -> None:
    kept = tenure("a", 0)
    kept.extend(Write(10 * SECOND, dating=renewed))
    if ended:
        kept.end(10 * SECOND, Write(10 * SECOND, dating=ended))
    assert kept.is_end_known is is_known


def test_who_did_not_hold_the_lease_does_not_end() -> None:
    succession = held("a")
    succession.end(10 * SECOND, Handover.RELEASED, log(10), log(0))
    assert succession.end(15 * SECOND, Handover.UNKNOWN, log(15), log(10)) is None
    assert succession.tenures[0].until == 10 * SECOND
    assert succession.vacancy.since == 15 * SECOND


def test_the_time_without_a_leader_is_that_from_an_end_to_the_next_begin() -> None:
    succession = held("a")
    succession.end(10 * SECOND, Handover.RELEASED, log(10), log(0))
    succession.begin(tenure("b", 13))
    assert succession.tenures[1].leaderless == succession.vacancy.leaderless == 3 * SECOND


@pytest.mark.parametrize(
    ("is_dated", "is_claimed", "earliest"),
    [(True, False, 10 * SECOND), (False, False, 7 * SECOND), (False, True, 0)],
    ids=["dated", "after a write that a log dates", "after one that only its writer dates"],
)
def test_a_deletion_came_after_the_write_before(is_dated: bool, is_claimed: bool, earliest: int) -> None:
    succession = held("a")
    succession.tenures[0].note_end_dated(is_dated=is_dated)
    before = Write(7 * SECOND, 7 * SECOND, None, Dating.WRITER_CLOCK if is_claimed else Dating.LOG)
    ended = succession.end(10 * SECOND, Handover.DELETED, log(10), before)
    assert ended is not None
    assert ended.ended is not None
    assert ended.ended.earliest == earliest
    assert ended.ended.is_dated == is_dated


@pytest.mark.parametrize(
    ("is_stand_in", "changes"),
    [(False, 0), (True, 1)],
    ids=["a holder is shown", "another writer"],
)
def test_the_first_holder_that_is_shown_may_be_the_one_for_which_a_writer_stood_in(
    *, is_stand_in: bool, changes: int
) -> None:
    succession, after = Succession(), tenure("b", 10, Handover.SEEN)
    before = tenure("a", 0)
    before.is_stand_in, after.is_stand_in = True, is_stand_in
    succession.begin(before)
    succession.begin(after)
    succession.begin(tenure("b", 20))
    assert succession.changes == changes


@pytest.mark.parametrize(
    ("holders", "changes"),
    [
        (("a",), 0),
        (("a", "b"), 1),
        (("a", "a"), 0),
        (("a", API_SERVER, "a"), 0),
        (("a", API_SERVER, "b"), 1),
        ((API_SERVER, "b"), 0),
    ],
    ids=["one", "another", "the same again", "chosen again", "chosen", "the first is chosen"],
)
def test_an_api_server_that_chooses_is_no_change_of_the_holder(holders: tuple[str, ...], changes: int) -> None:
    succession = held(*holders)
    assert succession.changes == changes
    assert sum(succession.handovers.values()) == len(holders)


def test_a_holder_that_may_go_on_after_what_was_not_seen_is_no_handover() -> None:
    succession = held("a")
    succession.end(10 * SECOND, Handover.UNKNOWN, log(10), log(0))
    succession.begin(tenure("a", 10, Handover.UNKNOWN), is_new=False)
    assert (len(succession.tenures), succession.handovers) == (2, {Handover.SEEN: 1})


def test_the_tenure_at_an_instant_is_the_latest_that_had_begun() -> None:
    succession = held("a", "b")
    a, b = succession.tenures
    assert [succession.find_tenure_at(at * SECOND) for at in (-1, 0, 9, 10)] == [None, a, a, b]


def test_the_process_of_an_identity_is_known_from_an_earlier_tenure() -> None:
    succession, pod = held("db-0", "db-1"), Writer("system:serviceaccount:shop:db", "db-0", uid="u")
    succession.tenures[0].processes.begin(pod, None)
    assert succession.find_process("db-0", pod) == pod
    assert succession.find_process("db-2", pod) is None
    assert not succession.is_replaced_by(pod, 20 * SECOND, is_nameless=False)


def test_the_oldest_tenures_are_forgotten_and_all_are_counted() -> None:
    succession = held(*(f"db-{number}" for number in range(MAX_TENURES + 1)))
    assert len(succession.tenures) == succession.changes == MAX_TENURES
    assert succession.handovers == {Handover.SEEN: 1, Handover.RELEASED: MAX_TENURES}


def test_an_identity_is_not_joined_by_writers_at_no_time() -> None:
    tenure = Tenure(HolderProcesses("a"), 0, Handover.SEEN, 0)
    assert tenure.processes.pods == []
    assert tenure.processes.others == {}


def test_a_holder_called_as_the_pod_that_stood_in_for_the_one_before_is_another_one() -> None:
    succession = held("db-0")
    assert succession.latest is not None
    succession.latest.name_holder("db-0.cluster-a")
    succession.begin(tenure("db-0", 30, Handover.EXPIRED))
    assert succession.changes == 1


@pytest.mark.parametrize(("is_stand_in", "seconds"), [(False, 25), (True, 24.5)], ids=["a stamp", "a log without it"])
def test_a_renewal_that_no_write_dates_may_have_been_at_the_beginning_of_its_second(
    seconds: float, *, is_stand_in: bool
) -> None:
    before = tenure("db-0", 0)
    before.is_stand_in = is_stand_in
    assert bound_time_between(5 * SECOND + SECOND // 2, 30 * SECOND, log(30), before) == seconds * SECOND
