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
        (("mail",), "3 other leases were renewed meanwhile, 1 of them (shop/mail) after up to "),
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


@pytest.mark.parametrize("pause", [0, 10], ids=["it did not pause", "it paused, if not as long"])
def test_a_lease_that_paused_is_not_named_as_one_that_was_not_late(pause: float) -> None:
    server = FakeServer()
    db, *late = (server.elector(f"{name}-0", f"shop/{name}") for name in ("db", "mail", "cart", "bank"))
    punctual = server.elector("tax-0", "shop/tax")
    together(40, db, *late, punctual)
    server.wait(pause)
    together(30 - pause, punctual)
    server.elector("db-1", "shop/db").take()
    together(20, *late, punctual)
    output = text(account(follow_watch(server), server.now))
    assert "3 of the 4 other leases due at least twice were late at the same time (shop/" in output
    assert ("and 1 more), and shop/tax was not." in output) is not bool(pause)
    assert ("and 1 more)." in output) is bool(pause)


def test_the_lease_of_its_node_is_not_said_to_be_the_one_that_paused() -> None:
    server = FakeServer(nodes={"db-0": "n1", "db-1": "n1"})
    db, mail, cart = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    kubelet = server.elector("n1", "kube-node-lease/n1", user="system:node:n1", pod="", duration=40)
    together(40, db, mail, cart, kubelet)
    together(8, cart, kubelet)
    together(14, mail, cart, kubelet)
    server.elector("db-1", "shop/db").lead(10)
    said = text(account(follow_log(server), server.now))
    assert (
        "renewed meanwhile, 1 of them (shop/mail) after up to 10 s without a renewal; the lease of its node was" in said
    )
