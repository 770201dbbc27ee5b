"""Pods of an account that held a lease before, and that wait while a pod of another account has it."""

from tests.claims.accounts import account, shop
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.presentation.text import list_facts

CANARY = "system:serviceaccount:shop:canary"
OPS = "system:serviceaccount:ops:watcher"


def pass_on(*, waits: int = 20, after: float = 0, successors: int = 1) -> FakeServer:
    """db-0 leads, then canary-0 under another account, while canary-1 and other pods of the first account read on."""
    server, (db, *others) = shop()
    canary, other = (server.elector(f"canary-{one}", "shop/db", user=CANARY) for one in range(2))
    watcher = server.elector("ops-0", "shop/db", user=OPS)
    together(20, db, *others)
    db.release()
    server.wait(0.1)
    canary.take()
    waiting = [server.elector(f"db-{one + 1}", "shop/db") for one in range(successors)]
    for _ in range(waits):
        together(2, canary, *others)
        for one in (*waiting, other, watcher):
            one.ask()
    together(after, canary, *others)
    return server


def list_lines(server: FakeServer, *, verbose: bool) -> list[tuple[str, str]]:
    found = list_facts(account(follow_log(server), server.now), verbose=verbose)
    return [(line.label, line.text) for line in found if line.label in {"Waiting", "Waited", "Also asks"}]


def test_all_who_wait_are_listed_by_account() -> None:
    assert list_lines(pass_on(successors=2), verbose=True) == [
        ("Waiting", "db-1, db-2 of shop/db; canary-1 of shop/canary (read the lease again and again)")
    ]


def test_that_those_wait_who_held_it_before_is_said_without_more() -> None:
    assert list_lines(pass_on(successors=2), verbose=False) == [
        ("Also asks", "pods db-1 and db-2 of shop/db, which held it before, read it again and again")
    ]
    assert list_lines(pass_on(), verbose=False) == [
        ("Also asks", "pod db-1 of shop/db, which held it before, reads it again and again")
    ]


def test_replicas_of_the_holder_alone_need_no_account() -> None:
    server = pass_on(successors=0)
    assert list_lines(server, verbose=True) == [("Waiting", "canary-1 (reads the lease again and again)")]
    assert list_lines(server, verbose=False) == []


def test_who_looked_twice_or_long_ago_does_not_wait() -> None:
    assert list_lines(pass_on(waits=2), verbose=False) == []
    assert list_lines(pass_on(after=30), verbose=False) == []
