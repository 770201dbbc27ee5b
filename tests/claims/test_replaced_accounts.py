"""A ServiceAccount is deleted and created again: tokens of its pods are not accepted any more."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import log_write
from tests.factories import Tweak, put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log

REPLACED = (
    "ServiceAccount shop/db was deleted at 11:07:00Z by alice@example.org and created again: tokens issued before that "
    "are not accepted"
)
CREATED = put("verb", "create"), put("responseStatus.code", 201)


def play(*tweaks: Tweak, waits: float = 1, is_back: bool = True, is_over: bool = True, asks: str = "") -> FakeServer:
    """Replace the account of db-0, whose requests are refused from then on; db-1 is a pod with a new token."""
    server, (db, *others) = shop()
    together(20, db, *others)
    if asks:
        other = server.elector("db-0", "shop/db", user=f"system:serviceaccount:shop:{asks}")
        other.ask()
    log_write(server, "serviceaccounts", "", *tweaks)
    if is_back:
        log_write(server, "serviceaccounts", "", *CREATED)
    together(waits, *others)
    for _ in range(10):
        together(2, *others)
        db.fail_unauthenticated()
    if is_over:
        together(20, server.elector("db-1", "shop/db"), *others)
    return server


def say(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def read(server: FakeServer) -> str:
    return advise(account(follow_log(server), server.now))


def test_it_explains_why_credentials_were_not_accepted() -> None:
    server = play()
    assert f"and none by its name for most of that time; {REPLACED}" in say(server)
    assert read(server) == f"{REPLACED}. Change a ServiceAccount in place, or restart its pods at once."


def test_pods_with_old_tokens_are_to_be_restarted() -> None:
    advice = read(play(is_over=False))
    assert f"{REPLACED}. Restart its pods, which get other tokens then." in advice
    assert advice.endswith("kubectl -n shop get pods")


def test_an_account_that_is_gone_is_not_said_to_be_back() -> None:
    assert "was deleted at 11:07:00Z by alice@example.org: tokens issued before that are not" in say(
        play(is_back=False)
    )


@pytest.mark.parametrize(
    "server",
    [
        play(put("objectRef.name", "other")),
        play(put("objectRef.namespace", "other")),
        play(put("verb", "update")),
        play(waits=20),
        play(asks="other"),
    ],
    ids=["another account", "of another namespace", "it was updated", "long before", "two accounts asked from there"],
)
def test_what_need_not_explain_that_credentials_are_not_accepted(server: FakeServer) -> None:
    assert "tokens issued before that" not in say(server)


def test_an_address_that_several_pods_had_is_that_of_no_pod() -> None:
    server, (db, *others) = shop()
    second = server.elector("db-1", "shop/db")
    together(10, db, *others)
    second.ask()
    for _ in range(10):
        together(2, *others)
        db.fail_unauthenticated()
    for event in server.log:
        event["sourceIPs"] = ["10.0.0.1"]
    advice = read(server)
    assert "status.podIP" not in advice
    assert "Several pods had the address. To see them, and their nodes: kubectl -n shop get pods -o wide" in advice
