"""Requests of system:anonymous carried no credentials: no right explains them, and none is to be given."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.account import Account
from webhook.kubernetes.times import format_micro_time

ACCOUNT = "system:serviceaccount:shop:db"
MESSAGE = 'leases.coordination.k8s.io "db" is forbidden: User "system:anonymous" cannot get resource "leases"'


def read_anonymously(server: FakeServer, pod: str = "db-1", **changes: object) -> None:
    """Read the lease as a pod without a token does."""
    server.log_request("shop/db", "get", "system:anonymous", "", {"message": MESSAGE}, 403)
    server.log[-1] |= {"sourceIPs": [f"10.0.0.{pod[-1]}"], "userAgent": "elector/1.0", **changes}


def change_account(server: FakeServer, name: str = "db", namespace: str = "shop", verb: str = "patch") -> None:
    """Have the log show an update of a ServiceAccount."""
    server.log_request(f"{namespace}/{name}", verb, "alice", "", {})
    server.log[-1]["objectRef"] = {"resource": "serviceaccounts", "namespace": namespace, "name": name}
    server.log[-1]["requestURI"] = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"


def release_to_nobody(before: Callable[[FakeServer], None] = change_account, wait: float = 30) -> FakeServer:
    """A lease whose next replicas have no token, and that its holder releases as its pod is deleted."""
    server = FakeServer(uids={"db-0": "uid-of-db-0"})
    leader = server.elector("0b6f9a52", "shop/db", pod="db-0")
    leader.lead(20)
    del server.log[0], server.events[0]
    before(server)
    server.wait(wait)
    for _ in leader.ticks(10):
        leader.renew()
        read_anonymously(server)
    server.delete_pod("db-0", uid="uid-of-db-0")
    leader.release()
    for number in range(10):
        server.wait(2)
        read_anonymously(server, f"db-{1 + number % 2}")
    return server


def explain(server: FakeServer) -> Account:
    return account(follow_log(server), server.now)


def test_all_that_ask_for_a_free_lease_without_credentials_are_refused() -> None:
    answer = explain(release_to_nobody())
    output = text(answer)
    assert "; at least one process without credentials asks for it, and is answered with 403\n" in output
    assert (
        "15 reads by system:anonymous (they carried no credentials), from elector/1.0 at 10.0.0.1 and 10.0.0.2, "
        "refused with 403 for lack of permission"
    ) in output
    assert advise(answer) == (
        "The lease is free, and all who asked for it since were refused. These requests carried no credentials. Find "
        "out why the program that sent them has none, for example because its pod gets no token "
        "(automountServiceAccountToken: false); grant no rights to anonymous users. To see which pod has the address: "
        "kubectl get pods -A --field-selector status.podIP=10.0.0.2"
    )
    assert "can-i" not in output


def test_the_pod_of_a_holder_whose_name_is_no_pod_s_is_known_by_its_renewals() -> None:
    assert "pod db-0, which renewed it, was deleted by kube-system/replicaset-controller" in text(
        explain(release_to_nobody())
    )


@pytest.mark.parametrize(
    ("before", "wait", "is_shown"),
    [
        (change_account, 30, True),
        (change_account, 200, False),
        (lambda server: change_account(server, "cart"), 30, False),
        (lambda server: change_account(server, namespace="bank"), 30, False),
    ],
    ids=["just before", "long before", "of another one", "of another namespace"],
)
def test_an_update_of_the_account_may_have_taken_its_pods_their_token(
    before: Callable[[FakeServer], None], wait: float, *, is_shown: bool
) -> None:
    output = text(explain(release_to_nobody(before, wait)))
    assert (": ServiceAccount shop/db was updated by alice" in output) is is_shown
    assert (": ServiceAccount " in output) is is_shown


def test_another_replica_that_is_not_refused_may_take_a_free_lease() -> None:
    server = release_to_nobody()
    server.elector("db-3", "shop/db").ask()
    assert advise(explain(server)).startswith("A replica that runs, and may write it, can take the lease at once")


def test_who_acts_as_the_anonymous_user_has_credentials() -> None:
    server = release_to_nobody()
    for event in server.log:
        if event["user"]["username"] == "system:anonymous":
            event["impersonatedUser"] = {"username": "system:anonymous"}
            event["user"] = {"username": "mallory"}
    assert "no credentials" not in text(explain(server))


def forget_sources(event: Document) -> None:
    event["sourceIPs"] = []


def test_without_an_address_the_pods_are_shown() -> None:
    server = release_to_nobody()
    for event in server.log:
        if event["user"]["username"] == "system:anonymous":
            forget_sources(event)
            event["userAgent"] = ""
    answer = explain(server)
    assert "(they carried no credentials) refused with 403" in text(answer)
    assert advise(answer).endswith("To see the pods: kubectl -n shop get pods")


def test_a_policy_may_refuse_an_anonymous_write_as_any_other() -> None:
    server = release_to_nobody()
    message = 'admission webhook "guard.example.com" denied the request: no'
    for event in server.log:
        if event["user"]["username"] == "system:anonymous":
            event["responseStatus"]["message"] = message
    assert "See why webhook guard.example.com refuses" in advise(explain(server))


def test_an_account_is_changed_at_a_time_that_the_log_shows() -> None:
    server = release_to_nobody()
    (write,) = explain(server).related_writes
    assert format_micro_time(write.at) in [event["stageTimestamp"] for event in server.log]
