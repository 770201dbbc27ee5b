"""A lease that names a node as its holder, which something else renews: if that node ends, it is where to look.

Source: the recorded incident of a volume whose share manager moves to another node within seconds.
"""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, follow_both, follow_log, follow_watch
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims

VIEWS = pytest.mark.parametrize("follow", [follow_log, follow_watch, follow_both], ids=["log", "watch", "both"])
NODE = ("n1", "kube-node-lease/n1")
USER = "system:serviceaccount:shop:manager"


def fail_over(
    *,
    beats: int = 6,
    later: int = 0,
    during: int = 0,
    holder: str = "n1",
    node: str = "",
    is_taken: bool = True,
    after: float = 60,
    is_alone: bool = False,
) -> FakeServer:
    """A lease of 7 s that a pod renews as n1, until that node ends; another pod writes n2 into it.

    The node has so many heartbeats until then, `during` that time, and `later`; `node` is that of the pod by its token.
    Another node is heard as well, unless it `is_alone`.
    """
    server = FakeServer(nodes={"share-1": node, "share-2": node})
    share = server.elector("share-1", "shop/db", user=USER, duration=7)
    second = server.elector("share-2", "shop/db", user=USER, duration=7)
    share.identity, second.identity = holder, "n2"
    others = [server.elector(f"{one}-0", f"shop/{one}") for one in ("mail", "cart")]
    if not is_alone:
        others.append(server.elector("n9", "kube-node-lease/n9", user="system:node:n9", pod="", duration=40))
    name, lease = NODE
    kubelet = server.elector(name, lease, user=f"system:node:{name}", pod="", duration=40)
    kubelet.identity = name

    def beat(times: int, *electors: object) -> None:
        for _ in range(times):
            together(10, *others, *electors)  # type: ignore[arg-type]
            (kubelet.renew if lease in server.leases else kubelet.take)()

    beat(beats, share)
    together(4, share, *others)
    beat(during)
    together(4 if during else 14, *others)
    if is_taken:
        second.take()
        together(2, second, *others)
    together(0 if later else after, *others, *([second] if is_taken else []))
    beat(later, *([second] if is_taken else []))
    return server


def find_loss(server: FakeServer, follow: View = follow_log) -> Claim:
    (claim,) = (one for one in find_claims(account(follow(server), server.now)) if one.check == "leader-lost")
    return claim


@VIEWS
@pytest.mark.parametrize("beats", [1, 6], ids=["one heartbeat", "several"])
def test_a_node_that_ended_with_its_lease_is_named_and_looked_at_first(follow: View, beats: int) -> None:
    loss = find_loss(fail_over(beats=beats), follow)
    last = "11:06:50Z" if beats == 1 else "11:07:40Z"
    assert loss.message.endswith(
        f"; node n1, which the lease named as its holder, has not renewed its own since {last}."
    )
    assert loss.advice == "See node n1, which the lease named as its holder, first:"
    assert loss.fix == "kubectl describe node n1"


@VIEWS
def test_no_other_duration_is_advised_for_a_lease_whose_holder_is_a_node(follow: View) -> None:
    server = fail_over()
    (other,) = (server.elector("n2", "kube-node-lease/n2", user="system:node:n2", pod="", duration=40),)
    other.take()
    assert "timing-tight" not in text(account(follow(server), server.now))
    server = fail_over(holder="share-1_1")
    assert "timing-tight" in text(account(follow(server), server.now))


def test_a_node_that_came_back_did_not_renew_meanwhile() -> None:
    loss = find_loss(fail_over(later=6))
    assert "; node n1, which the lease named as its holder, did not renew its own for most of it." in loss.message


def test_a_node_that_went_on_is_not_where_to_look() -> None:
    loss = find_loss(fail_over(during=6, later=6))
    assert "; node n1, which the lease named as its holder, renewed its own." in loss.message
    assert "node" not in loss.advice


@pytest.mark.parametrize(
    ("holder", "node"), [("share-1_1", ""), ("n1", "n3")], ids=["no node", "its pod ran on another node"]
)
def test_a_holder_that_is_no_node_is_a_pod(holder: str, node: str) -> None:
    loss = find_loss(fail_over(holder=holder, node=node))
    assert "named as its holder" not in f"{loss.message} {loss.advice}"


def test_a_token_that_names_the_node_says_more_than_the_name_of_the_holder() -> None:
    loss = find_loss(fail_over(node="n1"))
    assert "the lease of its node, n1, was not renewed" in loss.message
    assert "named as its holder" not in loss.message


def test_of_one_heartbeat_just_before_nothing_is_known() -> None:
    loss = find_loss(fail_over(beats=1, after=4))
    assert "named as its holder" not in loss.message


@VIEWS
def test_a_node_that_is_named_is_looked_at_if_nobody_took_the_lease(follow: View) -> None:
    output = text(account(follow(fail_over(is_taken=False)), fail_over(is_taken=False).now))
    assert output.endswith("kubectl describe node n1")


def test_of_a_log_that_may_leave_out_heartbeats_one_of_them_says_nothing() -> None:
    loss = find_loss(fail_over(beats=1, is_alone=True))
    assert "named as its holder" not in loss.message


def test_a_node_that_was_heard_only_later_may_be_new() -> None:
    loss = find_loss(fail_over(beats=0, during=1, later=6))
    assert "named as its holder" not in loss.message
