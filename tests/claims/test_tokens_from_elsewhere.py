"""A write with the token of a pod from an address from which that pod does not renew need not be the pod's."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_both, follow_log
from tests.timeline.test_truth import read_log
from webhook.analysis.history.follow import ClusterHistory

PLACE = "10.9.9.9"
REMARK = f"(a request from {PLACE}; the pod of that token renewed from "
ADVICE = (
    f"Find out who used the token of pod db-0 from {PLACE}: unless the pod did, through a proxy or NAT, someone else "
    "has it, and deleting the pod revokes it. To see which pod has that address: kubectl get pods -A -o wide "
    f"--field-selector status.podIP={PLACE}"
)
Tamper = Callable[[FakeServer], object]
FOLLOWS = pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "log and watch"])


def lead(seconds: float = 20) -> FakeServer:
    """A lease that db-0 holds, whose tokens name uids of pods."""
    server = FakeServer(uids={"db-0": "uid-0", "db-1": "uid-1"})
    server.elector("db-0", "shop/db").lead(seconds)
    return server


def remove(server: FakeServer, *, pod: str = "db-0", place: str = PLACE) -> None:
    """Release the lease with the token of a pod, from a place."""
    server.wait(1)
    server.elector(pod, "shop/db").release()
    server.log[-1]["sourceIPs"] = [place]
    server.wait(1)


@FOLLOWS
def test_a_release_from_elsewhere_has_both_addresses(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    server = lead()
    remove(server)
    server.elector("db-0", "shop/db").lead(6)
    assert f"db-0_1 released it {REMARK}" in text(account(follow(server), server.now))


def test_a_picture_has_both_addresses() -> None:
    server = lead()
    remove(server)
    server.elector("db-0", "shop/db").lead(6)
    (lane,) = read_log(server).lanes
    assert [mark.text for mark in lane.marks if REMARK in mark.text]


@FOLLOWS
def test_who_removes_another_holder_from_elsewhere_need_not_be_the_pod(
    follow: Callable[[FakeServer], ClusterHistory],
) -> None:
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
    explained = account(follow(server), server.now)
    (removal,) = (claim for claim in explained.findings if claim.check == "foreign-release")
    assert f"removed db-1_1 as the holder {REMARK}" in removal.message
    assert ADVICE in text(explained)


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
    explanation = text(account(follow_log(server), server.now))
    assert "released it" in explanation
    assert "the pod of that token" not in explanation


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
    assert "the pod of that token" not in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("seconds", "place"),
    [(20, ""), (20, "fd00::9"), (2, PLACE)],
    ids=["from its own address", "from its address of the other family", "after a single renewal"],
)
def test_of_a_release_that_may_well_be_the_pods_no_address_is_said(seconds: float, place: str) -> None:
    server = lead(seconds)
    remove(server, place=place or server.log[-1]["sourceIPs"][0])
    server.elector("db-0", "shop/db").lead(6)
    assert "the pod of that token" not in text(account(follow_log(server), server.now))
