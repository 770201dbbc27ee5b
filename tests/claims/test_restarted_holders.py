"""Kubelets that write the status of a pod again and again while it holds a lease: as of a leader that restarts."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_pods import KILLED, log_status, say
from tests.factories import Tweak
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.presentation.happened import list_latest

UNKNOWN = "as when containers end and start again, or readiness changes; the log does not show which"
WROTE = "kubelets wrote the status of"


def serve() -> tuple[FakeServer, Elector, list[Elector]]:
    server, (db, *others) = shop()
    together(20, db, *others)
    return server, db, others


def restart(server: FakeServer, db: Elector, others: list[Elector], number: int, *tweaks: Tweak) -> None:
    """Have a holder pause for 6 s so many times, in each of which a kubelet writes the status of its pod."""
    for _ in range(number):
        together(2, *others)
        log_status(server, db.pod, *tweaks)
        together(4, *others)
        together(4, db, *others)


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def test_a_pod_whose_status_is_written_again_and_again_while_it_holds_a_lease() -> None:
    server, db, others = serve()
    restart(server, db, others, 4)
    said = f"{WROTE} pod db-0 while the lease named it, 4 times until 11:07:32Z: {UNKNOWN}"
    assert f"11:07:02Z: {said}" in explain(server)
    assert any(said in line.text for line in list_latest(account(follow_log(server), server.now)))


def test_pods_that_hold_it_one_after_another() -> None:
    server, db, others = serve()
    restart(server, db, others, 2)
    together(18, *others)
    other = server.elector("db-1", "shop/db")
    other.take()
    restart(server, other, others, 2)
    assert f"{WROTE} pods db-0 and db-1 while it named each, 4 times until 11:07:50Z: {UNKNOWN}" in explain(server)


def test_a_write_before_another_one_takes_the_expired_lease_counts() -> None:
    server, db, others = serve()
    restart(server, db, others, 2)
    together(10, *others)
    log_status(server, "db-0")
    together(8, *others)
    server.elector("db-1", "shop/db").take()
    assert f"{WROTE} pod db-0 while the lease named it, 3 times until 11:07:30Z" in explain(server)


def test_what_is_written_after_a_release_is_not_of_its_time() -> None:
    server, db, others = serve()
    restart(server, db, others, 2)
    db.release()
    together(4, *others)
    log_status(server, "db-0")
    together(4, *others)
    server.elector("db-1", "shop/db").take()
    assert WROTE not in explain(server)


@pytest.mark.parametrize(("number", "is_said"), [(2, False), (3, True)])
def test_a_pod_that_starts_has_a_few(number: int, is_said: bool) -> None:
    server, db, others = serve()
    restart(server, db, others, number)
    assert (WROTE in explain(server)) == is_said


def test_of_writes_far_apart_the_latest_in_a_row_count() -> None:
    server, db, others = serve()
    restart(server, db, others, 3)
    together(400, db, *others)
    restart(server, db, others, 2)
    assert WROTE not in explain(server)
    restart(server, db, others, 1)
    assert "while the lease named it, 3 times" in explain(server)


@pytest.mark.parametrize(
    ("tweaks", "said"),
    [
        (say({"containerStatuses": [{"name": "db", "lastState": {"terminated": KILLED}}]}), "container db ended (OOM"),
        (say({"conditions": []}), ""),
    ],
    ids=["a container that ended", "something else"],
)
def test_what_a_log_shows_of_a_status_is_said(tweaks: tuple[Tweak, ...], said: str) -> None:
    server, db, others = serve()
    restart(server, db, others, 3, *tweaks)
    output = explain(server)
    assert (f"3 times until 11:07:22Z: {said}" if said else "") in output
    assert (WROTE in output) == bool(said)
    assert UNKNOWN not in output


@pytest.mark.parametrize(("at", "is_said"), [("11:06:36", False), ("11:06:40", True)])
def test_a_container_that_ended_before_its_pod_held_the_lease_is_no_reason(at: str, *, is_said: bool) -> None:
    server, db, others = serve()
    ended = {"name": "db", "lastState": {"terminated": KILLED | {"finishedAt": f"2026-11-18T{at}Z"}}}
    restart(server, db, others, 3, *say({"containerStatuses": [ended]}))
    assert (WROTE in explain(server)) == is_said


def test_the_status_of_a_pod_that_was_deleted_changes_for_that() -> None:
    server, db, others = serve()
    restart(server, db, others, 3)
    server.delete_pod("db-0")
    assert WROTE not in explain(server)


def test_a_lease_that_nobody_held_has_no_pods() -> None:
    server, (db, _, _) = shop()
    db.ask()
    assert WROTE not in explain(server)


def test_writes_after_the_moment_of_the_question_are_not_said() -> None:
    server, db, others = serve()
    now = server.now
    restart(server, db, others, 4)
    assert WROTE not in text(account(follow_log(server), now))
