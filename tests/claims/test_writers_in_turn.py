"""A log without objects shows which pods wrote a lease in turn, and how often another one came to."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import LEASE, advise, follow_both, follow_metadata
from webhook.analysis.claims.handovers import FREQUENT_WITHIN
from webhook.analysis.claims.writers_in_turn import find_writers_in_turn
from webhook.kubernetes.times import SECOND

UNSEEN = "Only its writes were seen, not the lease:"
USERS = {"alice": "alice", "db-9": "system:serviceaccount:ops:db"}


def write_in_turn(writers: Sequence[str], *, is_deleted: bool = False) -> FakeServer:
    """Writers renew for 20 s each, one after another, each after the pod of the one before was deleted or not."""
    server = FakeServer(uids={"db-0": "u-0", "db-1": "u-1", "db-2": "u-2"})
    for number, name in enumerate(writers):
        user = USERS.get(name, "system:serviceaccount:shop:db")
        server.elector(name, "shop/db", user=user, pod="" if name == "alice" else name).lead(20)
        if is_deleted and number < len(writers) - 1:
            server.delete_pod(name, uid=f"u-{name[-1]}")
        server.wait(3)
    return server


def advise_on_log(server: FakeServer) -> str:
    return advise(account(follow_metadata(server), server.now))


def test_how_often_the_writing_pod_changed_is_said_with_whose_log_to_read() -> None:
    assert advise_on_log(write_in_turn(["db-0", "db-1", "db-0", "db-1"])) == (
        "In the log, the pod that writes it changed 3 times since 11:07:03Z. The log of db-1 may say why: "
        "kubectl -n shop logs db-1"
    )


def test_the_log_is_that_of_a_pod_in_the_namespace_of_its_account() -> None:
    assert advise_on_log(write_in_turn(["db-0", "db-1", "db-9"])).endswith("kubectl -n ops logs db-9")


def test_who_deleted_each_pod_that_wrote_is_why_the_writing_pod_changed() -> None:
    assert advise_on_log(write_in_turn(["db-0", "db-1", "db-2"], is_deleted=True)) == (
        "In the log, the pod that writes it changed 2 times since 11:07:03Z, each time after "
        "kube-system/replicaset-controller had asked to delete the one before: kubectl -n shop get pods,events"
    )


@pytest.mark.parametrize(
    "writers",
    [["db-0", "db-1"], ["alice", "db-0", "db-1"], ["db-0", "alice", "db-0"], ["db-0", "db-1", "db-0", "alice"]],
    ids=["one change", "a person first", "a person in between", "a person at last"],
)
def test_no_log_is_named_unless_pods_came_to_write_it_again_and_again(writers: Sequence[str]) -> None:
    assert advise_on_log(write_in_turn(writers)).startswith(UNSEEN)


def test_changes_of_the_writing_pod_long_ago_are_not_counted() -> None:
    server = write_in_turn(["db-0", "db-1", "db-0"])
    server.elector("db-0", "shop/db").lead(FREQUENT_WITHIN / SECOND)
    assert advise_on_log(server).startswith(UNSEEN)


def test_holders_that_are_known_are_no_writers_in_turn() -> None:
    server = write_in_turn(["db-0", "db-1", "db-0"])
    assert find_writers_in_turn(follow_both(server).leases[LEASE].tenures, server.now) is None
