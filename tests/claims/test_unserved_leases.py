"""An API server that serves no leases, or not the version that is asked for, answers 404 without naming the lease."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log
from webhook.analysis.history.audit_log.refusal import UNKNOWN_RESOURCE

NOT_FOUND = 'leases.coordination.k8s.io "db" not found'


def lose(message: str) -> FakeServer:
    """A holder whose writes are answered with 404 until another process, of another API server, takes the lease."""
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(8):
        together(2, *others)
        db.fail(404, message)
    server.elector("db-1", "shop/db").take()
    together(4, *others)
    return server


@pytest.mark.parametrize("message", ["", UNKNOWN_RESOURCE], ids=["no message", "the message of an unknown resource"])
def test_an_api_server_that_does_not_serve_leases_is_named(message: str) -> None:
    found = account(follow_log(lose(message)), lose(message).now)
    output = text(found)
    assert (
        "The API server that it reached did not serve leases, or not the version that it asked for: at least" in output
    )
    assert "answered with 404, and not that the lease is not found" in output
    assert advise(found).endswith("kubectl api-resources --api-group=coordination.k8s.io")


def test_a_lease_that_is_not_found_is_served() -> None:
    server = lose(NOT_FOUND)
    assert "does not serve leases" not in text(account(follow_log(server), server.now))
