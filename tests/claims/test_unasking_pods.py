"""Pods that got nodes while a lease was free and never asked for it, and a taker that came only then."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_pods import log_pod
from tests.factories import put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log

OLD = "db-7c9d-x2x8p"
TAKER = "db-7c9d-x2x8b"
NEW = ("db-5f6d-x2x8c", "db-5f6d-x2x8d")


def bind(server: FakeServer, pod: str) -> None:
    named = put("objectRef.name", pod), put("objectRef.subresource", "binding"), put("verb", "create")
    log_pod(server, *named, put("responseStatus.code", 201))


def play(
    *pods: str, at: int = 2, deleted: int = 0, taker_at: int = 56, asks: bool = False, reads: bool = True
) -> FakeServer:
    """A holder gives a lease up, pods get nodes at a second after that, and one takes it after a minute."""
    server, (db, *others) = shop()
    db.pod = OLD
    if reads:
        db.ask()
    together(20, db, *others)
    db.release()
    for second in range(2, 62, 2):
        together(2, *others)
        for pod in pods if second == at else ():
            bind(server, pod)
            if asks:
                server.elector(pod, "shop/db", pod=pod).ask()
        for pod in pods if second == deleted else ():
            server.delete_pod(pod)
        if second == taker_at:
            bind(server, TAKER)
    taker = server.elector(TAKER, "shop/db", pod=TAKER)
    if reads:
        taker.ask()
    taker.take()
    together(10, taker, *others)
    return server


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("pods", "deleted", "said"),
    [
        (
            NEW,
            50,
            "pods db-5f6d-x2x8c, db-5f6d-x2x8d got nodes, and the log has no request for the lease from those pods; d",
        ),
        (NEW[:1], 0, "11:07:02Z: pod db-5f6d-x2x8c got a node, and the log has no request for the lease from that pod"),
        (
            (*NEW, "db-5f6d-x2x8f", "db-5f6d-x2x8g"),
            0,
            "pods db-5f6d-x2x8c, db-5f6d-x2x8d, db-5f6d-x2x8f and 1 more got",
        ),
    ],
    ids=["deleted ones", "one that is there", "many"],
)
def test_pods_that_never_asked_are_said(pods: Sequence[str], deleted: int, said: str) -> None:
    output = explain(play(*pods, deleted=deleted))
    assert said in output
    assert ("deleted by" in output) == bool(deleted)


@pytest.mark.parametrize(
    "make_server",
    [
        partial(play, *NEW, at=50),
        partial(play, *NEW, deleted=10),
        partial(play, *NEW, asks=True),
        partial(play, "mail-5f6d-x2x8c"),
        partial(play, *NEW, reads=False),
    ],
    ids=["just before", "soon deleted", "which asked", "of another workload", "a log without reads"],
)
def test_others_are_not_said(make_server: Callable[[], FakeServer]) -> None:
    assert "no request for the lease from th" not in explain(make_server())


def test_a_taker_that_got_its_node_late_did_not_wait() -> None:
    output = explain(play())
    assert "its pod got a node only at 11:07:56Z, and did not run before" in output
    assert output.endswith(
        "ADVICE See why no other pod took the lease earlier, for example in the events of the pods that existed then: "
        "kubectl -n shop get events,pods"
    )


def test_a_taker_that_had_a_node_for_most_of_the_time_is_asked_itself() -> None:
    output = explain(play(taker_at=10))
    assert "got a node only" not in output
    assert "kubectl -n shop logs db-7c9d-x2x8b" in output


def follow_late(*, deleted: float | None = 0, bound: float | None = None, followers: int = 2) -> str:
    """A holder whose followers are deleted at a second after it gives its lease up, and a taker that comes late."""
    server, (db, *others) = shop()
    db.pod = OLD
    names = [f"db-6f7d-x2x8{number}" for number in range(followers)]
    pods = [server.elector(name, "shop/db", pod=name) for name in names]
    db.ask()
    if bound is None:
        for pod in pods:
            pod.ask()
    together(20, db, *others)
    db.release()
    for second in range(2, 62, 2):
        if second - 2 == deleted:
            for name in names:
                server.delete_pod(name)
        together(2, *others)
        if second == 56:
            bind(server, TAKER)
        if second == bound:
            for pod in pods:
                bind(server, pod.pod)
                pod.ask()
    taker = server.elector(TAKER, "shop/db", pod=TAKER)
    taker.ask()
    taker.take()
    together(10, taker, *others)
    return explain(server)


def test_a_taker_that_came_late_was_alone_if_all_that_had_asked_before_were_deleted() -> None:
    output = follow_late()
    assert "; pods db-6f7d-x2x80 and db-6f7d-x2x81, which had asked for it, were deleted, too" in output
    assert "No other pod was left that had asked for it. See why this one got no node before" in output
    assert f"kubectl -n shop describe pod {TAKER}; kubectl get nodes -o custom-columns=" in output
    assert "; pod db-6f7d-x2x80, which had asked for it, was deleted, too" in follow_late(followers=1)


@pytest.mark.parametrize(
    "output",
    [
        follow_late(deleted=None),
        follow_late(deleted=20),
        follow_late(deleted=None, bound=58),
        follow_late(followers=16),
    ],
    ids=["they were not deleted", "they were deleted later", "they came later", "there may be more"],
)
def test_whether_another_pod_was_left_is_else_not_known(output: str) -> None:
    assert "No other pod was left" not in output
    assert "See why no other pod took the lease earlier" in output
