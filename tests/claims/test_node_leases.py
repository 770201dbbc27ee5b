"""What is to be done about a lease of a node: it has no pod, and no one else takes it."""

from typing import Any

import pytest

from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log, follow_watch
from webhook.analysis.claims.account import account_of
from webhook.analysis.claims.advice import command_for_pod_of_holder

NODE = ("kube-node-lease", "n1")
KUBELET = "system:node:n1"


def silent(seconds: float, *, others: int = 0, refused: int = 0) -> FakeServer:
    """A server on which the kubelet of n1 has been silent for so long, and other leases are renewed."""
    server = FakeServer()
    node = server.elector("n1", "kube-node-lease/n1", user=KUBELET, retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    rest = [server.elector(f"m{number}", f"shop/m{number}") for number in range(others)]
    for _ in range(6):
        together(10, *rest) if rest else server.wait(10)
        (node.renew if "kube-node-lease/n1" in server.leases else node.take)()
    for _ in range(int(seconds // 10)):
        together(10, *rest) if rest else server.wait(10)
        if refused:
            node.fail(refused, "no")
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
@pytest.mark.parametrize("others", [0, 3], ids=["alone", "beside other leases"])
@pytest.mark.parametrize("refused", [0, 403, 500], ids=["silent", "refused", "failing"])
@pytest.mark.parametrize("seconds", [20, 30, 60, 120])
def test_the_node_is_described_and_no_pod(follow: Any, others: int, refused: int, seconds: float) -> None:
    server = silent(seconds, others=others, refused=refused)
    histories = follow(server)
    said = advise(account_of(histories, histories.leases[NODE], server.now))
    assert "describe pod" not in said
    assert "get pods" not in said


def test_the_command_for_its_holder_describes_the_node() -> None:
    assert command_for_pod_of_holder("kube-node-lease", "n1") == "kubectl describe node n1"
