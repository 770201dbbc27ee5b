"""A leader whose renewals come later and later until they stop, and whose pod is heard again: as one that is paused."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account, shop
from tests.claims.test_pod_activity import READ, find_loss, log_work, serve
from tests.claims.test_pods import log_status
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, follow_log, follow_watch

SLOWED = " Its renewals had slowed before, from 11:07:00Z on: up to 7 s apart, and usually 2 s."
PAUSED = "and for something else at 11:07:26Z: it may have been paused until then, and have acted as leader until it"


def slow_down(intervals: Sequence[float], *, before: int = 20) -> FakeServer:
    """Have db-0 renew at intervals after it has renewed in its rhythm for some seconds, and lose the lease then."""
    server, (db, *others) = shop()
    together(before, db, *others)
    for seconds in intervals:
        server.wait(seconds)
        for one in (db, *others):
            one.renew()
    together(20, *others)
    server.elector("db-1", "shop/db").take()
    return server


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["log", "watch"])
def test_that_renewals_had_slowed_is_said_beside_the_loss(view: View) -> None:
    server = slow_down((5, 5, 7, 7))
    found = account(view(server), server.now).findings
    assert SLOWED in next(one.message for one in found if one.check == "leader-lost")


@pytest.mark.parametrize(
    "server",
    [slow_down((7, 7)), slow_down((5, 7, 7, 2)), slow_down((5, 5, 7), before=2)],
    ids=["twice", "it renewed in time at last", "from the beginning"],
)
def test_a_few_late_renewals_are_no_slowing(server: FakeServer) -> None:
    assert "slowed" not in find_loss(server)


def come_back(*, work: Sequence[int]) -> FakeServer:
    """Have a kubelet write a status as db-0 falls silent, and as it asks again; its pod works at some seconds."""
    server, (db, *others) = serve()
    together(20, db, *others)
    server.wait(0.1)
    log_status(server, "db-0")
    for second in range(2, 30, 2):
        together(2, *others)
        if second == 20:
            server.elector("db-1", "shop/db").take()
        if second in work:
            log_work(server, READ)
    log_status(server, "db-0")
    for _ in range(3):
        server.wait(2)
        db.ask()
    return server


def test_a_pod_that_is_heard_before_a_container_runs_again_may_have_been_paused() -> None:
    assert PAUSED in find_loss(come_back(work=(26,)))


def test_a_pod_that_is_not_heard_may_have_ended() -> None:
    said = find_loss(come_back(work=()))
    assert "unless it had ended or restarted, as the status suggests" in said
    assert "paused until then" not in said
