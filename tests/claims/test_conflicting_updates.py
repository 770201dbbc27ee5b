"""Updates that would have made another one the holder, and conflicted with the renewals of the present one."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import View, advise, follow_both, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.history.audit_log.kept_refusals import MAX_FIRST, MAX_REFUSALS

CONFLICT = "the object has been modified"
EDITOR = "jane@example.com"


def play(attempt: Callable[[FakeServer, Elector], object], view: View = follow_log, *, times: int = 2) -> Account:
    """Have db-0 renew its lease, and someone else try something in between."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    for _ in range(times):
        attempt(server, db)
        db.lead(10)
    return account(view(server), server.now)


def edit(user: str = EDITOR, holder: str = "db-1_1", *, code: int = 409, pod: str = "") -> Callable[..., None]:
    def attempt(server: FakeServer, _: Elector) -> None:
        server.wait(0.5)
        server.elector("x", "shop/db", user=user, pod=pod).fail_as(holder, code, CONFLICT)

    return attempt


def list_conflicts(found: Account) -> list[list[str]]:
    return [[one.text for one in lines if "409" in one.text] for lines in (list_events(found), list_latest(found))]


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "log and watch"])
def test_they_are_said_with_what_was_asked_for(view: View) -> None:
    found = play(edit(), view)
    said = (
        "2 updates by jane@example.com to make db-1_1 the holder conflicted (409) until 11:07:11Z; the lease had the "
        "holder db-0_1 then"
    )
    assert list_conflicts(found) == [[said], [said]]
    assert advise(found).startswith("It is held and renewed, and these updates by jane@example.com changed nothing.")


def test_one_is_said_without_an_end() -> None:
    (said, *_), _ = list_conflicts(play(edit(), times=1))
    assert said.startswith("1 update by jane@example.com to make db-1_1 the holder conflicted (409); ")


def test_many_are_said_once() -> None:
    assert [len(lines) for lines in list_conflicts(play(edit(), times=6))] == [1, 1]


def test_any_number_of_names_is_one_sentence() -> None:
    def ask_for_many(server: FakeServer, db: Elector) -> None:
        for number in range(3):
            edit(holder=f"db-{number + 1}_1")(server, db)

    (said,), _ = list_conflicts(play(ask_for_many, times=1))
    assert said.startswith("3 updates by jane@example.com to make db-3_1 or 2 other names the holder conflicted (409)")


def test_more_than_are_remembered_are_at_least_so_many() -> None:
    def ask_often(server: FakeServer, db: Elector) -> None:
        for _ in range(MAX_REFUSALS + MAX_FIRST + 1):
            edit()(server, db)
            db.renew()

    (said,), _ = list_conflicts(play(ask_often, times=1))
    assert said.startswith(f"at least {MAX_REFUSALS + MAX_FIRST} updates by jane@example.com to make db-1_1 the")
    assert "(409) from then or earlier until" in said


@pytest.mark.parametrize(
    "attempt",
    [
        edit(holder="db-0_1"),
        edit("system:serviceaccount:shop:db", "db-1_1", pod="db-1"),
        edit("system:serviceaccount:shop:db", "db-0_2", pod="db-0"),
        edit("system:apiserver"),
        edit(code=500),
    ],
    ids=["for the holder", "by an elector", "by the holder itself", "by an API server", "not a conflict"],
)
def test_others_are_no_edits(attempt: Callable[[FakeServer, Elector], object]) -> None:
    assert not any("to make" in one for one in list_conflicts(play(attempt))[0])


def test_who_held_it_before_renews_it_once_more() -> None:
    def lose(server: FakeServer, _: Elector) -> None:
        old = server.elector("old", "shop/db", user=EDITOR, pod="")
        old.take()
        server.elector("db-0", "shop/db").lead(8)
        old.fail_as("old_1", 409, CONFLICT)

    assert not any("to make" in one for one in list_conflicts(play(lose, times=1))[0])


def test_who_loses_a_race_is_answered_just_after_the_takeover() -> None:
    def race(server: FakeServer, _: Elector) -> None:
        server.wait(20)
        server.elector("db-2", "shop/db").take()
        edit()(server, _)
        server.elector("db-2", "shop/db").lead(20)
        server.wait(16)

    assert not any("to make" in one for one in list_conflicts(play(race, times=1))[0])


def test_who_tries_while_the_holder_is_silent_may_take_the_lease() -> None:
    def wait(server: FakeServer, _: Elector) -> None:
        server.wait(20)
        edit()(server, _)

    assert not any("to make" in one for one in list_conflicts(play(wait, times=1))[0])
