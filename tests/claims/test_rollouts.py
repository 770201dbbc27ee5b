"""A leader that is rolled out again and again: who updates its workload, and what the names of its pods show."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account, shop
from tests.claims.test_related_writes import BY_BOB, log_write
from tests.factories import put
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_log, follow_metadata, follow_watch

UPDATED = "; Deployment shop/db was updated 4 times by alice@example.org: kubectl -n shop get pods,events"
ROLLED = ", by their names, 4 times to a pod of another ReplicaSet, as in a rollout: kubectl -n shop get replicasets"
NEW = tuple(f"db-7c9{letter}-x2x8p" for letter in "bcdfg")


def roll(pods: Sequence[str] = NEW, *, updates: int = 4, are_deleted: bool = True) -> FakeServer:
    """Have pods lead one after another, each for 10 s, while their Deployment is updated."""
    server, _ = shop()
    for number, pod in enumerate(pods):
        leader = server.elector(pod, "shop/db", pod=pod)
        leader.lead(10)
        if number < updates:
            log_write(server, "deployments", "apps", put("verb", "patch"))
        if pod != pods[-1]:
            if are_deleted:
                server.delete_pod(pod)
            leader.release()
            server.wait(1)
    log_write(server, "deployments", "apps", put("verb", "patch"), BY_BOB)
    return server


def test_who_updates_the_workload_again_and_again_is_said() -> None:
    server = roll()
    assert advise(account(follow_log(server), server.now)).endswith(f"had asked to delete its pod{UPDATED}")
    assert advise(account(follow_metadata(server), server.now)).endswith(f"had asked to delete the one before{UPDATED}")


@pytest.mark.parametrize("updates", [0, 2])
def test_a_few_updates_are_no_habit(updates: int) -> None:
    server = roll(updates=updates)
    advice = advise(account(follow_log(server), server.now))
    assert "had asked to delete its pod: kubectl" in advice


def test_a_workload_that_nobody_updated_has_none() -> None:
    server = roll()
    server.log = [one for one in server.log if one["objectRef"]["resource"] != "deployments"]
    assert "had asked to delete its pod: kubectl" in advise(account(follow_log(server), server.now))


def test_names_of_pods_of_another_template_each_time_are_said() -> None:
    server = roll()
    assert ROLLED in advise(account(follow_watch(server), server.now))


@pytest.mark.parametrize(
    "pods",
    [
        tuple(f"db-7c9b-x2x8{letter}" for letter in "bcdfg"),
        tuple(f"d{letter}-7c9{letter}-x2x8p" for letter in "bcdfg"),
        tuple(f"db-{number}" for number in range(5)),
        ("db-0", "db-7c9b-x2x8p", "db-1", "db-7c9c-x2x8p", "db-2"),
        ("db-7c9b-x2x8b", "db-7c9b-x2x8c", "db-7c9c-x2x8d", "db-7c9c-x2x8f", "db-7c9d-x2x8g"),
    ],
    ids=["of one template", "of other workloads", "without a template", "in turn", "only now and then"],
)
def test_other_names_show_no_rollout(pods: Sequence[str]) -> None:
    server = roll(pods)
    advice = advise(account(follow_watch(server), server.now))
    assert "its holder changed" in advice
    assert "as in a rollout" not in advice
