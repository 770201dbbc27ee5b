"""Refusals and failures of an authorizer, by the reason that the API server logs."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log

FORBIDDEN = (
    'leases.coordination.k8s.io "db" is forbidden: User "system:serviceaccount:shop:db" cannot update resource '
    '"leases" in API group "coordination.k8s.io" in the namespace "shop"'
)


def lose(code: int, message: str = "", reason: str = "", *, verbs: tuple[str, ...] = ("update",)) -> FakeServer:
    """A holder whose requests are answered with an error until another one has taken the lease."""
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(8):
        together(2, *others)
        for verb in verbs:
            db.fail(code, message, verb=verb)
            server.log[-1]["annotations"] = {"authorization.k8s.io/reason": reason} if reason else {}
    server.elector("db-1", "shop/db").take()
    together(4, *others)
    return server


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def test_reads_that_failed_as_well_are_not_called_writes() -> None:
    output = explain(lose(500, verbs=("update", "get")))
    assert "The API server answered the requests of db-0_1, reads too, with errors: at least" in output
    assert (
        "No admission webhook sees reads: look at the API server in use, and what it asks, such as etcd and authorizers"
        in output
    )
    assert "its connection to etcd and the authorizers that it asks, in its log" in output
    assert "could not store" not in output


def test_writes_that_failed_alone_were_not_stored() -> None:
    output = explain(lose(500))
    assert "The API server could not store the writes of db-0_1: at least" in output
    assert "authorization" not in output


@pytest.mark.parametrize("verbs", [("update",), ("update", "get")], ids=["writes", "writes and reads"])
def test_an_authorizer_that_failed_is_named(verbs: tuple[str, ...]) -> None:
    output = explain(lose(500, reason="internal error", verbs=verbs))
    assert "the log says that authorization failed: look at the authorizers, such as a webhook." in output
    assert (
        "ADVICE Look at the authorizers of the API server, such as a webhook, in its log: kubectl get --raw" in output
    )
    assert "etcd" not in output


def test_the_reason_of_an_authorizer_is_quoted() -> None:
    output = explain(lose(403, f"{FORBIDDEN}: no policy bundle loaded", "no policy bundle loaded"))
    assert (
        'An authorizer refused the request, and gave the reason "no policy bundle loaded"; ask whoever runs' in output
    )
    assert "kubectl auth can-i update" in output


def test_a_writer_that_an_authorizer_accepts_again_is_not_asked_about() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(4):
        together(2, *others)
        db.fail(403, FORBIDDEN)
        server.log[-1]["annotations"] = {"authorization.k8s.io/reason": "no policy bundle loaded"}
    together(20, db, *others)
    output = explain(server)
    assert "ask whoever runs that authorizer. shop/db has written the lease since then." in output
    assert "can-i" not in output


@pytest.mark.parametrize("reason", ["", "RBAC: role.rbac.authorization.k8s.io not found"], ids=["none", "of RBAC"])
def test_without_a_reason_of_another_authorizer_a_role_is_missing(reason: str) -> None:
    output = explain(lose(403, FORBIDDEN, reason))
    assert "lacked the right to update the lease;" in output
    assert "An authorizer" not in output
