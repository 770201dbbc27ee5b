"""Advice about leases of nodes: a kubelet runs outside pods, and no one else takes its lease."""

from typing import Any

import pytest

from tests.claims.accounts import text
from tests.factories import put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, advise, cluster_of, follow_both, follow_log, follow_watch
from tests.inputs.test_related_writes import write_event
from webhook.admission.rules.change import GARBAGE_COLLECTOR
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.commands import make_command_for_pod_of_holder
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.request import NODE_CONTROLLER
from webhook.kubernetes.times import format_micro_time

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
    advice = advise(make_account(histories, histories.leases[NODE], server.now))
    assert "describe pod" not in advice
    assert "get pods" not in advice


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
@pytest.mark.parametrize("name", ["n1", "worker-3"], ids=["named like no pod", "named like a pod"])
@pytest.mark.parametrize(("renewals", "silence"), [(0, 0), (1, 5), (6, 67)], ids=["created", "held", "late"])
def test_a_node_is_named_whatever_its_name_looks_like(follow: Any, name: str, renewals: int, silence: int) -> None:
    server = FakeServer()
    node = server.elector(name, f"kube-node-lease/{name}", user=f"system:node:{name}", retry=10, duration=40)
    node.identity, node.pod = name, ""
    node.take()
    node.lead(10 * renewals)
    server.wait(silence)
    if silence:
        node.renew()
    histories = follow(server)
    answer = make_account(histories, histories.leases["kube-node-lease", name], server.now)
    advice = [advise(answer), *(f"{one.advice} {one.fix}" for one in answer.findings if isinstance(one, Claim))]
    assert not [one for one in advice if "pod" in one or "''" in one]
    assert all(f"kubectl describe node {name}" in one for one in advice if "describe" in one)


def explain_refusals(user: str, *, code: int, impersonator: str = "") -> str:
    """Return the advice beside four writes of a user that were refused to it, while the kubelet of n1 renews."""
    server = silent(0)
    other = server.elector("m1", "kube-node-lease/n1", user=user, pod="")
    for _ in range(4):
        server.wait(2)
        if code == 401:
            other.fail_unauthenticated()
        else:
            other.fail(code, f'leases.coordination.k8s.io "n1" is forbidden: User "{user}" cannot update resource')
        if impersonator:
            server.log[-1] |= {"user": {"username": impersonator}, "impersonatedUser": {"username": user}}
    histories = follow_log(server)
    findings = make_account(histories, histories.leases[NODE], server.now).findings
    (sentence,) = [
        f"{one.advice} {one.fix}" for one in findings if isinstance(one, Claim) and one.check == "write-refused"
    ]
    return sentence


def test_who_asks_for_the_lease_of_another_node_is_to_be_looked_at() -> None:
    advice = explain_refusals("system:node:m1", code=403)
    assert "credentials may be in other hands" in advice
    assert advice.endswith("kubectl describe node m1")


@pytest.mark.parametrize(
    ("user", "impersonator"),
    [(KUBELET, ""), ("system:node:m1", "alice@example.org")],
    ids=["its own kubelet", "somebody who acts as the kubelet of another node"],
)
def test_no_credentials_of_another_node_were_used(user: str, impersonator: str) -> None:
    advice = explain_refusals(user, code=403, impersonator=impersonator)
    assert "other hands" not in advice
    assert advice.endswith("kubectl describe node n1")


def test_whose_requests_were_refused_without_credentials_is_not_known() -> None:
    advice = explain_refusals("", code=401)
    assert "it is not known who sent them" in advice
    assert advice.endswith("kubectl describe node n1")


def test_the_command_for_its_holder_describes_the_node() -> None:
    assert make_command_for_pod_of_holder("kube-node-lease", "n1") == "kubectl describe node n1"


@pytest.mark.parametrize(
    ("follow", "others", "command"),
    [
        (follow_watch, 2, "lease-webhook why kube-node-lease/n1 --input AUDIT-LOG"),
        (follow_watch, 0, "kubectl describe node n1"),
        (follow_log, 2, "kubectl describe node n1"),
    ],
    ids=["with others", "alone", "with others in a log"],
)
def test_a_node_that_was_silent_with_others_need_not_have_failed(follow: View, others: int, command: str) -> None:
    server = FakeServer()
    rest, electors = [server.elector(f"m{number}", f"shop/m{number}") for number in range(5)], []
    for number in range(1, 5):
        name = f"n{number}"
        node = server.elector(name, f"kube-node-lease/{name}", user=f"system:node:{name}", retry=10, duration=40)
        node.identity, node.pod = name, ""
        electors.append(node)
    for at in range(30):
        for number, node in enumerate(electors):
            if not (10 <= at < 18 and number <= others):
                (node.renew if node.lease in server.leases else node.take)()
        together(10, *rest)
    histories = follow(server)
    output = text(make_account(histories, histories.leases[NODE], server.now))
    assert ("Heartbeats of others stopped at the same time: look for what they share." in output) is (
        "AUDIT-LOG" in command
    )
    assert command in output


def refuse_a_while(*, who: str = KUBELET, seconds: int = 80, after: int = 2) -> FakeServer:
    """A kubelet that is refused between renewals too few to show how often it renews; its node seems not ready."""
    server = FakeServer()
    node = server.elector("n1", "kube-node-lease/n1", user=KUBELET, retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    node.take()
    user, node.user = node.user, who
    policy = "leases.coordination.k8s.io \"n1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding"
    for _ in range(seconds // 10):
        server.wait(10)
        node.fail(403, policy)
    node.user = user
    about = put("objectRef", {"resource": "nodes", "name": "n1", "apiVersion": "v1", "subresource": "status"})
    by, at = put("user.username", NODE_CONTROLLER), put("stageTimestamp", format_micro_time(server.now - 9_000_000))
    server.log.append(write_event("nodes", "", about, put("verb", "patch"), by, at))
    for _ in range(after):
        server.wait(10)
        node.renew()
    return server


@pytest.mark.parametrize(
    ("server", "is_told", "is_over"),
    [
        (refuse_a_while(), True, True),
        (refuse_a_while(seconds=20), False, False),
        (refuse_a_while(who="system:node:n2"), False, False),
        (refuse_a_while(after=0), False, False),
    ],
    ids=["it expired", "it lasted", "another one was refused", "it goes on"],
)
def test_of_a_lease_that_is_seldom_renewed_a_refusal_tells_that_it_expired(
    server: FakeServer, *, is_told: bool, is_over: bool
) -> None:
    histories = follow_log(server)
    output = text(make_account(histories, histories.leases[NODE], server.now))
    assert ("the lease, which lasts 40 s, was not renewed for 1 min 30 s" in output) is is_told
    assert ("ADVICE The refusals have ended." in output) is is_over


def test_what_was_done_to_a_node_whose_lease_expired_so_is_listed() -> None:
    server = refuse_a_while()
    histories = follow_log(server)
    output = text(make_account(histories, histories.leases[NODE], server.now))
    assert "Node n1 was given another status by kube-system/node-controller" in output


def delete_node(name: str, *, lease: str = "kube-node-lease/n1", is_back: bool = True, wait: float = 60) -> FakeServer:
    """A kubelet whose Node, or another one, is deleted, and its lease with it; the kubelet creates that again."""
    server = FakeServer()
    node = server.elector("n1", lease, user=KUBELET, retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    node.lead(60)
    about = put("objectRef", {"resource": "nodes", "name": name, "apiVersion": "v1"})
    server.log.append(write_event("nodes", "", about, put("stageTimestamp", format_micro_time(server.now))))
    server.wait(1)
    server.delete(lease, GARBAGE_COLLECTOR)
    server.wait(wait)
    if is_back:
        node.lead(60)
    return server


def explain_deleted_node(server: FakeServer, key: tuple[str, str] = NODE) -> str:
    histories = follow_log(server)
    answer = make_account(histories, histories.leases[key], server.now)
    return f"{text(answer)}\n" + "\n".join(line.text for line in list_latest(answer))


def test_the_deletion_of_the_node_of_a_lease_is_listed_and_the_node_is_looked_at() -> None:
    advice = explain_deleted_node(delete_node("n1"))
    assert advice.count("Node n1 was deleted by alice@example.org") == 2
    assert "a request at 11:07:40Z asked for the deletion of its Node. See whether the Node still has" in advice
    assert "kubectl describe node n1" in advice


def test_while_the_lease_of_a_deleted_node_is_gone_the_node_is_looked_for() -> None:
    advice = explain_deleted_node(delete_node("n1", is_back=False))
    assert "Kubernetes deletes the lease of a node with its Node." in advice
    assert "lease-webhook writers" not in advice


def test_the_deletion_of_another_node_is_left_out() -> None:
    advice = explain_deleted_node(delete_node("n2"))
    assert "Node n2" not in advice
    assert "asked for the deletion of its Node" not in advice


def test_a_lease_that_is_named_like_a_node_elsewhere_has_no_node() -> None:
    advice = explain_deleted_node(delete_node("n1", lease="shop/n1"), ("shop", "n1"))
    assert "Node n1" not in advice
    assert "describe node" not in advice


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
@pytest.mark.parametrize(
    ("lease", "owners", "is_of_node"),
    [
        ("kube-node-lease/n1", [], True),
        ("shop/n1", [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}], True),
        ("shop/n1", [{"apiVersion": "v1", "kind": "Pod", "name": "n1", "uid": "u"}], False),
        ("shop/n1", [], False),
    ],
    ids=["of a node, by its namespace", "of a node, by its owner", "of a pod", "without an owner"],
)
def test_a_lease_that_goes_with_its_node_is_not_created_again(
    follow: Any, lease: str, owners: list[Any], *, is_of_node: bool
) -> None:
    server = FakeServer()
    node = server.elector("n1", lease, user=KUBELET, retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    node.lead(60)
    for _, _, document in server.events:
        document["metadata"]["ownerReferences"] = owners
    server.delete(lease)
    histories = follow(server)
    namespace, _, name = lease.partition("/")
    advice = advise(make_account(histories, histories.leases[namespace, name], server.now))
    is_known = follow is follow_log  # who deleted it: a kubelet creates it again after anyone else
    assert ("its Node is probably gone: Kubernetes deletes the lease" in advice) is (is_of_node and not is_known)
    assert ("describe node n1" in advice) is (is_of_node and not is_known)
    assert ("Most clients create it" in advice) is not (is_of_node and not is_known)


def delete_lock(
    *, uid: str = "u", wait: float = 4, is_beat_deleted: bool = False, is_first_seen_later: bool = False
) -> FakeServer:
    """A server on which a lock that Node n1 owns is deleted while n1, of uid u, renews its heartbeat."""
    server = FakeServer()
    node = server.elector("n1", "kube-node-lease/n1", user=KUBELET, retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    if not is_first_seen_later:
        node.lead(60)
    lock = server.elector("maintenance", "shop/node-n1", duration=3600)
    lock.take()
    server.wait(20)
    server.delete("shop/node-n1", lock.user, lock.pod)
    server.wait(wait)
    if is_beat_deleted:
        server.delete("kube-node-lease/n1")
    if wait:
        node.lead(10)
    for _, _, document in server.events:
        metadata = document["metadata"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid if metadata["name"] == "node-n1" else "u"}
        metadata["ownerReferences"] = [owner]
        for entry in metadata["managedFields"]:
            entry["fieldsV1"]["f:metadata"] = {"f:ownerReferences": {}}
    return server


GOES_ON = "Its owner, Node n1, renewed its heartbeat at 11:08:1"


@pytest.mark.parametrize(
    ("server", "goes_on"),
    [
        pytest.param(delete_lock(), True, id="its heartbeat goes on"),
        pytest.param(delete_lock(wait=0), False, id="no heartbeat was seen since"),
        pytest.param(delete_lock(uid="v"), False, id="a Node of another uid"),
        pytest.param(delete_lock(is_beat_deleted=True), False, id="its heartbeat was deleted, too"),
        pytest.param(delete_lock(is_first_seen_later=True), False, id="its heartbeat was created later"),
    ],
)
def test_a_lease_was_not_deleted_with_a_node_whose_heartbeat_goes_on(server: FakeServer, *, goes_on: bool) -> None:
    histories = follow_watch(server)
    account = make_account(histories, histories.leases["shop", "node-n1"], server.now)
    (deleted,) = (one for one in account.findings if one.check == "lease-deleted")
    assert isinstance(deleted, Claim)
    for advice in (advise(account), deleted.advice):
        assert (GOES_ON in advice) is goes_on
    assert ("its Node is probably gone" in advise(account)) is not goes_on
    assert ("once none of its owners exists; this one named Node n1" in deleted.advice) is not goes_on


def test_the_clock_of_a_kubelet_does_not_say_that_its_node_goes_on() -> None:
    server = delete_lock()
    histories = cluster_of(server.watch(managed_fields=False))
    account = make_account(histories, histories.leases["shop", "node-n1"], server.now)
    assert "its Node is probably gone" in advise(account)


def test_of_several_owners_one_that_goes_on_is_enough() -> None:
    server = delete_lock()
    gone = {"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": "v"}
    for _, _, document in server.events:
        document["metadata"]["ownerReferences"].insert(0, gone)
    histories = follow_watch(server)
    assert GOES_ON in advise(make_account(histories, histories.leases["shop", "node-n1"], server.now))


def come_back(name: str = "n2", *, pod: str = "", wait: float = 13, after: float = 120, more: int = 0) -> FakeServer:
    """A server on which the kubelet of n1 falls silent, and that of another node writes then; `pod` has an address."""
    server = silent(0)
    server.wait(wait)
    nodes = []
    for number in range(1 + more):
        other = f"{name}{number or ''}"
        node = server.elector(other, f"kube-node-lease/{other}", user=f"system:node:{other}", retry=10, duration=40)
        node.identity, node.pod = other, ""
        node.take()
        nodes.append(node)
    begun = len(server.log)
    for _ in range(int(after // 10)):
        server.wait(10)
        for node in nodes:
            node.renew()
    for event in server.log[begun:] if pod else ():
        event["sourceIPs"] = [pod]
    return server


def explain_node(server: FakeServer) -> str:
    histories = follow_log(server)
    answer = make_account(histories, histories.leases[NODE], server.now)
    return text(answer) + "".join(one.fix for one in answer.findings)


def test_a_node_that_writes_from_the_address_of_a_silent_one_may_be_that_machine() -> None:
    output = explain_node(come_back())
    assert "Same address: node n2 has renewed its lease since " in output
    assert (
        "which was the address of this node: the machine may run under that name now, or the address was given to"
        in output
    )
    assert "ADVICE Its machine may go on as node n2: see there which name its kubelet uses" in output
    assert "kubectl get nodes n1 n2 -o wide" in output
    assert "describe node n1" not in output


@pytest.mark.parametrize(
    "server",
    [come_back(pod="10.9.9.9"), come_back(more=1), come_back(wait=-30), come_back(after=0), silent(120)],
    ids=["another address", "several at that address", "it was there before", "it fell silent, too", "no other node"],
)
def test_a_silent_node_is_described_unless_one_other_writes_from_its_address_since(server: FakeServer) -> None:
    server.wait(90 if len(server.leases) == 2 and server.log[-1]["verb"] == "create" else 0)
    output = explain_node(server)
    assert "Same address" not in output
    assert "kubectl describe node n1" in output


def test_a_node_that_reports_is_no_other_one() -> None:
    assert "Same address" not in explain_node(come_back(after=20))


def test_a_kubelet_with_two_addresses_has_none_that_says_something() -> None:
    server = come_back()
    server.log[3]["sourceIPs"] = ["10.9.9.9"]
    assert "Same address" not in explain_node(server)


def renewed_by_another_meanwhile(every: int = 10, last: int = 0) -> FakeServer:
    """The kubelet of n1 is silent for two minutes, in which an agent on another node renews its lease."""
    server = silent(0)
    node = server.elector("n1", "kube-node-lease/n1", user=KUBELET, retry=10, duration=40)
    agent = server.elector("hub-m1", "kube-node-lease/n1", user="system:serviceaccount:kube-system:hub", duration=40)
    node.identity = agent.identity = "n1"
    node.pod = ""
    for _ in range(100 // every):
        server.wait(every)
        agent.renew()
    server.wait(20 + last)
    for _ in range(4):
        node.renew()
        server.wait(10)
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "both"])
@pytest.mark.parametrize(
    ("server", "expired"),
    [
        (renewed_by_another_meanwhile(), ""),
        (renewed_by_another_meanwhile(every=50), "11:08:20Z: the lease expired, and no one took it"),
        (renewed_by_another_meanwhile(last=30), "11:10:00Z: the lease expired, and no one took it"),
    ],
    ids=["in time", "too rarely", "and stopped too early"],
)
def test_a_lease_that_another_renews_in_place_of_its_holder_lives(
    follow: View, server: FakeServer, expired: str
) -> None:
    histories = follow(server)
    output = text(make_account(histories, histories.leases[NODE], server.now))
    assert [line for line in output.splitlines() if "the lease expired" in line] == ([expired] if expired else [])


def test_who_renews_in_place_of_a_silent_kubelet_leads_nothing() -> None:
    server = renewed_by_another_meanwhile()
    histories = follow_log(server)
    output = text(make_account(histories, histories.leases[NODE], server.now))
    assert "as if each led" not in output
    renewed = "from 11:07:50Z to 11:09:20Z kube-system/hub from pod hub-m1 renewed it as n1 (10 renewals)"
    assert f"{renewed}, while system:node:n1 did not, from 11:07:40Z to 11:09:40Z" in output
    assert "longest gap between two by the same holder: 20 s" in output


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (
            "",
            "2 of 3 other leases due at least twice were renewed on time, and kube-node-lease/n1 was not renewed again",
        ),
        ("n1", "2 other leases were renewed on time"),
        (
            "n2",
            "2 of 3 other leases due at least twice were renewed on time, and kube-node-lease/n1 was not renewed again",
        ),
    ],
    ids=["its node is there", "its node was deleted", "another node was deleted"],
)
def test_the_lease_of_a_node_that_was_deleted_is_not_late(gone: str, said: str) -> None:
    server = FakeServer()
    holder, *rest = (server.elector(f"{name}-0", f"shop/{name}") for name in ("db", "mail", "cart"))
    node = server.elector("n1", "kube-node-lease/n1", user=KUBELET, retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    for _ in range(6):
        together(10, holder, *rest)
        (node.renew if "kube-node-lease/n1" in server.leases else node.take)()
    together(4, *rest)
    if gone:
        about, at = put("objectRef", {"resource": "nodes", "name": gone}), format_micro_time(server.now)
        server.log.append(write_event("nodes", "", about, put("stageTimestamp", at), put("verb", "delete")))
    together(60, *rest)
    server.elector("db-1", "shop/db").take()
    together(4, *rest)
    histories = follow_log(server)
    found = make_account(histories, histories.leases["shop", "db"], server.now)
    assert said in text(found)
