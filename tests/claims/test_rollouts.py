"""A leader that is rolled out again and again: who updates its workload, and what the names of its pods show."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account, shop
from tests.claims.test_related_writes import BY_BOB, log_write
from tests.factories import put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log, follow_metadata, follow_watch
from webhook.analysis.claims.presentation.happened import list_latest

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


def roll_itself(images: Sequence[str], *, pods: Sequence[str] = NEW) -> FakeServer:
    """Have leaders set another image of their own Deployment, each of which then releases the lease."""
    server, _ = shop()
    for pod, image in zip(pods, images, strict=False):
        leader = server.elector(pod, "shop/db", pod=pod)
        leader.lead(10)
        user = {"username": leader.user, "extra": {"authentication.kubernetes.io/pod-name": [pod]}}
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "db", "image": image}]}}}}
        tweaks = put("user", user), put("level", "Request"), put("requestObject", patch)
        log_write(server, "deployments", "apps", put("verb", "patch"), *tweaks)
        leader.release()
        server.wait(1)
    return server


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ("ababa", ": the first update set image (a), the second set image (b), and so on in turn"),
        ("aaaaa", ", which set image (a) each time"),
        ("abcda", ": the last set image (a)"),
    ],
)
def test_updates_by_leaders_of_their_own_workload_are_one_line(images: str, said: str) -> None:
    server = roll_itself(images)
    found = account(follow_log(server), server.now)
    (line,) = [one.text for one in list_latest(found) if one.text.startswith("Deployment")]
    assert "was updated 5 times until" in line
    assert line.endswith(f"from 5 pods, each of which held it then{said}")


def test_of_updates_of_which_a_log_has_no_body_the_images_are_not_told() -> None:
    server = roll_itself("ababa")
    for event in server.log:
        if event["objectRef"]["resource"] == "deployments":
            del event["requestObject"]
    (line,) = [
        one.text for one in list_latest(account(follow_log(server), server.now)) if "was updated 5 times" in one.text
    ]
    assert line.endswith("from 5 pods, each of which held it then")


def test_of_a_lease_that_is_free_the_changes_of_its_holder_are_counted_in_a_log_and_in_a_watch() -> None:
    server = roll_itself("ababa")
    by_log, by_watch = (account(follow(server), server.now) for follow in (follow_log, follow_watch))
    assert "No one holds it now, and its holder changed 4 times since" in advise(by_log)
    assert "Deployment shop/db was updated 5 times by" in advise(by_log)
    assert "No one holds it now, and its holder changed 4 times since" in advise(by_watch)
    assert "4 times to a pod of another ReplicaSet, as in a rollout" in advise(by_watch)


def test_writes_that_are_left_out_are_counted() -> None:
    server, (db, *_) = shop()
    db.pod = NEW[0]
    db.lead(20)
    for number in range(7):
        log_write(server, "deployments", "apps", put("verb", "patch"), put("user.username", f"user-{number}"))
        server.wait(1)
    db.release()
    server.wait(1)
    server.elector(NEW[1], "shop/db", pod=NEW[1]).lead(4)
    lines = [one.text for one in list_latest(account(follow_log(server), server.now))]
    assert any(one.startswith("2 more writes to what its holders depend on until") for one in lines)


def hand_over(how: Sequence[str]) -> str:
    """Have pods of one workload follow each other, each after a release, an expiry or a theft; return the events."""
    server, (db, *others) = shop()
    together(10, db, *others)
    holder = db
    for number, kind in enumerate(how, start=1):
        follower = server.elector(f"db-{number}", "shop/db")
        if kind == "release":
            holder.release()
        together(18 if kind == "expiry" else 2, *others)
        follower.take()
        together(8, follower, *others)
        holder = follower
    return "\n".join(line.text for line in list_latest(account(follow_log(server), server.now)))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            ["release"] * 3,
            "after db-2_1 released it; the lease was free for 2 s; as far as the input shows, the holder",
        ),
        (["expiry"] * 3, "its holder changed 3 times since then, each time after it had expired"),
        (["release", "expiry", "expiry"], "3 times since then, 1 time after a release, 2 times after it had expired"),
    ],
)
def test_how_the_holder_changed_is_counted(how: Sequence[str], said: str) -> None:
    assert said in hand_over(how)


def test_a_theft_among_the_changes_is_no_other_way() -> None:
    said = hand_over(["release", "theft", "release"])
    assert "each time" not in said
    assert "had expired" not in said
