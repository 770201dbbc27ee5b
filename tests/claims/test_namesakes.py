"""A lease that does not exist, of whose name another namespace has one: who asks for it may look in the wrong place."""

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log, follow_watch
from webhook.analysis.claims.evidence.contenders.namesakes import find_namesake
from webhook.analysis.history.follow import ClusterHistory

ALICE = "alice@example.org"
CANDIDATE = "system:serviceaccount:shop:db"


def ask_in_vain(*users: str, renewers: dict[str, str], has_name: bool = True) -> FakeServer:
    """Leases called db of some namespaces, each with the user who renews it, and users who ask for shop/db."""
    server = FakeServer()
    for namespace, user in renewers.items():
        server.elector("db-0", f"{namespace}/{'db' if has_name else 'other'}", user=user).lead(20)
    for user in users:
        server.wait(1)
        server.log_request("shop/db", "get", user, "", {"message": "not found"}, 404)
    return server


def advise_on_absent(server: FakeServer) -> str:
    return advise(account(follow_log(server), server.now))


def test_the_lease_that_a_pod_of_the_namespace_renews_elsewhere_may_be_meant() -> None:
    server = ask_in_vain(ALICE, renewers={"kube-system": CANDIDATE, "mail": "system:serviceaccount:mail:db"})
    assert advise_on_absent(server) == (
        f"It does not exist, and in the log only {ALICE} asked for it. Lease kube-system/db exists, and shop/db from "
        "pod db-0 renewed it at 11:07:00Z; that may be the lease that is meant: kubectl -n kube-system get lease db -o "
        "yaml"
    )


@pytest.mark.parametrize(
    ("users", "renewers", "expected"),
    [
        ((ALICE,), {"mail": "system:serviceaccount:mail:db"}, "Lease mail/db exists, and mail/db from pod db-0"),
        ((CANDIDATE,), {"kube-system": CANDIDATE}, "It does not exist. Lease kube-system/db exists, and shop/db from"),
        (
            (CANDIDATE,),
            {"mail": "system:serviceaccount:mail:db"},
            "It does not exist; most clients create it the next time",
        ),
        (("",), {}, "It does not exist; most clients create it the next time"),
        (
            (ALICE,),
            {},
            f"only {ALICE} asked for it. The lease may have another name, or no candidate may be running, for example:",
        ),
        ((ALICE, CANDIDATE), {}, "It does not exist; most clients create it the next time"),
    ],
    ids=[
        "a person may mean that of others",
        "a pod of the namespace may have moved",
        "a candidate means its own",
        "who asks is not known",
        "none has its name",
        "a candidate asks as well",
    ],
)
def test_what_may_be_meant_depends_on_who_asks(users: tuple[str, ...], renewers: dict[str, str], expected: str) -> None:
    assert expected in advise_on_absent(ask_in_vain(*users, renewers=renewers))


def test_a_watch_beside_it_does_not_say_who_renews() -> None:
    server = ask_in_vain(ALICE, renewers={})
    seen = follow_log(server)
    seen.leases["kube-system", "db"] = follow_watch(ask_in_vain(renewers={"kube-system": CANDIDATE})).leases[
        "kube-system", "db"
    ]
    assert (
        ". Lease kube-system/db exists, and was renewed at 11:07:00Z; that may be the lease that is meant:"
        in advise(account(seen, server.now + 30_000_000))
    )


@pytest.mark.parametrize("ends", ["which is free", "which has another name"])
def test_no_other_lease_is_meant(ends: str) -> None:
    server = ask_in_vain(ALICE, renewers={"mail": CANDIDATE}, has_name=ends == "which is free")
    if ends == "which is free":
        elector = server.elector("db-0", "mail/db", user=CANDIDATE)
        elector.release()
    assert "mail/" not in advise_on_absent(server)


def test_a_lease_that_exists_has_no_namesake() -> None:
    server = ask_in_vain(renewers={"shop": CANDIDATE, "mail": CANDIDATE})
    histories: ClusterHistory = follow_log(server)
    assert find_namesake(histories, histories.leases["shop", "db"]) is None
