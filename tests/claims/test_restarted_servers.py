"""An API server that went while a holder was silent, and created its own lease anew when it came again."""

from typing import Final

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_logs_that_end import follow as follow_two_logs
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import advise, follow_watch

IDENTITY: Final = "kube-system/apiserver-rplpdvtx3lntmi4xy2xnxookk4"
ANEW: Final = f"the lease of an API server, {IDENTITY}, was last renewed at 11:07:30Z and created anew under another "
GONE: Final = "that API server had {} gone, and the holder may have used it"


def restart_a_server(
    *,
    skipping: int = 2,
    is_anew: bool = True,
    silence: int = 16,
    returns_after: int = 30,
    user: str = "system:apiserver",
) -> FakeServer:
    """The API server of db-0 ends, and others go on with another one; nodes renew each 10 s, and some miss a beat."""
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db", pod="queue-0")
    own = server.elector("bill-0", IDENTITY, user=user, duration=3600)
    nodes = [
        server.elector(f"node-{number}", f"kube-node-lease/node-{number}", user=f"system:node:node-{number}")
        for number in range(3)
    ]
    _run(server, 60, 10, [first], [own, *nodes])
    _run(server, 10, 10, [], nodes[skipping:])
    _run(server, silence - 10, 10, [], nodes)
    second.take()
    _run(server, returns_after - silence, 10, [second], nodes)
    if is_anew:
        server.delete(IDENTITY, user=user, pod="bill-0")
        server.wait(0.3)
    own = server.elector("bill-0", IDENTITY, user=user, duration=3600)
    own.identity = "bill-0_2" if is_anew else "bill-0_1"
    _run(server, 40, 10, [second], [own, *nodes])
    return server


def _run(server: FakeServer, seconds: int, each: int, often: list[Elector], rarely: list[Elector]) -> None:
    for number in range(0, seconds, 2):
        for elector in (*often, *(rarely if number % each == 0 else ())):
            stored = server.leases.get(elector.lease)
            is_own = stored is not None and stored["spec"]["holderIdentity"] == elector.identity
            (elector.renew if is_own else elector.take)()
        server.wait(2)


def test_a_watch_shows_that_an_api_server_had_gone_by_its_lease_and_those_of_nodes() -> None:
    found = account(follow_watch(restart_a_server()), restart_a_server().now)
    output = text(found)
    assert ANEW in output
    assert f", and the leases of 2 nodes missed a renewal at that time: {GONE.format('probably')}" in output
    assert "too few to tell" not in output
    assert "See why that API server had gone, and whether all run now: kubectl -n kube-system get leases" in advise(
        found
    )
    assert "pod db-0" not in advise(found)


@pytest.mark.parametrize(
    ("silence", "before"), [(28, "Why is not known: "), (20, "were late at the same time; ")], ids=["paused", "late"]
)
def test_of_a_long_silence_it_is_said_beside_the_leases_that_were_late(silence: int, before: str) -> None:
    server = restart_a_server(silence=silence, returns_after=40, skipping=3)
    assert f"{before}{ANEW}" in text(account(follow_watch(server), server.now))


def test_without_the_beats_of_nodes_it_may_have_gone() -> None:
    server = restart_a_server(skipping=1)
    output = text(account(follow_watch(server), server.now))
    assert GONE.format("perhaps") in output
    assert "missed a renewal at that time" not in output


@pytest.mark.parametrize(
    "server",
    [restart_a_server(is_anew=False), restart_a_server(returns_after=180)],
    ids=["its lease is the same", "it came long after"],
)
def test_an_api_server_that_was_not_created_anew_then_is_not_told_of(server: FakeServer) -> None:
    assert "created anew" not in text(account(follow_watch(server), server.now))


def test_the_logs_of_two_show_which_one_the_holder_used() -> None:
    server = restart_a_server()
    found = account(follow_two_logs(server), server.now)
    output = text(found)
    assert "The API server, or what it asks, was slow or unavailable: log 1.log, which has the last renewal, " in output
    own = f"not even about that of its API server, {IDENTITY}, which an API server created anew under another identity"
    assert own in output
    assert "that API server had probably gone, as for a restart" in output
    assert advise(found).startswith("Look at the API server that wrote log 1.log, and at its machine: ")


def test_what_another_user_created_anew_shows_no_restart_for_sure() -> None:
    server = restart_a_server(user="mallory")
    output = text(account(follow_two_logs(server), server.now))
    assert "Why is not known: log 1.log, which has the last renewal, " in output
    assert "which someone created anew under another identity" in output
