"""Another lease that paused while a holder was silent hints at what both share, and not at the holder."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log, follow_watch


def stall(*paused: str, others: tuple[str, ...] = ("mail",)) -> FakeServer:
    """A short lease that is lost while some of the others, which last longer, pause for 9 s."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db", duration=6, retry=1.0)
    electors = [server.elector(f"{name}-0", f"shop/{name}") for name in others]
    together(40, db, *electors)
    for _ in range(4):
        server.wait(2)
        for elector in electors:
            if elector.lease.removeprefix("shop/") not in paused:
                elector.renew()
    together(14, *electors)
    server.wait(1)
    follower = server.elector("db-1", "shop/db", duration=6, retry=1.0)
    follower.take()
    together(10, follower, *electors)
    return server


def test_a_lease_that_paused_at_the_same_time_does_not_speak_against_the_holder() -> None:
    server = stall("mail")
    answer = account(follow_watch(server), server.now)
    output = text(answer)
    assert "Why is not known: the other lease paused at the same time, for up to " in output
    assert "as when the API server or its etcd is slow, or a node cut off, for example." in output
    assert "renewed meanwhile" not in output
    assert advise(answer).startswith("Look at the API server and its etcd; db-0_1, perhaps a pod, may have stopped")


@pytest.mark.parametrize(
    ("paused", "expected"),
    [
        (("mail", "cart"), "2 of 3 other leases paused at the same time"),
        (("mail",), "3 other leases were renewed meanwhile, 1 of them after up to "),
        ((), "3 other leases were renewed on time"),
    ],
    ids=["most", "few", "none"],
)
def test_most_of_the_others_count(paused: tuple[str, ...], expected: str) -> None:
    server = stall(*paused, others=("mail", "cart", "bank"))
    assert expected in text(account(follow_watch(server), server.now))


def test_a_log_that_shows_no_request_of_its_pod_says_so() -> None:
    server = stall("mail")
    server.elector("db-2", "shop/db").ask()
    output = text(account(follow_log(server), server.now))
    assert "paused at the same time" not in output
