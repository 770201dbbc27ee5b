"""Replicas that cannot take an expired lease, and updates of a deleted one."""

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log

FAILED = 'Internal error occurred: failed calling webhook "guard.example.com": connection refused'


def fail_successor(message: str, code: int = 500) -> FakeServer:
    """A holder that ends, and another process whose writes all fail."""
    server, (db, *others) = shop()
    successor = server.elector("db-1", "shop/db")
    together(20, db, *others)
    for _ in range(15):
        together(2, *others)
        successor.fail(code, message)
    return server


def test_a_webhook_that_fails_every_successor_is_named() -> None:
    server = fail_successor(FAILED)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith(
        "No other can take the lease while webhook guard.example.com, called for each write, fails."
    )
    assert advice.endswith("lease-webhook doctor")


def test_an_error_without_a_webhook_blames_none() -> None:
    server = fail_successor("etcdserver: request timed out")
    assert "webhook" not in advise(account(follow_log(server), server.now))


def test_a_webhook_that_failed_once_is_not_to_blame_for_what_came_after() -> None:
    server = fail_successor(FAILED)
    server.wait(1)
    server.elector("db-1", "shop/db").fail(409, "the object has been modified")
    assert "webhook" not in advise(account(follow_log(server), server.now))


def test_updates_of_a_lease_that_is_gone_are_no_sign_of_several_electors() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.delete("shop/db")
    for _ in range(6):
        together(2, *others)
        db.fail(409, 'Operation cannot be fulfilled on leases "db": Precondition failed: UID in precondition')
    assert "several electors" not in text(account(follow_log(server), server.now))
