"""A node's lease that something else than its kubelet writes, from elsewhere: it does not show that the node works.

Source: the recorded incident of a node without power whose lease is kept fresh with its stolen credentials.
"""

import pytest

from tests.claims.accounts import account, text
from tests.factories import put
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import View, follow_both, follow_log, follow_metadata
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.times import format_micro_time

NODE = "kube-node-lease/n1"
KUBELET, THIEF = ("10.0.0.7", "kubelet/v1.37.1 (linux/amd64)"), ("10.9.9.9", "curl/8.5.0")
FROM_THIEF = "from 10.9.9.9 with the user agent curl"
MOVED = (
    f"from then on system:node:n1 wrote it {FROM_THIEF}, and until 11:07:40Z from 10.0.0.7 with the user agent "
    "kubelet: it no longer shows that the node works"
)
Source = tuple[str, str]


def keep_fresh(
    *runs: tuple[Source, int], lease: str = NODE, user: str = "system:node:n1", is_refused: bool = False
) -> FakeServer:
    """The lease of a node, renewed each 10 s from sources in turn, so many times; the last one may conflict."""
    server = FakeServer()
    node = server.elector("n1", lease, user=user, pod="", retry=10, duration=40)
    node.identity = "n1"
    for number, ((address, agent), count) in enumerate(runs):
        for _ in range(count):
            server.wait(10 if server.log else 0)
            if is_refused and number == len(runs) - 1:
                node.fail(409, "the object has been modified")
            else:
                (node.renew if lease in server.leases else node.take)()
            server.log[-1] |= {"sourceIPs": [address], "userAgent": agent}
    server.wait(5)
    return server


def explain(server: FakeServer, follow: View = follow_log, lease: str = NODE) -> str:
    histories = follow(server)
    namespace, _, name = lease.partition("/")
    found = make_account(histories, histories.leases[namespace, name], server.now)
    return text(found) + "".join(f"\nLATEST {line.text}" for line in list_latest(found))


@pytest.mark.parametrize("follow", [follow_log, follow_both, follow_metadata], ids=["log", "both", "metadata"])
def test_who_keeps_the_lease_of_a_node_fresh_from_elsewhere_is_said(follow: View) -> None:
    output = explain(keep_fresh((KUBELET, 7), (THIEF, 3)), follow)
    assert f": {MOVED}\n" in output
    assert f"LATEST {MOVED}" in output


def test_the_headline_and_the_advice_say_it() -> None:
    output = explain(keep_fresh((KUBELET, 7), (THIEF, 3)))
    assert output.startswith(f"heartbeat of n1, seen 5 s ago, {FROM_THIEF} since 11:07:50Z\n")
    assert "ADVICE Find out what writes as system:node:n1 from 10.9.9.9 since 11:07:50Z: unless that is" in output
    assert "To see the addresses of the node: kubectl describe node n1" in output


def test_a_thief_that_writes_between_the_writes_of_the_kubelet_follows_the_last_of_these() -> None:
    output = explain(keep_fresh((KUBELET, 4), (THIEF, 1), (KUBELET, 2), (THIEF, 3)))
    assert MOVED in output


@pytest.mark.parametrize(
    "runs",
    [
        ((KUBELET, 7), (THIEF, 2)),
        ((KUBELET, 7), (("10.9.9.9", "kubelet/v1.37.2"), 5)),
        ((KUBELET, 7), (("10.0.0.7", "curl/8.5.0"), 5)),
        ((THIEF, 7), (KUBELET, 5)),
        ((KUBELET, 7), (THIEF, 4), (KUBELET, 1)),
        ((KUBELET, 7), (THIEF, 3), (("10.9.9.9", "wget/1.2"), 1)),
        ((KUBELET, 7), (("10.0.0.7", "wget/1.2"), 1), (THIEF, 4)),
        ((THIEF, 9),),
        ((KUBELET, 7), (("10.9.9.9", ""), 4)),
    ],
    ids=[
        "too few",
        "a kubelet with another address",
        "the same address",
        "the kubelet came back",
        "the kubelet is heard again",
        "several programs there",
        "several programs before",
        "from one address",
        "without a user agent",
    ],
)
def test_what_may_be_the_node_itself_is_not_told(runs: tuple[tuple[Source, int], ...]) -> None:
    output = explain(keep_fresh(*runs))
    assert "no longer shows that the node works" not in output
    assert " since " not in output.partition("\n")[0]


def test_a_kubelet_whose_updates_conflict_is_heard() -> None:
    output = explain(keep_fresh((KUBELET, 7), (THIEF, 4), (KUBELET, 1), is_refused=True))
    assert "no longer shows" not in output


@pytest.mark.parametrize(
    ("lease", "user"), [("shop/n1", "system:node:n1"), (NODE, "system:node:n2")], ids=["no node's", "another user"]
)
def test_other_leases_and_users_are_not_those_of_the_kubelet(lease: str, user: str) -> None:
    assert "no longer shows" not in explain(keep_fresh((KUBELET, 7), (THIEF, 4), lease=lease, user=user), lease=lease)


def test_a_lease_that_was_deleted_shows_nothing_anyway() -> None:
    server = keep_fresh((KUBELET, 7), (THIEF, 4))
    server.delete(NODE)
    assert "no longer shows" not in explain(server)


def lose_leader(*, moved_at: int) -> str:
    """A leader of node n1 falls silent after 100 s; what is said of its node, whose lease has another source then."""
    server = FakeServer(nodes={"db-0": "n1"})
    db, *others = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    node = server.elector("n1", NODE, user="system:node:n1", pod="", duration=40)
    start = server.now
    together(100, db, *others, node)
    together(40, *others, node)
    server.elector("db-1", "shop/db").take()
    together(20, *others, node)
    for event in server.log:
        at = event["stageTimestamp"]
        if event["user"]["username"] == "system:node:n1":
            is_kubelet = at < format_micro_time(start + moved_at * SECOND)
            address, agent = KUBELET if is_kubelet else THIEF
            put("sourceIPs", [address])(event)
            put("userAgent", agent)(event)
    (lost,) = (one for one in find_claims(account(follow_log(server), server.now)) if one.check == "leader-lost")
    return lost.message


def test_a_lease_of_a_node_that_is_written_from_elsewhere_is_no_sign_of_the_node() -> None:
    message = lose_leader(moved_at=90)
    said = f"; that of its node was renewed since 11:08:10Z {FROM_THIEF}, unlike before, so it does not show that the"
    assert said in message
    assert "among them that of its node" not in message


@pytest.mark.parametrize("moved_at", [145, 1000], ids=["afterwards", "never"])
def test_a_lease_of_a_node_that_its_kubelet_renewed_then_is_one(moved_at: int) -> None:
    message = lose_leader(moved_at=moved_at)
    assert message.endswith("3 other leases were renewed on time, among them that of its node.")
