"""A log without objects shows which pods wrote a lease in turn, and how often another one came to."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import LEASE, advise, follow_both, follow_metadata
from webhook.analysis.claims.evidence.writers.writers_in_turn import find_writers_in_turn
from webhook.analysis.claims.handovers import FREQUENT_WITHIN
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.times import SECOND

UNSEEN = "The input shows who wrote the lease, and not what. To see it:"
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


def write_over_each_other(times: int, *, pause: float = 5, users: tuple[str, str] = ("", "")) -> FakeServer:
    """A holder renews every five seconds, and another one writes as often, just after it; then that alone does."""
    server = FakeServer(uids={"db-0": "u-0", "db-1": "u-1"})
    first, second = (
        server.elector(f"db-{number}", "shop/db", user=user or "system:serviceaccount:shop:db")
        for number, user in enumerate(users)
    )
    first.take()
    for _ in range(times):
        server.wait(0.1)
        second.renew()
        server.wait(pause - 0.1)
        first.renew()
    for _ in range(6):
        server.wait(5)
        second.renew()
    return server


def list_lines(server: FakeServer) -> list[str]:
    answer = account(follow_metadata(server), server.now)
    return [line.text for line in list_latest(answer)]


def test_two_replicas_that_write_in_turn_are_not_told_as_one_after_the_other() -> None:
    assert list_lines(write_over_each_other(4)) == [
        (
            "shop/db from pod db-0 and pod db-1 wrote it in turn, the writer changed 9 times until 11:07:05Z; both may "
            "have led: the log does not show what was stored"
        ),
        "db-1 wrote it from then on (shop/db from pod db-1); before, it and db-0 wrote it in turn",
    ]


def test_a_single_write_of_another_replica_is_no_turn() -> None:
    server = write_over_each_other(1)
    assert list_lines(server)[-1] == (
        "db-1 wrote it from then on (shop/db from pod db-1); neither it nor db-0 wrote it for 5 s"
    )


def test_writers_of_other_accounts_are_counted_each_for_itself() -> None:
    assert (
        "4 writes by alice from pod db-1 were accepted" in list_lines(write_over_each_other(4, users=("", "alice")))[0]
    )


def test_who_writes_again_after_a_long_time_does_not_write_in_turn() -> None:
    found = list_lines(write_over_each_other(3, pause=700))
    assert not any("in turn" in one for one in found)


def test_a_third_replica_that_wrote_between_leaves_no_time_without_a_write() -> None:
    server = FakeServer()
    electors = [server.elector(f"db-{number}", "shop/db") for number in range(3)]
    electors[0].lead(20)
    server.wait(20)
    electors[1].renew()
    server.wait(20)
    electors[2].lead(20)
    assert list_lines(server)[-1] == "db-2 wrote it from then on (shop/db from pod db-2)"


def test_leaders_one_after_the_other_did_not_write_in_turn() -> None:
    assert not any("in turn" in one for one in list_lines(write_in_turn(["db-0", "db-1"] * 3)))


def test_the_turns_begin_with_the_first_change_and_not_with_the_last_write_before_a_pause() -> None:
    server = FakeServer(uids={"db-0": "u-0", "db-1": "u-1"})
    first, second = (
        server.elector(f"db-{number}", "shop/db", user="system:serviceaccount:shop:db") for number in (0, 1)
    )
    first.lead(20)
    server.wait(75)
    for _ in range(6):
        server.wait(2)
        second.renew()
        server.wait(0.1)
        first.renew()
    answer = account(follow_metadata(server), server.now)
    (line,) = [one for one in list_latest(answer) if "in turn" in one.text]
    assert line.text.endswith("changed 12 times until 11:08:27Z; both may lead: the log does not show what was stored")
    assert line.label.startswith("11:08:17Z")
    assert advise(answer).startswith("Both may lead: see whether its holder changes again and again")


def test_where_the_api_server_cut_its_events_off_that_is_why_the_log_does_not_show_the_lease() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    assert "and not what. To see it:" in advise_on_log(server)
    for event in server.log:
        event["annotations"] = {"audit.k8s.io/truncated": "true"}
    assert "and not what, as the API server cut its events off (audit.k8s.io/truncated). To see it:" in advise_on_log(
        server
    )


def test_of_a_log_without_objects_too_two_applications_are_to_have_a_lease_each() -> None:
    server = FakeServer()
    for number in range(2):
        server.elector(f"db-{number}", "shop/db", user=f"system:serviceaccount:shop:db-{number}").lead(60)
        server.wait(3)
    assert "If they are two applications, give each a lease name" in advise_on_log(server)
