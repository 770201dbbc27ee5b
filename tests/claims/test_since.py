"""Since when a lease is held, or written, by a log that begins while it is."""

from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer
from tests.history.observing import cluster_of, follow_log


def hide_stamps(server: FakeServer) -> FakeServer:
    """Have a log begin after the lease was taken, as one with `omitManagedFields`."""
    del server.log[0]
    for event in server.log:
        del event["responseObject"]["metadata"]["managedFields"]
    return server


def held(**spec: Any) -> str:
    """Return what is said of a holder that renews with fields of the spec changed."""
    server, (db, *_) = shop()
    db.take()
    for _ in db.ticks(10):
        db.renew(**spec)
    output = text(account(follow_log(hide_stamps(server)), server.now))
    return output.partition("Held by: ")[2].partition("\n")[0]


def test_acquire_time_is_what_clients_say() -> None:
    assert held() == ("db-0_1; since when is not known: acquireTime, which clients write, says 11:06:39Z")


@pytest.mark.parametrize(
    "acquired",
    [None, "2027-01-01T00:00:00.000000Z", "2026-11-18T11:06:51.500000Z", "x"],
    ids=["absent", "of the future", "after the last renewal", "unreadable"],
)
def test_no_other_acquire_time_is_shown(acquired: str | None) -> None:
    assert held(acquireTime=acquired) == "db-0_1; since when is not known"


def test_who_has_not_renewed_it_need_not_have_written_acquire_time() -> None:
    server, (db, *_) = shop()
    db.lead(4)
    del server.log[:2]
    server.log[0]["user"] = {"username": "alice"}
    del server.log[0]["responseObject"]["metadata"]["managedFields"]
    output = text(account(follow_log(server), server.now))
    assert "acquireTime" not in output.partition("\n")[2].partition("\n")[0]


def written(*, is_created: bool) -> str:
    """Return who is said to have written a lease, by a log without objects that has its creation, or begins later."""
    server, (db, *_) = shop()
    db.lead(10)
    if not is_created:
        del server.log[0]
    output = text(account(cluster_of(server.audit_log(metadata_only=True)), server.now))
    return output.partition("Written by: ")[2].partition("\n")[0]


def test_before_a_log_begins_the_first_writer_may_have_written_too() -> None:
    assert written(is_created=False) == "db-0, since 11:06:42Z at least (8 s ago)"


def test_a_writer_that_created_it_wrote_it_since_then() -> None:
    assert written(is_created=True) == "db-0, since 11:06:40Z (10 s ago)"
