"""Rights that a binding granted, as an API server says of each request, until that was taken away."""

from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import RIGHTS, log_write
from tests.factories import Tweak, put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log, follow_metadata
from webhook.analysis.history.audit_log.grants import Binding, Grants
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.kubernetes.times import SECOND

USER = "system:serviceaccount:shop:db"
BY_BINDING = f'RBAC: allowed by RoleBinding "db/shop" of Role "leaders" to ServiceAccount "{USER}"'
BY_OTHER = BY_BINDING.replace('"db/shop"', '"else/shop"')
BY_CLUSTER = 'RBAC: allowed by ClusterRoleBinding "db" of ClusterRole "leaders" to Group "system:authenticated"'
FORBIDDEN = f'leases.coordination.k8s.io "db" is forbidden: User "{USER}" cannot {{}} resource "leases" in API group'
HAD_ALLOWED = ", which had allowed what was refused after that"
DOUBT = ", unless that was a dry run, which the log does not show"


def allow(server: FakeServer, reason: str) -> None:
    """Have the log say why each request so far was allowed."""
    for event in server.log:
        event["annotations"] = {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": reason}


def lose_rights(
    *tweaks: Tweak,
    reason: str = BY_BINDING,
    kind: str = "rolebindings",
    verb: str = "delete",
    refused: tuple[str, ...] = ("update",),
    still: float = 0,
) -> FakeServer:
    """A holder whose requests a binding allows until that is written, and for so many seconds afterwards."""
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    allow(server, reason)
    server.wait(1)
    hidden = () if verb == "delete" else (put("requestObject", {}),)
    log_write(server, kind, RIGHTS, put("verb", verb), put("level", "Metadata"), *hidden, *tweaks)
    before = len(server.log)
    db.lead(still)
    for event in server.log[before:]:
        event["annotations"] = {"authorization.k8s.io/reason": reason}
    for _ in range(8):
        server.wait(2)
        for asked in refused:
            db.fail(403, FORBIDDEN.format(asked), verb=asked)
        mail.renew()
        cart.renew()
    return server


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def test_a_binding_that_allowed_what_was_refused_after_its_deletion_was_surely_deleted() -> None:
    output = explain(lose_rights())
    assert f"RoleBinding shop/db was deleted by alice@example.org{HAD_ALLOWED}\n" in output
    assert DOUBT not in output


def test_a_binding_of_the_whole_cluster_is_named_without_a_namespace() -> None:
    server = lose_rights(reason=BY_CLUSTER, kind="clusterrolebindings")
    for event in server.log:
        if event["objectRef"]["resource"] == "clusterrolebindings":
            event["objectRef"].pop("namespace", None)
    assert HAD_ALLOWED in explain(server)


@pytest.mark.parametrize(
    "changes",
    [
        {"reason": BY_OTHER},
        {"reason": "allowed by a webhook"},
        {"reason": 'RBAC: allowed by nothing that is "known"'},
        {"still": 14},
        {"refused": ("get",)},
        {"kind": "roles"},
        {"verb": "create"},
    ],
    ids=[
        "another binding allowed it",
        "no binding allowed it",
        "a reason of another form",
        "it went on to allow",
        "what was refused was never allowed",
        "it is a role",
        "it was created",
    ],
)
def test_what_did_not_allow_what_was_refused_is_not_said_to_have(changes: dict[str, Any]) -> None:
    assert HAD_ALLOWED not in explain(lose_rights(**changes))


def test_who_may_neither_read_nor_write_the_lease_lacks_both_rights() -> None:
    server = lose_rights(refused=("update", "get"))
    advice = advise(account(follow_log(server), server.now))
    assert (
        "shop/db lacked the rights to get and update the lease; grant those rights, if it is meant to lead." in advice
    )
    for verb in ("get", "update"):
        assert f"kubectl auth can-i {verb} leases.coordination.k8s.io/db -n shop --as={USER}" in advice


def test_who_may_read_the_lease_lacks_one_right() -> None:
    server = lose_rights()
    advice = advise(account(follow_log(server), server.now))
    assert "shop/db lacked the right to update the lease; grant that right, if it is meant to lead." in advice
    assert "can-i get" not in advice


def test_the_latest_reason_of_each_user_and_verb_counts_and_of_many_the_first_are_kept() -> None:
    histories = follow_log(lose_rights())
    grants = histories.leases["shop", "db"].requests.grants
    found = grants.find(USER, "update")
    assert found is not None
    assert found.binding == Binding("RoleBinding", "shop", "db")
    assert grants.find(USER, "get") is None
    kept = Grants()
    server, (db, *_) = shop()
    for number in range(MAX_LISTED + 1):
        db.user = f"u{number}"
        db.take()
    allow(server, BY_BINDING)
    requests = follow_log(server).leases["shop", "db"].requests
    assert kept.find("u0", "create") is None
    assert requests.grants.find(f"u{MAX_LISTED - 1}", "update") is not None
    assert requests.grants.find(f"u{MAX_LISTED}", "update") is None


def test_of_requests_that_were_answered_in_another_order_the_one_received_last_counts() -> None:
    server, (db, *_) = shop()
    db.take()
    server.wait(2)
    db.renew()
    server.wait(2)
    db.ask()
    allow(server, BY_BINDING)
    server.log_request("shop/db", "update", db.user, db.pod, server.leases["shop/db"], took=3.5)
    server.log[-1]["annotations"] = {"authorization.k8s.io/reason": BY_OTHER}
    found = follow_log(server).leases["shop", "db"].requests.grants.find(USER, "update")
    assert found is not None
    assert (found.binding.name, found.at < server.now - 1 * SECOND) == ("db", True)


def test_a_log_without_objects_says_what_its_last_writer_was_refused() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    for _ in db.ticks(10):
        db.fail(403, RIGHTS)
    assert advise(account(follow_metadata(server), server.now)).startswith("The API server refused what shop/db wrote.")
    server.wait(5)
    db.lead(10)
    assert advise(account(follow_metadata(server), server.now)).startswith(
        "The input shows who wrote the lease, and not what."
    )


@pytest.mark.parametrize(
    ("reason", "allows", "command"),
    [
        (BY_BINDING, "as RoleBinding db allows", "kubectl -n shop get rolebinding db"),
        (BY_CLUSTER, "as ClusterRoleBinding db allows", "kubectl get clusterrolebinding db"),
        ("", "To see the roles and bindings of the namespace", "kubectl -n shop get roles,rolebindings"),
    ],
    ids=["of the namespace", "of the cluster", "not in the log"],
)
def test_a_binding_that_allows_again_what_was_refused_is_what_is_shown(reason: str, allows: str, command: str) -> None:
    server = lose_rights()
    before, db = len(server.log), server.elector("db-0", "shop/db")
    db.lead(20)
    for event in server.log[before:]:
        event["annotations"] = {"authorization.k8s.io/reason": reason} if reason else {}
    advice = advise(account(follow_log(server), server.now))
    assert "shop/db has written the lease since" in advice
    assert allows in advice
    assert f"{command} -o yaml --show-managed-fields" in advice


def test_reads_that_were_refused_beside_writes_are_counted_to_the_last_one() -> None:
    server = lose_rights(refused=("update", "get"))
    server.elector("db-0", "shop/db").lead(20)
    output = explain(server)
    assert "8 writes answered with 403, the last one: leases.coordination.k8s.io" in output
    assert "; 8 reads likewise, all from 11:07:03Z until 11:07:17Z" in output


def test_reads_of_a_user_without_pods_are_those_of_a_user() -> None:
    server = FakeServer()
    admin = server.elector("cp-1", "shop/db", user="admin", pod="")
    admin.lead(20)
    for _ in range(8):
        server.wait(2)
        for verb in ("update", "get"):
            admin.fail(403, FORBIDDEN.replace(USER, "admin").format(verb), verb=verb)
    admin.lead(20)
    assert "; 8 reads by admin likewise, all from 11:07:02Z until 11:07:16Z" in explain(server)


BY_DEBUG = "RBAC: allowed by {} of {} to {}"


def steal_by_grant(kind: str, name: str, *, binding: str, role: str, subject: str = 'User "mallory"') -> FakeServer:
    """A stranger takes the lease, as what was created before allows; it is deleted afterwards."""
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    names = {"objectRef.name": name, "objectRef.namespace": "" if kind.startswith("cluster") else "shop"}
    tweaks = [put(path, value) for path, value in names.items()]
    log_write(server, kind, RIGHTS, put("verb", "create"), *tweaks)
    server.wait(4)
    thief = server.elector("thief", "shop/db", user="mallory", pod="")
    thief.take()
    server.log[-1]["annotations"] = {"authorization.k8s.io/reason": BY_DEBUG.format(binding, role, subject)}
    server.wait(2)
    log_write(server, kind, RIGHTS, put("verb", "delete"), *tweaks)
    together(10, thief, mail, cart)
    return server


@pytest.mark.parametrize(
    ("kind", "name", "place"),
    [
        ("clusterrolebindings", "debug", "ClusterRoleBinding debug"),
        ("clusterroles", "ops", "ClusterRole ops"),
    ],
)
def test_what_let_a_stranger_take_the_lease_is_told(kind: str, name: str, place: str) -> None:
    server = steal_by_grant(
        kind,
        name,
        binding='ClusterRoleBinding "debug"',
        role='ClusterRole "ops"',
        subject='Group "system:unauthenticated"',
    )
    output = explain(server)
    assert f"{place} was created by alice@example.org" in output
    assert f"{place} was deleted by alice@example.org" in output
    allowed = "ClusterRoleBinding debug gave group system:unauthenticated the right. To see who else has it:"
    assert allowed in advise(account(follow_log(server), server.now))


def test_of_a_role_in_a_namespace_the_binding_is_named_with_it() -> None:
    server = steal_by_grant("roles", "ops", binding='RoleBinding "debug/shop"', role='Role "ops"')
    assert "Role shop/ops was created by alice@example.org" in explain(server)
    assert "RoleBinding shop/debug gave it the right." in advise(account(follow_log(server), server.now))


def test_a_binding_that_allowed_no_stranger_to_write_is_left_out() -> None:
    server = steal_by_grant("clusterrolebindings", "other", binding='ClusterRoleBinding "debug"', role='Role "ops"')
    assert "ClusterRoleBinding other" not in explain(server)
