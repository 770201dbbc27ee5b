"""Holders that are named as pods of two Deployments, and renew in two rhythms: a hint where a log shows no accounts."""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_new_rhythms import follow_file
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log, follow_watch

DB, CANARY = "db-6f7d9c4d7f-x2x8p_1", "db-canary-846658584-5mrst_2"
HINT = "The holders are named as pods of two Deployments, db and db-canary, and renew every 2 s and 1 s"


def lead_in_turn(second: str = CANARY, *, retry: float = 1.01, waits: float = 0, takes: bool = True) -> FakeServer:
    server = FakeServer()
    first = server.elector("db-6f7d9c4d7f-x2x8p", "shop/db")
    first.identity = DB
    first.lead(40)
    first.release()
    server.wait(0.1)
    if takes:
        after = server.elector(second.partition("_")[0], "shop/db", retry=retry)
        after.identity = second
        after.take()
        after.lead(40)
    server.now += int(waits * 1_000_000)
    return server


@pytest.mark.parametrize("waits", [0, 8], ids=["at its end", "after the input has ended"])
def test_the_names_and_rhythms_of_holders_are_a_hint_at_two_programs(waits: float) -> None:
    server = lead_in_turn(waits=waits)
    said = advise(account(follow_file(server, follow_watch), server.now))
    assert said == (
        f"{HINT}: two programs may share this lease. If both run, give each a lease name (election ID) of its own. "
        "To see what runs there: kubectl -n shop get pods -o wide"
    )


def test_a_rhythm_that_changed_with_the_holder_is_said() -> None:
    server = lead_in_turn()
    said = text(account(follow_watch(server), server.now))
    assert "typically every 1 s by the present holder, every 2 s by the one before; longest gap" in said


@pytest.mark.parametrize(
    "server",
    [
        lead_in_turn("db-964cf9d45-4xjnl_2"),
        lead_in_turn(retry=2),
        lead_in_turn(retry=1),
        lead_in_turn("canary_2"),
        lead_in_turn(takes=False),
    ],
    ids=[
        "a new version",
        "one rhythm",
        "perhaps one by times of whole seconds",
        "a name of no Deployment",
        "one holder",
    ],
)
def test_what_need_not_be_two_programs_is_no_hint(server: FakeServer) -> None:
    assert "two Deployments" not in advise(account(follow_watch(server), server.now))


def test_what_a_log_shows_of_who_wrote_says_more_than_names() -> None:
    server = lead_in_turn()
    assert "two Deployments" not in advise(account(follow_log(server), server.now))


def test_a_holder_that_had_trouble_before_it_stopped_has_no_rhythm_of_its_own() -> None:
    server = FakeServer()
    first = server.elector("db-6f7d9c4d7f-x2x8p", "shop/db")
    first.identity = DB
    first.lead(40)
    for seconds in (4, 5, 7, 3, 5, 8, 4, 6, 3, 7):
        server.wait(seconds)
        first.renew()
    server.wait(16)
    after = server.elector(CANARY.partition("_")[0], "shop/db")
    after.identity = CANARY
    after.lead(40)
    histories = follow_watch(server)
    assert "by the one before" not in text(account(histories, server.now))
    assert "two Deployments" not in advise(account(histories, server.now))
