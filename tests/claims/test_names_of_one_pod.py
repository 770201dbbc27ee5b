"""A pod that writes one name after another into the lease goes on as its holder: nobody takes it from anybody."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import LEASE, View, follow_both, follow_log, follow_watch
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.handovers import find_frequent_changes
from webhook.analysis.claims.presentation.urgency import advise_with_urgency


def led_under(names: Sequence[str], *, after: float = 0) -> FakeServer:
    """A pod leads, for 12 s under each of several names."""
    server = FakeServer()
    server.wait(after)
    db = server.elector("db-0", "shop/db")
    server.uids["db-0"] = "d6f1"
    for name in names:
        db.identity = name
        db.lead(12)
    return server


def checks(found: Account) -> set[str]:
    return {one.check for one in found.findings}


EPOCHS = [f"db-0/epoch-{number}" for number in range(12)]


def test_names_in_turn_are_no_thefts_and_one_event() -> None:
    for follow in (follow_log, follow_both):
        server = led_under(EPOCHS)
        found = account(follow(server), server.now)
        said = text(found)
        assert "lease-stolen" not in checks(found)
        assert "handed-over" in checks(found)
        assert found.worst is None
        line = (
            "11 names followed db-0/epoch-0 until 11:08:52Z, the last one db-0/epoch-11: all were written from one pod"
        )
        assert f"{line} (shop/db from pod db-0)" in said
        assert "took it from" not in said
        assert (
            advise_with_urgency(found).sentence
            == "It is held and renewed; a lease does not show whether its holder works."
        )


def test_the_last_of_names_in_turn_has_a_date_if_it_followed_on_another_day() -> None:
    server = led_under(EPOCHS[:3], after=46_380)
    said = text(account(follow_log(server), server.now))
    assert "2 names followed db-0/epoch-0 until 2026-11-19T00:00:04Z, the last one db-0/epoch-2" in said


def test_two_names_are_told_one_by_one() -> None:
    server = led_under(EPOCHS[:2])
    said = text(account(follow_log(server), server.now))
    assert "db-0/epoch-1 took it (shop/db from pod db-0) from db-0/epoch-0, which still held it" in said


def test_a_run_of_names_ends_with_the_next_holder() -> None:
    server = led_under(EPOCHS[:4])
    server.wait(30)
    server.elector("db-1", "shop/db").lead(20)
    said = text(account(follow_log(server), server.now))
    assert "3 names followed db-0/epoch-0" in said
    assert "db-1_1 took it (shop/db from pod db-1) after db-0/epoch-3 let it expire" in said


def test_names_that_come_again_may_be_of_two_electors() -> None:
    server = led_under(["db-0/a", "db-0/b", "db-0/a", "db-0/b"])
    found = account(follow_log(server), server.now)
    assert "lease-stolen" in checks(found)
    assert "names followed" not in text(found)
    finding = next(one for one in found.findings if one.check == "lease-stolen")
    assert "mutatingwebhook" not in finding.fix


def test_a_watch_does_not_show_that_it_is_one_pod() -> None:
    server = led_under(EPOCHS)
    assert "lease-stolen" in checks(account(follow_watch(server), server.now))


def restart_in_turn(*, is_released: bool) -> FakeServer:
    """Pods lead for 6 s each, under a new name each time, and stop; one of them is the next to lead itself."""
    server = FakeServer(uids={"db-0": "d6f1", "db-1": "a3c7"})
    for number, pod in enumerate(["db-0", "db-1", "db-1", "db-0", "db-1"]):
        db = server.elector(pod, "shop/db")
        db.identity = f"{pod}_{number}"
        db.lead(6)
        if is_released and number < 4:
            server.wait(0.1)
            db.release()
        server.wait(1 if is_released else 16)
    return server


@pytest.mark.parametrize("follow", [follow_watch, follow_log, follow_both], ids=["watch", "log", "both"])
def test_a_pod_that_takes_its_lease_under_a_new_name_once_it_is_free_is_the_next_holder(follow: View) -> None:
    server = restart_in_turn(is_released=True)
    said = text(account(follow(server), server.now))
    assert "its holder changed 4 times since 11:06:47Z. Its log may say why: kubectl -n shop logs db-1" in said


@pytest.mark.parametrize("follow", [follow_watch, follow_log, follow_both], ids=["watch", "log", "both"])
def test_a_pod_that_let_its_lease_expire_takes_it_as_the_next_holder(follow: View) -> None:
    server = restart_in_turn(is_released=False)
    tenures = follow(server).leases[LEASE].tenures
    changes = find_frequent_changes(tenures, server.now)
    assert changes is not None
    assert changes.text == "its holder changed 4 times"


def test_the_second_name_of_a_thief_is_a_theft_too() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(12)
    thief = server.elector("db-1", "shop/db", pod="intruder")
    server.uids |= {"db-0": "d6f1", "intruder": "a17e"}
    for name in ("db-1_1", "db-2_1"):
        thief.identity = name
        thief.lead(6)
    found = account(follow_log(server), server.now)
    assert [one.check for one in found.findings if one.check in {"lease-stolen", "handed-over"}] == ["lease-stolen"] * 2
