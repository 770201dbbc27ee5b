"""Pods of one node that paused together, while their node was heard: they may have been cut off."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_pod_activity import log_work
from tests.factories import put
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import follow_log, follow_metadata
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.follow import ClusterHistory

OTHERS = ("mail",)
PAUSED = (
    "the log has no request for its lease by pod db-0 until 11:07:41Z, nor by pod mail-0 for another, all on node n1, "
    "whose own lease was renewed: they may have been cut off from the API server, or paused"
)


def cut_off(
    others: tuple[str, ...] = OTHERS,
    *,
    node: str = "n1",
    pauses: bool = True,
    has_kubelet: bool = True,
    returns: bool = True,
    pause: int = 42,
    each: int = 1,
    working: str = "",
) -> FakeServer:
    """A holder on n1 that pauses for 42 s, as the holders of `others` do on `node`, and that another one follows.

    It renews at each, or each so many, of the times at which the others do. Pod `working` writes something else then.
    """
    pods = {"db-0": "n1", **{f"{one}-0": node for one in others}}
    server = FakeServer(nodes=pods, uids={one: f"uid-{one}" for one in pods})
    db, *rest = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", *others))
    cart, second = server.elector("cart-0", "shop/cart"), server.elector("db-1", "shop/db")
    kubelet = server.elector("n1", "kube-node-lease/n1", user="system:node:n1", pod="")
    kubelet.identity = "n1"
    db.ask()
    going_on = [cart, *([kubelet] if has_kubelet else []), *([] if pauses else rest)]
    kubelet.take()
    for number in range(10):
        together(2, *([] if number % each else [db]), *rest, cart, kubelet)
    together(pause - 6, *going_on)
    if working:
        log_work(server, put("user.username", "system:serviceaccount:shop:" + working.partition("-")[0]), pod=working)
    second.take()
    together(6, second, *going_on)
    if returns:
        db.ask()
        together(4, second, *rest, cart, kubelet)
        db.ask()
    return server


def explain(server: FakeServer, follow: Callable[[FakeServer], ClusterHistory] = follow_log) -> str:
    return text(account(follow(server), server.now))


@pytest.mark.parametrize("follow", [follow_log, follow_metadata])
def test_pods_of_one_node_that_paused_with_a_holder_are_said(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    server = cut_off()
    assert PAUSED in explain(server, follow)
    assert any(PAUSED in line.text for line in list_latest(account(follow(server), server.now)))


def test_of_very_many_pods_some_are_named() -> None:
    said = explain(cut_off(("mail", "news", "pay", "tax")))
    assert "nor by pod mail-0, pod news-0, pod pay-0 and 1 more for another" in said


@pytest.mark.parametrize(
    "server",
    [
        cut_off(node="n2"),
        cut_off(pauses=False),
        cut_off(has_kubelet=False),
        cut_off(returns=False),
        cut_off(()),
        cut_off(pauses=False, pause=10),
        cut_off(pause=20, each=4),
        cut_off(working="db-0"),
        cut_off(working="mail-0"),
    ],
    ids=[
        "on another node",
        "they went on",
        "the node was silent, too",
        "it was not heard again",
        "it was alone",
        "they went on in a time so short that two of their requests are about its ends",
        "it asks so rarely",
        "it worked",
        "the other one worked",
    ],
)
def test_pods_that_did_not_pause_together_or_with_their_node_are_not(server: FakeServer) -> None:
    assert "nor by pod" not in explain(server)


@pytest.mark.parametrize("doubt", ["skew", "leaky", "node"])
def test_what_a_log_may_lack_is_no_pause(doubt: str) -> None:
    server = cut_off()
    histories = follow_log(server)
    if doubt == "skew":
        histories.bounds.skew = 2 * SECOND
    elif doubt == "leaky":
        histories.bounds.is_log_leaky = True
    else:
        histories.forget_lease(("kube-node-lease", "n1"))
    assert "nor by pod" not in text(account(histories, server.now))
