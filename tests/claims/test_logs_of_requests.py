"""Logs at level Request: they show what clients asked, and not what was stored before that."""

import copy

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, hide_responses, together
from tests.history.observing import follow_log


def play(*, is_released: bool = False, is_logged: bool = True, account: str = "db") -> FakeServer:
    """Have db-1 take shop/db from db-0, or after its release, of which the log has the request or not."""
    server, (db, *others) = shop()
    together(10, db, *others)
    server.wait(1)
    if is_released:
        db.release()
        server.log = server.log if is_logged else server.log[:-1]
        server.wait(1)
    follower = server.elector("db-1", "shop/db", user=f"system:serviceaccount:shop:{account}")
    follower.take()
    together(10, follower, *others)
    return server


def put_back() -> FakeServer:
    """Put etcd back to a state of db-0, which takes the lease as that has expired by then, while db-1 has it."""
    server, (db, *others) = shop()
    together(10, db, *others)
    backup = copy.deepcopy(server.leases)
    together(20, *others)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    together(10, follower, *others)
    server.leases["shop/db"] = backup["shop/db"]
    server.wait(2)
    db.take()
    together(10, db, *others)
    return server


def forget_versions(server: FakeServer) -> FakeServer:
    for event in server.log:
        event["objectRef"].pop("resourceVersion", None)
        event["requestObject"]["metadata"].pop("resourceVersion", None)
    return server


def say(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("server", "last", "holder"),
    [
        (play(), "db-0_1", "db-1"),
        (play(is_released=True, is_logged=False), "db-0_1", "db-1"),
        (put_back(), "db-1_1", "db-0"),
    ],
    ids=["which may have been", "of which another log has the release", "of a store that was put back"],
)
def test_requests_do_not_show_a_theft(server: FakeServer, last: str, holder: str) -> None:
    said = say(forget_versions(hide_responses(server)))
    assert "lease-stolen" not in said
    assert "two may have led" not in said
    taken = f"{holder}_1 took it (shop/db from pod {holder}) after {last}, which may still have held it: the log shows "
    assert f"{taken}what was asked, and not what was stored; not renewed for up to" in said


def test_what_would_show_a_theft_is_said() -> None:
    said = say(hide_responses(play()))
    assert "ADVICE It is held and renewed. At level RequestResponse, a log shows what was stored before it" in said


def test_answers_show_a_theft() -> None:
    assert "lease-stolen: " in say(play())


def test_a_release_that_was_asked_for_is_one() -> None:
    said = say(hide_responses(play(is_released=True)))
    assert "db-1_1 took it (shop/db from pod db-1) after db-0_1 released it; the lease was free for 1 s" in said
    assert "may still have held it" not in said


def test_who_may_have_taken_a_lease_from_another_account_need_not_be_its_new_version() -> None:
    said = say(hide_responses(play(account="next")))
    assert "at least 2 service accounts have held this lease: shop/db, shop/next\n" in said
    assert "one after the other" not in said


def test_a_creation_without_a_time_of_the_api_server_was_before_what_shows_it() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.leases.pop("shop/db")
    together(10, server.elector("db-1", "shop/db"), *others)
    hide_responses(server)
    assert "db-1_1 created it again by 11:07:00Z" in text(account(follow_log(server), server.now))
