"""Holders named for a node that the input shows, as static pods are: no pod has that name, so none is asked for."""

from typing import Final

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, advise, follow_log, follow_watch

UUID: Final = "ce7e116f-cd3c-4cc7-a433-2e53486f0240"
PODS: Final = "kubectl -n shop get pods -o wide --field-selector spec.nodeName=cp-1"


def lose(*, node: str, user: str = "system:scheduler", taken_after: float = 20) -> FakeServer:
    server = FakeServer()
    holder = server.elector("cp-1", "shop/db", user=user, pod="")
    follower = server.elector("cp-2", "shop/db", user=user, pod="")
    holder.identity, follower.identity = f"cp-1_{UUID}", f"cp-2_{UUID}"
    kubelet = server.elector(node, f"kube-node-lease/{node}", user=f"system:node:{node}", pod="")
    kubelet.identity = node
    follower.ask()
    together(40, holder, kubelet)
    together(taken_after, kubelet)
    follower.take()
    together(10, follower, kubelet)
    return server


@pytest.mark.parametrize(
    ("follow", "sentence"),
    [
        (follow_watch, "which lost the lease, is one of the pods on node cp-1, for which it is named"),
        (follow_log, "not with the token of a pod. The pods on node cp-1, for which it is named"),
    ],
)
def test_a_holder_named_for_a_node_is_looked_for_there(follow: View, sentence: str) -> None:
    server = lose(node="cp-1")
    assert f"{sentence}: {PODS}" in advise(account(follow(server), server.now))


def test_a_holder_named_for_no_node_that_is_shown_may_be_a_pod() -> None:
    server = lose(node="worker-1")
    output = advise(account(follow_watch(server), server.now))
    assert "describe pod cp-1" in output
    assert "nodeName" not in output


def test_who_took_a_lease_late_without_the_token_of_a_pod_is_not_looked_for_among_all_who_may_write() -> None:
    server = lose(node="cp-2", taken_after=60)
    output = text(account(follow_log(server), server.now))
    assert "taken-late" in output
    (late,) = (one for one in account(follow_log(server), server.now).findings if one.check == "taken-late")
    assert "lease-webhook writers" not in str(late)
    assert "spec.nodeName=cp-2" in str(late)
