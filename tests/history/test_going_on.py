"""A process that goes on after another one had been taken for the next one of its name."""

from webhook.analysis.history.holders.processes import MAX_WRITERS, HolderProcesses, OtherProcess
from webhook.analysis.history.renewals import Renewals, Silence
from webhook.analysis.inputs.items import Writer

OWN, NEW, THIRD = (Writer("u", pod=f"db-{number}", uid=str(number)) for number in range(3))


def make_other(count: int, first: int, last: int) -> OtherProcess:
    return OtherProcess(count, first, last, first, last)


def go_on(known: dict[Writer, OtherProcess], newcomer: dict[Writer, OtherProcess]) -> HolderProcesses:
    processes = HolderProcesses(
        "db", own=OWN, renewals=5, others=known, requests_after_loss=[7], conflicted_after_loss=7
    )
    new = HolderProcesses("db", own=NEW, others={OWN: make_other(1, 7, 7), **newcomer})
    processes.merge_concurrent_process(new, make_other(3, 6, 9))
    return processes


def test_its_renewals_meanwhile_are_its_own_and_the_newcomer_renewed_beside_it() -> None:
    processes = go_on({}, {THIRD: make_other(2, 8, 8)})
    assert processes.renewals == 6
    assert {who: one.count for who, one in processes.others.items()} == {THIRD: 2, NEW: 3}
    assert (processes.requests_after_loss, processes.conflicted_after_loss) == ([], None)


def test_what_one_did_before_and_since_is_one_time() -> None:
    processes = go_on({NEW: make_other(4, 1, 2)}, {})
    assert processes.others[NEW] == make_other(7, 1, 9)


def test_what_an_unknown_writer_renewed_meanwhile_is_taken_for_its_own() -> None:
    processes = HolderProcesses("db", own=OWN, renewals=5)
    new = HolderProcesses("db", own=NEW, renewals=4, unknown_renewals=1, others={OWN: make_other(1, 7, 7)})
    processes.merge_concurrent_process(new, make_other(new.known_renewals, 6, 9))
    assert (processes.renewals, processes.known_renewals, processes.others[NEW].count) == (7, 6, 3)


def test_no_more_are_remembered_than_are_kept() -> None:
    known = {Writer("u", uid=f"x{number}"): make_other(1, 1, 1) for number in range(MAX_WRITERS)}
    assert go_on(dict(known), {}).others.keys() == known.keys()


def test_the_time_between_two_holders_is_forgotten_and_silences_are_of_the_one_that_goes_on() -> None:
    renewals = Renewals()
    renewals.restart_with_holder(10, has_expired=False)
    renewals.restart_with_holder(20, has_expired=False)
    renewals.silences.append(Silence(12, 15, tenure_number=2))
    renewals.rejoin_holder(20)
    assert (renewals.tenure_count, list(renewals.free)) == (1, [])
    assert [one.tenure_number for one in renewals.silences] == [1]


def test_another_time_without_a_holder_is_kept() -> None:
    renewals = Renewals()
    renewals.restart_with_holder(10, has_expired=False)
    renewals.restart_with_holder(20, has_expired=False)
    renewals.rejoin_holder(21)
    assert [one.end for one in renewals.free] == [20]
