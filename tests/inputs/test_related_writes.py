"""Writes of an audit log to objects that leaders depend on: which are read, and which are left out."""

import json
from typing import Any

import pytest

from tests.factories import Document, Tweak, changed, drop, put
from tests.history.fake_server import START
from tests.inputs.reading import read
from webhook.analysis.inputs.audit_log import may_say_something
from webhook.analysis.inputs.items import LogEnd, RelatedWrite, Writer
from webhook.analysis.inputs.related_writes import KINDS
from webhook.kubernetes.times import format_micro_time

ALICE = "alice@example.org"
RIGHTS = "rbac.authorization.k8s.io"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


def write_event(kind: str = "rolebindings", group: str = "rbac.authorization.k8s.io", *tweaks: Tweak) -> Document:
    """An event about the deletion of a RoleBinding, or of another object, that was accepted."""
    event: Document = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "stage": "ResponseComplete",
        "requestURI": f"/apis/{group}/v1/namespaces/shop/{kind}/db",
        "verb": "delete",
        "user": {"username": ALICE},
        "objectRef": {"resource": kind, "namespace": "shop", "name": "db", "apiGroup": group, "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "responseObject": {"kind": "Status", "apiVersion": "v1"},
        "requestReceivedTimestamp": format_micro_time(START - 4000),
        "stageTimestamp": format_micro_time(START),
    }
    return changed(event, *tweaks)


def read_events(*events: Document) -> list[Any]:
    lines = b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in events)
    return [item for item in read("audit.log", [lines]) if not isinstance(item, LogEnd)]


def test_a_deletion() -> None:
    expected = RelatedWrite(
        at=START,
        kind="RoleBinding",
        namespace="shop",
        name="db",
        verb="deleted",
        writer=Writer(ALICE),
        received=START - 4000,
    )
    assert read_events(write_event()) == [expected]


@pytest.mark.parametrize(
    ("kind", "group", "tweaks", "what"),
    [
        ("deployments", "apps", (put("verb", "patch"), put("objectRef.subresource", "scale")), "Deployment scaled"),
        ("statefulsets", "apps", (put("verb", "update"),), "StatefulSet updated"),
        ("resourcequotas", "", (put("verb", "patch"),), "ResourceQuota updated"),
        ("serviceaccounts", "", (), "ServiceAccount deleted"),
        ("clusterroles", "rbac.authorization.k8s.io", (put("verb", "create"),), "ClusterRole created"),
        (
            "validatingwebhookconfigurations",
            "admissionregistration.k8s.io",
            (put("verb", "update"),),
            "ValidatingWebhookConfiguration updated",
        ),
        ("flowschemas", "flowcontrol.apiserver.k8s.io", (put("verb", "patch"),), "FlowSchema updated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_kind_of_object(kind: str, group: str, tweaks: tuple[Tweak, ...], what: str) -> None:
    (item,) = read_events(write_event(kind, group, *tweaks))
    assert isinstance(item, RelatedWrite)
    assert f"{item.kind} {item.verb}" == what


def lay_out(event: Document, form: str) -> bytes:
    """A log of one event as an API server writes it, as a tool with spaces does, or of both, one after another."""
    compact = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    spaced = json.dumps(event).encode() + b"\n"
    other = json.dumps(write_event("services", "", put("verb", "create")), separators=(",", ":")).encode() + b"\n"
    return {"compact": compact, "with spaces": spaced, "with spaces after compact": other + spaced}[form]


@pytest.mark.parametrize("form", ["compact", "with spaces", "with spaces after compact"])
@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
@pytest.mark.parametrize(("group", "resource"), KINDS, ids=lambda value: value)
def test_each_kind_of_object_is_found_in_each_form_of_a_log(group: str, resource: str, verb: str, form: str) -> None:
    log = lay_out(write_event(resource, group, put("verb", verb)), form)
    items = [item for item in read("audit.log", [log]) if not isinstance(item, LogEnd)]
    is_read = resource != "replicasets" or verb == "delete"
    assert [one.kind for one in items if isinstance(one, RelatedWrite)] == [KINDS[group, resource]] * is_read


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
@pytest.mark.parametrize(("group", "resource"), KINDS, ids=lambda value: value)
def test_reads_which_are_most_requests_are_not_decoded(group: str, resource: str, verb: str) -> None:
    assert not may_say_something(lay_out(write_event(resource, group, put("verb", verb)), "compact"))


def test_a_write_that_quotes_a_read_is_found() -> None:
    quoting = put("requestObject", {"data": {"verb": "get", "x": '"verb":"get"'}}), put("userAgent", '"verb":"get"')
    (item,) = read_events(write_event("configmaps", "", put("verb", "update"), *quoting))
    assert isinstance(item, RelatedWrite)


def test_what_only_quotes_a_kind_is_not_decoded() -> None:
    quoting = put("userAgent", '"resource":"configmaps"')
    service = write_event("services", "", put("verb", "create"), quoting)
    assert not may_say_something(lay_out(service, "compact"))
    assert may_say_something(lay_out(write_event("configmaps", "", put("verb", "create")), "compact"))


def test_a_namespace_is_in_no_namespace() -> None:
    (item,) = read_events(write_event("namespaces", ""))
    assert isinstance(item, RelatedWrite)
    assert item.namespace == ""


def test_a_deletion_of_which_a_log_shows_no_body_may_be_a_dry_run() -> None:
    hidden = put("level", "Metadata"), drop("responseObject")
    (found,) = read_events(write_event("roles", RIGHTS, *hidden))
    assert isinstance(found, RelatedWrite)
    assert not found.is_surely_not_dry_run


@pytest.mark.parametrize(
    "tweaks",
    [
        pytest.param(
            (put("requestURI", "/apis/x?dryRun=All"), put("requestObject", {"kind": "DeleteOptions"})),
            id="a deletion whose options are in its body, and not in its query",
        ),
        pytest.param(
            (put("verb", "patch"), put("requestObject", {"metadata": {"annotations": {"dryRun": "x"}}})),
            id="an annotation of that name",
        ),
        pytest.param(
            (put("verb", "update"), put("requestObject", {"dryRun": ["All"]})),
            id="options in the body of an update, which has none",
        ),
        pytest.param(
            (
                put("verb", "update"),
                put("user.username", "mallory"),
                put("impersonatedUser", {"username": "system:apiserver"}),
            ),
            id="somebody who acts as the API server",
        ),
    ],
)
def test_no_client_hides_what_it_wrote(tweaks: tuple[Tweak, ...]) -> None:
    (found,) = read_events(write_event("rolebindings", RIGHTS, *tweaks))
    assert isinstance(found, RelatedWrite)
    assert found.is_surely_not_dry_run


@pytest.mark.parametrize(
    ("act_as", "is_surely_not_dry_run"), [(None, True), ({"username": COLLECTOR}, False)], ids=["own", "as it"]
)
def test_what_kubernetes_deletes_it_deletes_in_earnest(act_as: Document | None, *, is_surely_not_dry_run: bool) -> None:
    own = put("user.username", COLLECTOR if act_as is None else "mallory")
    tweaks = own, put("impersonatedUser", act_as), put("level", "Metadata"), drop("responseObject")
    (found,) = read_events(write_event("rolebindings", RIGHTS, *tweaks))
    assert isinstance(found, RelatedWrite)
    assert found.is_surely_not_dry_run is is_surely_not_dry_run


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("responseStatus.code", 403), id="refused"),
        pytest.param(put("requestURI", "/apis/x?dryRun=All"), id="a dry run by its query"),
        pytest.param(put("requestObject", {"dryRun": ["All"]}), id="a dry run by its options"),
        pytest.param(put("verb", "get"), id="a read"),
        pytest.param(put("objectRef.subresource", "status"), id="its status"),
        pytest.param(drop("objectRef.name"), id="without a name"),
        pytest.param(put("stageTimestamp", "then"), id="at an unknown time"),
        pytest.param(put("objectRef.resource", "podsecuritypolicies"), id="of another kind"),
    ],
)
def test_what_changed_nothing_is_left_out(tweak: Tweak) -> None:
    assert read_events(write_event(*("rolebindings", "rbac.authorization.k8s.io"), tweak)) == []


def test_a_controller_that_writes_a_workload_all_the_time_is_left_out_unless_it_deletes() -> None:
    controller = put("user.username", "system:serviceaccount:kube-system:deployment-controller")
    assert read_events(write_event("deployments", "apps", put("verb", "update"), controller)) == []
    assert len(read_events(write_event("deployments", "apps", controller))) == 1


CONTROLLER = put("user.username", "system:serviceaccount:kube-system:node-controller")
KUBELET = put("user.username", "system:node:n1")
STATUS = put("objectRef.subresource", "status")
AS_CONTROLLER = put("impersonatedUser", {"username": "system:serviceaccount:kube-system:node-controller"})


@pytest.mark.parametrize(
    ("verb", "tweaks", "words"),
    [
        ("delete", (), "deleted"),
        ("patch", (), "updated"),
        ("update", (), "updated"),
        ("create", (), "created"),
        ("create", (KUBELET,), "created"),
        ("patch", (KUBELET,), ""),
        ("patch", (CONTROLLER,), "updated"),
        ("patch", (AS_CONTROLLER,), "updated"),
        ("update", (CONTROLLER, STATUS), "given another status"),
        ("patch", (CONTROLLER, STATUS), "given another status"),
        ("patch", (AS_CONTROLLER, STATUS), ""),
        ("patch", (KUBELET, STATUS), ""),
        ("patch", (STATUS,), ""),
    ],
)
def test_of_nodes_what_may_end_the_work_on_them_is_read(verb: str, tweaks: tuple[Tweak, ...], words: str) -> None:
    about = put("objectRef", {"resource": "nodes", "name": "n1", "apiVersion": "v1"})
    found = read_events(write_event("nodes", "", put("verb", verb), about, *tweaks))
    assert [one.verb for one in found if isinstance(one, RelatedWrite)] == [words for _ in range(1) if words]


DEBUGGED = (
    put("verb", "patch"),
    put("objectRef.subresource", "ephemeralcontainers"),
    put("requestObject", {"spec": {"ephemeralContainers": [{"command": ["gdb", "-p", "1"], "name": "debugger"}]}}),
)


def test_a_container_for_debugging_and_its_program_without_its_arguments() -> None:
    expected = RelatedWrite(
        at=START,
        kind="Pod",
        namespace="shop",
        name="db",
        verb="given an ephemeral container that runs gdb",
        writer=Writer(ALICE),
        received=START - 4000,
    )
    assert read_events(write_event("pods", "", *DEBUGGED)) == [expected]


@pytest.mark.parametrize(
    "sent",
    [
        None,
        {"spec": None},
        {"spec": {"ephemeralContainers": None}},
        {"spec": {"ephemeralContainers": [{"image": "gdb"}]}},
        {"spec": {"ephemeralContainers": [{"command": [1]}]}},
        {"spec": {"ephemeralContainers": [{"command": ["a b\n"]}]}},
        {"spec": {"ephemeralContainers": 1}},
    ],
    ids=["no request", "no spec", "no list", "no command", "a number", "what is no name of a program", "no object"],
)
def test_a_container_for_debugging_whose_program_is_not_shown(sent: Any) -> None:
    (found,) = read_events(write_event("pods", "", *DEBUGGED, put("requestObject", sent)))
    assert found.verb == "given an ephemeral container"


@pytest.mark.parametrize(
    "tweak",
    [
        put("responseStatus.code", 403),
        put("requestURI", "/api/v1/namespaces/shop/pods/db/ephemeralcontainers?dryRun=All"),
        put("verb", "get"),
        put("objectRef.resource", "widgets"),
        put("objectRef.apiGroup", "example.org"),
        drop("objectRef.name"),
        drop("stageTimestamp"),
    ],
    ids=["refused", "a dry run", "read", "of no pod", "of another group", "without a name", "without a time"],
)
def test_no_container_for_debugging_was_put_into_a_pod(tweak: Tweak) -> None:
    assert read_events(write_event("pods", "", *DEBUGGED, tweak)) == []


NOT_READY = {
    "status": {"conditions": [{"type": "PIDPressure", "status": "False"}, {"type": "Ready", "status": "False"}]}
}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "PIDPressure", "status": "False"}]}}
BY_KUBELET = put("user", {"username": "system:node:db"})
OF_NODE = (
    put("objectRef.subresource", "status"),
    put("verb", "patch"),
    put("sourceIPs", ["10.0.0.1", "10.0.0.7"]),
    put("userAgent", "kubelet/v1.37.1 (linux/amd64)"),
)


@pytest.mark.parametrize(
    ("tweaks", "words"),
    [
        ((), "which set Ready to False, from 10.0.0.7 with the user agent kubelet"),
        ((put("userAgent", "\u202ex"),), "which set Ready to False, from 10.0.0.7"),
    ],
    ids=["as it calls itself", "a name that is none"],
)
def test_a_node_that_says_that_it_is_not_ready(tweaks: tuple[Tweak, ...], words: str) -> None:
    (item,) = read_events(write_event("nodes", "", *OF_NODE, BY_KUBELET, put("requestObject", NOT_READY), *tweaks))
    assert (item.verb, item.name, item.change) == ("given another status", "db", words)


@pytest.mark.parametrize(
    "tweaks",
    [
        (put("requestObject", READY),),
        (put("requestObject", None),),
        (put("requestObject", {"status": '"Ready"'}),),
        (put("requestObject", {"status": {"conditions": "Ready"}}),),
        (put("requestObject", [{"type": "Ready"}]),),
        (put("sourceIPs", []),),
        (put("sourceIPs", ["a place"]),),
        (put("user", {"username": "system:node:other"}),),
        (put("impersonatedUser", {"username": "system:node:db"}), put("user", {"username": "alice"})),
    ],
    ids=[
        "it is ready",
        "not shown",
        "a text",
        "a text of conditions",
        "another form",
        "no address",
        "no address that is one",
        "another node",
        "who acts as a node",
    ],
)
def test_other_writes_of_the_status_of_a_node_by_its_kubelet_are_left_out(tweaks: tuple[Tweak, ...]) -> None:
    event = write_event("nodes", "", *OF_NODE, BY_KUBELET, put("requestObject", NOT_READY), *tweaks)
    assert not any(isinstance(one, RelatedWrite) for one in read_events(event))
