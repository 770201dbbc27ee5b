"""Agents outside of pods, whose tokens are bound to the Node of their machine."""

from typing import Final

import pytest
from msgspec.structs import replace

from tests.claims.accounts import account, text
from tests.claims.test_related_writes import log_absence, log_write
from tests.factories import Tweak, put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.claim import Claim
from webhook.analysis.inputs.items import Writer

USER: Final = "system:serviceaccount:shop:db"
NODE: Final = "authentication.kubernetes.io/node-name"
NODES: Final = ("rack-a-01", "rack-c-01")
HIDDEN: Final = (put("level", "Metadata"), put("responseObject", None))
DELETED: Final = "its token is bound to Node rack-a-01, which was deleted at {} by alice@example.org{}, and is not "
DOUBT: Final = " (unless that was a dry run, which the log does not show)"


def log_node_write(server: FakeServer, *tweaks: Tweak, name: str = "rack-a-01") -> None:
    log_write(server, "nodes", "", put("objectRef", {"resource": "nodes", "name": name}), *tweaks)


def lock_out(*tweaks: Tweak, name: str = "rack-a-01", is_back: bool = False, has_nodes: bool = True) -> FakeServer:
    """A holder whose token is not accepted any more after a Node was deleted, and an agent that takes the lease."""
    server = FakeServer()
    first, second = (server.elector(node, "shop/db", user=USER, pod="") for node in NODES)
    first.identity, second.identity = (f"{node}_034e9f00-da1c-4180-ab73-6a5f5a18df21" for node in NODES)
    mail = server.elector("mail-0", "shop/mail")
    together(20, first, mail)
    log_node_write(server, put("verb", "delete"), *tweaks, name=name)
    first.lead(4)
    if is_back:
        log_node_write(server, put("verb", "create"), put("responseStatus.code", 201), name=name)
    before = len(server.log)
    for _ in range(9):
        server.wait(2)
        first.fail(401, "Unauthorized")
        mail.renew()
    together(10, second, mail)
    for _ in range(12):
        first.fail(401, "Unauthorized", verb="get")
        together(2, second, mail)
    for number, event in enumerate(server.log):
        is_refused = event["responseStatus"]["code"] == 401
        if is_refused or event["user"].get("username") == USER:
            node, address = (NODES[0], "10.0.0.1") if number < before or is_refused else (NODES[1], "10.0.0.2")
            event["user"] |= {"extra": {NODE: [node]} if has_nodes else {}}
            event["sourceIPs"], event["userAgent"] = [address], "agent/v1"
            event["user"] = {} if is_refused else event["user"]
    return server


@pytest.mark.parametrize(
    ("writer", "node"),
    [
        (Writer(USER, node="n1"), "n1"),
        (Writer(USER, "agent-0", "n1"), ""),
        (Writer(USER, node="n1", uid="u-1"), ""),
        (Writer(USER, node="n1", impersonator="alice"), ""),
    ],
    ids=["a node", "a pod", "a uid", "somebody acts as it"],
)
def test_a_token_of_no_pod_is_of_the_node_that_it_names(writer: Writer, node: str) -> None:
    assert writer.process.bound_node == node
    assert writer.is_same(replace(writer, node="n2")) is not bool(node)


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def test_a_holder_whose_token_is_bound_to_a_deleted_node_needs_another_one() -> None:
    output = explain(lock_out())
    assert "9 writes answered with 401 (Unauthorized), from its address and program" in output
    assert DELETED.format("11:07:00Z", "") in output
    assert "shop/db with a token for node rack-c-01" in output
    assert "is bound to Node rack-a-01, and to no pod. Once that Node is deleted, also if another one" in output
    assert "kubectl describe node rack-a-01" in output
    assert "describe pod" not in output
    assert "status.podIP" not in output


def test_an_address_from_which_a_token_of_a_node_was_accepted_is_that_of_no_pod() -> None:
    server = lock_out()
    (refused,) = (one for one in account(follow_log(server), server.now).findings if one.check == "read-refused")
    assert isinstance(refused, Claim)
    assert refused.advice.endswith("Tokens that were accepted from there are bound to a Node. To see that:")
    assert refused.fix == "kubectl describe node rack-a-01"


@pytest.mark.parametrize(("is_back", "doubt"), [(False, DOUBT), (True, "")], ids=["unknown", "created again"])
def test_a_deletion_of_a_node_may_have_been_a_dry_run_unless_it_was_created_again(*, is_back: bool, doubt: str) -> None:
    assert DELETED.format("11:07:00Z", doubt) in explain(lock_out(*HIDDEN, is_back=is_back))


def test_a_deletion_of_a_node_that_was_not_found_later_was_no_dry_run() -> None:
    server = lock_out(*HIDDEN)
    log_absence(server, put("objectRef.name", NODES[0]))
    assert DELETED.format("11:07:00Z", "") in explain(server)


@pytest.mark.parametrize(
    "server",
    [lock_out(name="rack-b-01"), lock_out(put("verb", "patch"))],
    ids=["another node", "it was not deleted"],
)
def test_without_the_deletion_of_its_node_why_a_token_is_not_accepted_is_not_said(server: FakeServer) -> None:
    output = explain(server)
    assert "which was deleted" not in output
    assert "9 writes answered with 401 (Unauthorized), from its address and program" in output
    assert "kubectl describe node rack-a-01" in output


def test_tokens_without_a_node_do_not_tell_agents_apart() -> None:
    output = explain(lock_out(has_nodes=False))
    assert "bound to Node" not in output
    assert "with a token for node" not in output
