"""A write with the token of a pod from an address from which that pod does not renew need not be the pod's."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_both, follow_log, follow_watch
from webhook.findings import Severity

PLACE = "10.9.9.9"
WITH_TOKEN = f"shop/db, with the token of pod db-0 from {PLACE} (that pod renewed from "
ADVICE = (
    f"Find out who used the token of pod db-0 from {PLACE}. Unless the pod did so through a proxy or NAT, delete the "
    "pod, which revokes its token. To see which pod has that address: kubectl get pods -A -o wide --field-selector "
    f"status.podIP={PLACE}"
)
Tamper = Callable[[FakeServer], object]


def lead(seconds: float = 20, **server: object) -> FakeServer:
    """A lease that db-0 holds, whose tokens name uids of pods."""
    found = FakeServer(uids={"db-0": "uid-0", "db-1": "uid-1"}, **server)  # type: ignore[arg-type]
    found.elector("db-0", "shop/db").lead(seconds)
    return found


def remove(server: FakeServer, *, pod: str = "db-0", place: str = PLACE) -> None:
    """Release the lease with the token of a pod, from a place."""
    server.wait(1)
    server.elector(pod, "shop/db").release()
    server.log[-1]["sourceIPs"] = [place]
    server.wait(1)


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "log and watch"])
def test_a_release_from_elsewhere_is_not_said_to_be_the_pods(follow: Callable[[FakeServer], object]) -> None:
    server = lead()
    remove(server)
    server.elector("db-0", "shop/db").lead(6)
    one = account(follow(server), server.now)  # type: ignore[arg-type]
    (found,) = (found for found in one.findings if found.check == "holder-removed")
    assert found.severity is Severity.WARNING
    assert found.message.startswith(f"at 11:07:01Z {WITH_TOKEN}")
    assert found.message.endswith(
        "removed db-0_1 as the holder while the lease was live; the next one was db-0_1 again, from 11:07:02Z on"
    )
    assert "released it" not in text(one)
    assert advise(one).endswith(ADVICE)


def test_who_removes_another_holder_from_elsewhere_is_not_said_to_be_the_pod() -> None:
    server = lead()
    server.wait(20)
    second = server.elector("db-1", "shop/db")
    second.lead(10)
    server.wait(1)
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": ""}
    server.write("shop/db", spec, "operator", "system:serviceaccount:shop:db", "db-0")
    server.log[-1]["sourceIPs"] = [PLACE]
    server.wait(1)
    second.lead(6)
    one = account(follow_log(server), server.now)
    (found,) = (found for found in one.findings if found.check == "foreign-release")
    assert WITH_TOKEN in found.message
    assert f"after {WITH_TOKEN}" in text(one)
    assert advise(one).endswith(ADVICE)


def share(place: str) -> Tamper:
    """Have another pod ask from an address, as through a load balancer."""

    def tamper(server: FakeServer) -> None:
        server.elector("db-1", "shop/db").ask()
        server.log[-1]["sourceIPs"] = [place]

    return tamper


def share_own(server: FakeServer) -> None:
    share(server.log[-1]["sourceIPs"][0])(server)


def renew_from(place: str) -> Tamper:
    """Have the holder renew from an address, too."""

    def tamper(server: FakeServer) -> None:
        server.wait(1)
        server.elector("db-0", "shop/db").renew()
        server.log[-1]["sourceIPs"] = [place]

    return tamper


def forget_uids(server: FakeServer) -> None:
    server.uids.clear()
    for event in server.log:
        event["user"]["extra"].pop("authentication.kubernetes.io/pod-uid")


def ask_from_many(server: FakeServer) -> None:
    """Have more addresses ask than are remembered."""
    for number in range(20):
        server.elector(f"db-{number}", "shop/db").ask()


@pytest.mark.parametrize(
    "tamper",
    [share(PLACE), share_own, renew_from("10.8.8.8"), renew_from(PLACE), forget_uids, ask_from_many],
    ids=[
        "others share that address",
        "others share its address",
        "the pod renews from a third one",
        "the pod renews from there",
        "its tokens do not name its uid",
        "not all addresses are known",
    ],
)
def test_where_an_address_does_not_tell_one_pod_from_another_nothing_is_said(tamper: Tamper) -> None:
    server = lead()
    tamper(server)
    remove(server)
    server.elector("db-0", "shop/db").lead(6)
    one = account(follow_log(server), server.now)
    assert "released it" in text(one)
    assert "with the token" not in text(one)


def test_of_more_pods_than_are_remembered_the_addresses_of_the_latest_are_not_known() -> None:
    server = FakeServer(uids={f"db-{number}": f"uid-{number}" for number in range(20)})
    for number in range(19):
        elector = server.elector(f"db-{number}", "shop/db")
        elector.lead(6)
        elector.release()
        server.wait(1)
        for event in server.log:
            event["sourceIPs"] = ["10.7.7.7"]  # of a proxy
    server.elector("db-19", "shop/db").lead(10)
    for event in server.log[-6:]:
        event["sourceIPs"] = ["10.6.6.6"]
    remove(server, pod="db-19")
    assert "with the token" not in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("seconds", "place"),
    [(20, ""), (20, "fd00::9"), (2, PLACE)],
    ids=["from its own address", "from its address of the other family", "after a single renewal"],
)
def test_a_release_that_may_well_be_the_pods_is_one(seconds: float, place: str) -> None:
    server = lead(seconds)
    remove(server, place=place or server.log[-1]["sourceIPs"][0])
    server.elector("db-0", "shop/db").lead(6)
    assert "released it" in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("pods", "said"),
    [(("db-0",) * 4, "but it was taken 4 times since 11:07:02Z"), (("db-1", "db-0") * 2, "but its holder changed 4")],
    ids=["by one that took it back", "by two in turn"],
)
def test_a_holder_that_takes_back_what_it_released_is_no_other_one(pods: tuple[str, ...], said: str) -> None:
    server = lead()
    before = "db-0"
    for pod in pods:
        server.wait(1)
        server.elector(before, "shop/db").release()
        server.wait(1)
        server.elector(pod, "shop/db").lead(6)
        before = pod
    assert said in advise(account(follow_watch(server), server.now))
