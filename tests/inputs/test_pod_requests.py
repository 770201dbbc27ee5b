"""Requests of an audit log about pods beside their deletion: which are read, and which are left out."""

import json
from typing import Any

import pytest

from tests.factories import Document, Tweak, changed, drop, put
from tests.history.fake_server import START
from tests.inputs.reading import read
from webhook.analysis.inputs.items import ContainerEnd, LogEnd, PodAct, PodRequest, PodStatus, Writer
from webhook.kubernetes.times import format_micro_time, format_time

CONTROLLER = "system:kube-controller-manager"
KUBELET = "system:node:worker-1"
QUOTA = 'pods "db-7d9c6b5f4-xk2pq" is forbidden: exceeded quota: objects'


def pod_event(*tweaks: Tweak) -> Document:
    """An event at level Metadata: a controller may not create a pod, whose name the API server was to choose."""
    event: Document = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/shop/pods",
        "verb": "create",
        "user": {"username": CONTROLLER},
        "objectRef": {"resource": "pods", "namespace": "shop", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "status": "Failure", "message": QUOTA, "code": 403},
        "requestReceivedTimestamp": format_micro_time(START - 4000),
        "stageTimestamp": format_micro_time(START),
    }
    return changed(event, *tweaks)


def status_event(*tweaks: Tweak) -> Document:
    """An event at level Metadata: a kubelet wrote the status of a pod."""
    return pod_event(
        put("verb", "patch"),
        put("user", {"username": KUBELET}),
        put("objectRef.name", "db-0"),
        put("objectRef.subresource", "status"),
        put("responseStatus", {"metadata": {}, "code": 200}),
        *tweaks,
    )


def read_events(*events: Document) -> list[Any]:
    lines = b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in events)
    return [item for item in read("audit.log", [lines]) if not isinstance(item, LogEnd)]


def test_a_creation_that_was_refused() -> None:
    expected = PodRequest(
        at=START,
        act=PodAct.REFUSED,
        namespace="shop",
        name="",
        writer=Writer(CONTROLLER),
        code=403,
        message=QUOTA,
    )
    assert read_events(pod_event()) == [expected]


@pytest.mark.parametrize("verb", ["patch", "update"])
def test_a_status_that_was_written(verb: str) -> None:
    (item,) = read_events(status_event(put("verb", verb)))
    assert (item.act, item.name, item.writer.user) == (PodAct.STATUS, "db-0", KUBELET)


def read_status(sent: object) -> PodStatus | None:
    (item,) = read_events(status_event(put("level", "Request"), put("requestObject", sent)))
    status = item.status
    assert status is None or isinstance(status, PodStatus)
    return status


def test_a_status_says_that_its_pod_failed() -> None:
    status = {"phase": "Failed", "reason": "Evicted", "message": "low on disk" + "." * 500}
    found = read_status({"metadata": {"uid": "uid-1"}, "status": status})
    assert found is not None
    assert (found.uid, found.phase, found.reason, found.ended) == ("uid-1", "Failed", "Evicted", ())
    assert found.message.startswith("low on disk")
    assert len(found.message) < 400


def test_a_status_says_which_containers_ended_and_when() -> None:
    killed = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": format_time(START)}
    containers = [
        {"name": "db", "state": {"running": {}}, "lastState": {"terminated": killed}},
        {"name": "proxy", "state": {"terminated": {"exitCode": 0}}, "lastState": {}},
        {"name": "log", "state": {"waiting": {}}, "lastState": None},
    ]
    found = read_status({"status": {"containerStatuses": containers}})
    assert found == PodStatus(ended=(ContainerEnd("db", "OOMKilled", 137, START), ContainerEnd("proxy", "", 0, None)))


def test_an_init_container_that_succeeded_was_meant_to_end() -> None:
    ends = [{"exitCode": 137, "reason": "OOMKilled"}, {"exitCode": 0, "reason": "Completed"}, {}]
    containers = [{"name": f"init-{number}", "state": {"terminated": one}} for number, one in enumerate(ends)]
    found = read_status({"status": {"initContainerStatuses": containers, "containerStatuses": None}})
    assert found == PodStatus(ended=(ContainerEnd("init-0", "OOMKilled", 137), ContainerEnd("init-2")))


@pytest.mark.parametrize("sent", [{}, {"status": None}, {"status": {"phase": 7}}, [{"op": "replace"}], "x"])
def test_a_status_that_is_not_shown(sent: object) -> None:
    assert read_status(sent) is None


def test_a_pod_that_got_a_node() -> None:
    (item,) = read_events(status_event(put("verb", "create"), put("objectRef.subresource", "binding")))
    assert (item.act, item.name) == (PodAct.BOUND, "db-0")


def test_a_long_message_is_shortened() -> None:
    (item,) = read_events(pod_event(put("responseStatus.message", "x" * 5000)))
    assert len(item.message) < 400


@pytest.mark.parametrize(
    "event",
    [
        pod_event(put("responseStatus.code", 201)),
        pod_event(put("responseStatus.code", 409)),
        pod_event(put("requestURI", "/api/v1/namespaces/shop/pods?dryRun=All")),
        pod_event(put("objectRef.apiGroup", "metrics.k8s.io")),
        pod_event(put("stageTimestamp", "soon")),
        pod_event(put("stage", "ResponseStarted")),
        pod_event(put("objectRef.subresource", "exec")),
        status_event(put("responseStatus.code", 409)),
        status_event(put("objectRef.resource", "nodes")),
        status_event(drop("objectRef.name")),
        status_event(put("verb", "get")),
    ],
    ids=[
        "a pod that was created",
        "a pod that exists",
        "a dry run",
        "pods of another group",
        "no time",
        "not answered",
        "a command in a pod",
        "a status that was not written",
        "the status of a node",
        "a status without a name",
        "a status that was read",
    ],
)
def test_what_is_left_out(event: Document) -> None:
    assert read_events(event) == []


@pytest.mark.parametrize("most", [360, 500], ids=["whole", "without its middle"])
def test_why_a_pod_was_refused_is_said_at_the_end_of_a_message(most: int) -> None:
    message = "pods are forbidden: " + "x" * (most - 40) + ", which is the reason"
    (item,) = read_events(pod_event(put("responseStatus.message", message)))
    assert item.message.startswith("pods are forbidden: ")
    assert item.message.endswith(", which is the reason")
    assert len(item.message) <= 363


@pytest.mark.parametrize(
    ("query", "program"),
    [
        ("?command=sh&command=-c&command=secret", "sh"),
        ("?command=" + "x" * 90, "x" * 40 + "..."),
        ("", ""),
        ("?command=kill&command=-STOP&command=1", "kill -STOP"),
        ("?command=/bin/kill&command=-SIGCONT&command=1", "/bin/kill -CONT"),
        ("?command=kill&command=-s&command=19&command=1", "kill -19"),
        ("?command=pkill&command=--signal&command=STOP&command=secret", "pkill -STOP"),
        ("?command=killall&command=--signal=TERM&command=secret", "killall -TERM"),
        ("?command=kill&command=1", "kill"),
        ("?command=kill", "kill"),
        ("?command=kill&command=-s", "kill"),
        ("?command=sh&command=-STOP", "sh"),
    ],
    ids=[
        "a program",
        "a long name",
        "no program",
        "a signal",
        "a signal with its whole name",
        "an option and a number",
        "a long option",
        "one word",
        "no signal",
        "no argument",
        "an option alone",
        "another program",
    ],
)
@pytest.mark.parametrize("verb", ["create", "get"])
def test_a_program_that_was_run_in_a_pod_is_named_without_arguments_but_a_signal(
    verb: str, query: str, program: str
) -> None:
    (item,) = read_events(
        pod_event(
            put("verb", verb),
            put("objectRef.name", "db-0"),
            put("objectRef.subresource", "exec"),
            put("requestURI", f"/api/v1/namespaces/shop/pods/db-0/exec{query}"),
            put("responseStatus", {"metadata": {}, "code": 101}),
            put("stageTimestamp", format_micro_time(START + 60_000_000)),
        )
    )
    assert (item.act, item.name, item.message, item.at) == (PodAct.RAN, "db-0", program, START - 4000)


LIMITED = {"name": "db", "resources": {"limits": {"cpu": "5m", "memory": "64.5Mi"}}}


@pytest.mark.parametrize("verb", ["patch", "update"])
@pytest.mark.parametrize(
    ("sent", "limits"),
    [
        ({"spec": {"containers": [LIMITED]}}, "cpu 5m, memory 64.5Mi"),
        ({"spec": {"containers": [LIMITED, LIMITED]}}, ""),
        ({"spec": {"containers": [{"resources": {"limits": {"cpu": "a lot", "memory": 5}}}]}}, ""),
        ({"spec": {"containers": [{"resources": {"requests": {"cpu": "5m"}}}]}}, ""),
        ({"spec": {"containers": [{"name": "db"}]}}, ""),
        ({"spec": {}}, ""),
        ({}, ""),
        ([{"op": "replace"}], ""),
    ],
    ids=[
        "limits",
        "several containers",
        "no quantities",
        "requests alone",
        "no resources",
        "no containers",
        "no spec",
        "another form",
    ],
)
def test_a_pod_that_was_resized_has_other_limits(verb: str, sent: object, limits: str) -> None:
    about = put("verb", verb), put("objectRef.name", "db-0"), put("objectRef.subresource", "resize")
    (item,) = read_events(pod_event(*about, put("responseStatus", {"code": 200}), put("requestObject", sent)))
    assert (item.act, item.name, item.message) == (PodAct.RESIZED, "db-0", limits)


DEBUG = {"name": "manager", "image": "registry.example.com/app:1.8-debug"}
SIDECAR = {"name": "b", "image": "b@sha256:0123"}


@pytest.mark.parametrize(
    ("sent", "images"),
    [
        ({"spec": {"containers": [DEBUG]}}, "manager=registry.example.com/app:1.8-debug"),
        ({"spec": {"containers": [SIDECAR, {"name": "c"}, SIDECAR]}}, "b=b@sha256:0123, b=b@sha256:0123"),
        ({"spec": {"containers": [SIDECAR] * 4}}, ", ".join(["b=b@sha256:0123"] * 3)),
        ({"spec": {"containers": [{"name": "b", "image": "x" * 200}]}}, f"b={'x' * 118}..."),
        ({"spec": {"containers": [{"name": "b", "image": "an image"}]}}, ""),
        ({"spec": {"containers": [{"name": "\u202e", "image": "b"}]}}, ""),
        ({"metadata": {"labels": {"role": "leader"}}}, ""),
        ([{"op": "replace", "path": "/spec/containers/0/image", "value": "b"}], ""),
        (None, ""),
    ],
    ids=["one", "several", "many", "a long one", "no image", "no name", "labels", "another form", "not shown"],
)
def test_an_image_that_was_set_of_a_running_pod(sent: object, images: str) -> None:
    about = put("verb", "patch"), put("objectRef.name", "db-0")
    items = read_events(pod_event(*about, put("responseStatus", {"code": 200}), put("requestObject", sent)))
    found = [(one.name, one.message) for one in items if isinstance(one, PodRequest) and one.act is PodAct.IMAGE_SET]
    assert found == ([("db-0", images)] if images else [])


@pytest.mark.parametrize(("code", "is_read"), [(429, True), (403, True), (409, False), (404, False), (201, False)])
def test_an_eviction_that_was_refused(code: int, *, is_read: bool) -> None:
    event = pod_event(
        put("objectRef.name", "db-0"), put("objectRef.subresource", "eviction"), put("responseStatus.code", code)
    )
    assert any(isinstance(one, PodRequest) and one.act is PodAct.KEPT for one in read_events(event)) is is_read
