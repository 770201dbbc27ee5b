"""The heartbeat of a node that stopped and started again: what ran there was silent, too, and its kubelet registers."""

import pytest

from tests.claims.accounts import text
from tests.claims.test_related_writes import log_write
from tests.factories import Tweak, put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, follow_log, follow_watch
from webhook.analysis.claims.assemble import make_account

REGISTERED = "Node n1 was registered anew by system:node:n1, as when its kubelet starts"
POST = (
    put("verb", "create"),
    put("objectRef", {"resource": "nodes", "name": "n1", "apiVersion": "v1"}),
    put("user.username", "system:node:n1"),
    put("responseStatus", {"metadata": {}, "code": 409}),
)


def play(*tweaks: Tweak, node: str = "n1") -> FakeServer:
    """Let the heartbeat of node n1 and db-0 pause, which runs on a node by its token, and others go on."""
    server = FakeServer(nodes={"db-0": node})
    beat = server.elector("n1", "kube-node-lease/n1", user="system:node:n1", retry=10, duration=40)
    beat.identity, beat.pod = "n1", ""
    db = server.elector("db-0", "shop/db")
    others = [server.elector(f"{one}-0", f"shop/{one}") for one in ("mail", "cart", "pay")]
    for second in range(60):
        together(2, db, *others)
        if second % 5 == 0:
            beat.renew() if second else beat.take()
    together(100, *others)
    log_write(server, "nodes", "", *POST, *tweaks)
    beat.renew()
    together(4, db, *others)
    return server


def explain(server: FakeServer, view: View = follow_log) -> str:
    histories = view(server)
    return text(make_account(histories, histories.leases["kube-node-lease", "n1"], server.now))


@pytest.mark.parametrize(
    ("node", "view", "is_said"),
    [("n1", follow_log, True), ("n2", follow_log, False), ("", follow_log, False), ("n1", follow_watch, False)],
    ids=["its token says so", "another node", "its token names no node", "a watch has no tokens"],
)
def test_that_the_holder_of_a_lease_that_was_late_as_well_ran_on_that_node(
    node: str, view: View, *, is_said: bool
) -> None:
    said = explain(play(node=node), view)
    assert "and shop/db was late at the same time" in said
    assert ("shop/db was late at the same time, whose holder runs on that node" in said) is is_said


def test_a_node_that_asks_for_itself_again_starts() -> None:
    assert REGISTERED in explain(play())


@pytest.mark.parametrize(
    "tweak",
    [
        put("user.username", "system:node:n2"),
        put("user.username", "alice"),
        put("impersonatedUser", {"username": "system:node:n1"}),
        put("responseStatus.code", 403),
        put("verb", "patch"),
        put("requestURI", "/api/v1/nodes?dryRun=All"),
    ],
    ids=["another node", "a person", "who acts as it", "refused", "another verb", "a dry run"],
)
def test_what_does_not_show_that_a_kubelet_starts(tweak: Tweak) -> None:
    assert "registered anew" not in explain(play(tweak))
