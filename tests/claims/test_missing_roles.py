"""Refusals that name a role which RBAC did not find: the text names that role, and no others."""

from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.factories import put
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log
from tests.inputs.test_related_writes import write_event
from webhook.kubernetes.times import format_micro_time

RIGHTS = "rbac.authorization.k8s.io"
FORBIDDEN = (
    'leases.coordination.k8s.io "db" is forbidden: User "system:serviceaccount:shop:db" cannot update resource '
    '"leases" in API group "coordination.k8s.io" in the namespace "shop"'
)
DOUBT = ", unless that was a dry run, which the log does not show"


def miss(kind: str, name: str) -> str:
    return f'{FORBIDDEN}: RBAC: {kind}.rbac.authorization.k8s.io "{name}" not found'


def log_write(server: FakeServer, kind: str, name: str, verb: str, level: str = "Metadata") -> None:
    event = write_event(kind, RIGHTS, put("objectRef.name", name), put("verb", verb), put("level", level))
    if kind.startswith("cluster"):
        del event["objectRef"]["namespace"]
    if level == "Metadata":
        del event["responseObject"]
    event["stageTimestamp"] = format_micro_time(server.now)
    event["requestReceivedTimestamp"] = format_micro_time(server.now - 4000)
    server.log.append(event)


def lose_role(message: str, *, kind: str = "clusterroles", others: bool = True, is_back: bool = False) -> FakeServer:
    """A holder whose role is deleted, and renews again once it is granted its right."""
    server, (db, mail, cart) = shop()
    for _ in range(10):
        for elector in (db, mail, cart):
            elector.lead(2)
    if others:
        log_write(server, "clusterroles", "metrics", "update", "RequestResponse")
    server.wait(1)
    log_write(server, kind, "leaders", "delete")
    for _ in range(10):
        server.wait(2)
        db.fail(403, message)
        mail.renew()
        cart.renew()
    if is_back:
        log_write(server, kind, "leaders", "create", "RequestResponse")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(10)
    return server


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("settings", "doubt"),
    [
        ({"message": miss("clusterrole", "leaders")}, ""),
        ({"message": FORBIDDEN, "is_back": True}, ""),
        ({"message": FORBIDDEN}, DOUBT),
        ({"message": miss("clusterrole", "other")}, DOUBT),
    ],
    ids=["it was missing", "it was created again", "nothing shows that it was missing", "another one was missing"],
)
def test_a_deletion_of_what_was_missing_then_was_no_dry_run(settings: dict[str, Any], doubt: str) -> None:
    said = explain(lose_role(**settings))
    assert f"ClusterRole leaders was deleted by alice@example.org{doubt}\n" in said


@pytest.mark.parametrize(
    ("message", "is_told"),
    [(miss("clusterrole", "leaders"), False), (miss("clusterrole", "other"), True), (FORBIDDEN, True)],
    ids=["which is missing", "of which none is missing", "of which nothing is said"],
)
def test_beside_a_deleted_role_no_other_role_is_told_of(message: str, *, is_told: bool) -> None:
    assert ("ClusterRole metrics was updated" in explain(lose_role(message))) is is_told


def test_a_role_that_another_account_lacks_leaves_other_roles_to_be_told_of() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    log_write(server, "clusterroles", "leaders", "delete")
    log_write(server, "roles", "db", "update", "RequestResponse")
    other = server.elector("x-0", "shop/db", user="system:serviceaccount:other:x")
    for _ in range(10):
        server.wait(2)
        db.fail(403, FORBIDDEN)
        other.fail(403, miss("clusterrole", "leaders"), verb="get")
    assert "Role shop/db was updated by alice@example.org\n" in explain(server)


@pytest.mark.parametrize(
    ("kind", "named", "command"),
    [
        ("clusterroles", "ClusterRole", "kubectl get clusterrole leaders -o yaml --show-managed-fields"),
        ("roles", "Role", "kubectl -n shop get role leaders -o yaml --show-managed-fields"),
    ],
    ids=["of the cluster", "of a namespace"],
)
def test_a_role_that_was_missing_is_shown(kind: str, named: str, command: str) -> None:
    server = lose_role(miss(kind.removesuffix("s"), "leaders"), kind=kind)
    assert advise(account(follow_log(server), server.now)) == (
        f"shop/db has written the lease since; {named} leaders was missing when shop/db was refused. "
        f"To see the {named}, and which field managers wrote it: {command}"
    )


@pytest.mark.parametrize(("message", "still"), [(FORBIDDEN, "still "), ("", "")], ids=["had asked", "had not asked"])
def test_a_holder_before_that_had_asked_since_its_last_renewal_still_asks(message: str, still: str) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    for _ in range(5):
        server.wait(4)
        if message:
            db.fail(403, message)
    successor = server.elector("db-1", "shop/db")
    successor.take()
    for _ in successor.ticks(20):
        successor.renew()
        db.ask()
    assert f"pod db-0, the previous holder, {still}asks for the lease\n" in explain(server)
