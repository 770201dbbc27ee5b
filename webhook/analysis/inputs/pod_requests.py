"""Requests of an audit log about pods that were not made, or that run, or wait: not about their deletion.

In: an audit event. Out: that a pod, or its eviction, was refused, that somebody wrote the status of a pod, resized it,
gave it another image or ran a program in it, that it got a node; whether that concerns a lease is for others to say. Of
a status, what ended is read: logs at level Metadata do not show it.
"""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from webhook.analysis.inputs.items import ContainerEnd, PodAct, PodRequest, PodStatus
from webhook.kubernetes.times import get_instant, normalize, parse_stamp
from webhook.text.quoting import truncate, truncate_middle

if TYPE_CHECKING:
    from webhook.analysis.inputs.audit_event import AuditEvent

_POD: Final = re.compile(rb'"resource":\s*+"(?:pods|jobs)"')
_ACT: Final = re.compile(rb'"verb":\s*+"create"|"subresource":\s*+"(?:status|exec|resize)"')
"""What the few requests about pods have that say something; in many logs most requests are about pods."""
_JOB_CONTROLLERS: Final = frozenset(
    {"system:serviceaccount:kube-system:job-controller", "system:kube-controller-manager"}
)
"""The users of the job controller: with the credentials of its own account, as by default, or without."""
_PATCH: Final = re.compile(rb'"verb":\s*+"patch"')
_MAX_MESSAGE: Final = 200
_ABSENT: Final = HTTPStatus.NOT_FOUND
_UPGRADED: Final = HTTPStatus.SWITCHING_PROTOCOLS
_MAX_PROGRAM: Final = 40
_RESOURCES: Final = ("cpu", "memory")
_QUANTITY: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,10})?(?:[numkMGTPE]|[KMGTPE]i)?")
"""Source: the format that apimachinery `pkg/api/resource/quantity.go` describes, without exponents."""
_WITH_OPTION: Final = 2
_MAX_NAMED: Final = 3
_MAX_IMAGE: Final = 120
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,399}")
_SENDING: Final = frozenset({"kill", "pkill", "killall"})
"""Programs that send a signal, which is no secret."""
_SIGNAL: Final = re.compile(r"-(?:s|-signal=)?(?:SIG)?([A-Z]{3,6}[12]?|[0-9]{1,2})")
_SIGNAL_OPTIONS: Final = frozenset({"-s", "--signal"})
_OF_REFUSALS: Final = frozenset({PodAct.REFUSED, PodAct.KEPT})
_ACTS: Final = {
    ("create", ""): PodAct.REFUSED,
    ("create", "binding"): PodAct.BOUND,
    ("create", "eviction"): PodAct.KEPT,
    ("create", "exec"): PodAct.RAN,
    ("get", "exec"): PodAct.RAN,
    ("patch", ""): PodAct.IMAGE_SET,
    ("patch", "resize"): PodAct.RESIZED,
    ("update", "resize"): PodAct.RESIZED,
    ("patch", "status"): PodAct.STATUS,
    ("update", "status"): PodAct.STATUS,
}


class _Terminated(Struct, frozen=True, rename="camel"):
    """What ended; its message is not read, which the container itself writes."""

    exit_code: int | None = None
    reason: str | None = None
    finished_at: str | None = None


class _State(Struct, frozen=True):
    terminated: _Terminated | None = None


class _Container(Struct, frozen=True, rename="camel"):
    name: str = ""
    state: _State | None = None
    last_state: _State | None = None


class _Status(Struct, frozen=True, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    container_statuses: Sequence[_Container] | None = None
    init_container_statuses: Sequence[_Container] | None = None


class _Resources(Struct, frozen=True):
    limits: dict[str, object] | None = None


class _ChangedContainer(Struct, frozen=True):
    name: str = ""
    image: str = ""
    resources: _Resources | None = None


class _Spec(Struct, frozen=True):
    containers: Sequence[_ChangedContainer] | None = None


class _ChangedPod(Struct, frozen=True):
    spec: _Spec | None = None


class _Metadata(Struct, frozen=True):
    uid: str | None = None


class _Pod(Struct, frozen=True):
    """A pod, or a patch of one: a kubelet sends a strategic merge patch, which looks like a part of the object."""

    metadata: _Metadata = _Metadata()
    status: _Status | None = None


_pods: Final = msgspec.json.Decoder(_Pod)
_changed_pods: Final = msgspec.json.Decoder(_ChangedPod)


def may_be_pod_request(line: bytes) -> bool:
    """Return whether a line of a log may be of a request that `interpret_pod_status` reads."""
    if _POD.search(line) is None:
        return False
    return _ACT.search(line) is not None or (b'"image"' in line and _PATCH.search(line) is not None)


def interpret_pod_status(event: "AuditEvent") -> PodRequest | None:
    """Return what a request says of a pod; None if it is about something else, or if it changed nothing."""
    reference, at, code = event.object_ref, event.answered_at, event.response_status.code
    if reference.resource == "jobs":
        return _interpret_job_status(event)
    act = _ACTS.get((event.verb, reference.subresource))
    if reference.resource != "pods" or reference.api_group or act is None or at is None or "dryRun" in event.query:
        return None
    is_of_refusals = act in _OF_REFUSALS
    is_refused = is_of_refusals and code >= HTTPStatus.BAD_REQUEST and code not in {HTTPStatus.CONFLICT, _ABSENT}
    is_done = not is_of_refusals and (200 <= code < 300 or code == _UPGRADED) and bool(reference.name)
    if not (is_refused or is_done):
        return None
    message = event.response_status.message
    if act is PodAct.RAN:
        # A program is answered when it ends.
        at = get_instant(normalize(event.request_received_timestamp)) or at
        message = _name_command(event.query.get("command", []))
    if act is PodAct.IMAGE_SET:
        message = _name_images(bytes(event.request_object))
        if not message:
            return None  # most patches are of labels and the like
    if act is PodAct.RESIZED:
        message = ", ".join(_list_limits(bytes(event.request_object)))
    return PodRequest(
        at=at,
        act=act,
        namespace=reference.namespace,
        name=reference.name,
        writer=event.writer,
        code=code,
        message=truncate_middle(message),
        status=_find_status(bytes(event.request_object)) if act is PodAct.STATUS else None,
    )


def _interpret_job_status(event: "AuditEvent") -> PodRequest | None:
    """Return that the job controller wrote the status of a Job; None of any other request."""
    reference, at, writer = event.object_ref, event.answered_at, event.writer
    what = reference.api_group, reference.subresource, event.verb in {"update", "patch"}
    is_by_controller = writer.user in _JOB_CONTROLLERS and not writer.impersonator
    is_done = 200 <= event.response_status.code < 300 and "dryRun" not in event.query
    if what != ("batch", "status", True) or not (is_by_controller and is_done and reference.name) or at is None:
        return None
    return PodRequest(at=at, act=PodAct.JOB_STATUS, namespace=reference.namespace, name=reference.name, writer=writer)


def _name_command(command: Sequence[str]) -> str:
    """Return the name of a program, and the signal that it sends: other arguments may be secret."""
    program = truncate(command[0] if command else "", _MAX_PROGRAM)
    if program.rpartition("/")[2] not in _SENDING or len(command) == 1:
        return program
    option = f"-{command[2]}" if command[1] in _SIGNAL_OPTIONS and len(command) > _WITH_OPTION else command[1]
    found = _SIGNAL.fullmatch(option)
    return program if found is None else f"{program} -{found[1]}"


def _name_images(sent: bytes) -> str:
    """Return the images that a patch sets, `manager=registry.example.com/app:1.8`; "" if it sets none."""
    containers = _list_containers(sent)
    named = [one for one in containers if _IMAGE.fullmatch(one.image) and _IMAGE.fullmatch(one.name)]
    found = [truncate(f"{one.name}={one.image}", _MAX_IMAGE) for one in named]
    return ", ".join(found[:_MAX_NAMED])


def _list_containers(sent: bytes) -> Sequence[_ChangedContainer]:
    """Return the containers that a request names; none if it has another form."""
    try:
        spec = _changed_pods.decode(sent).spec
    except (ValueError, RecursionError):
        return ()
    return (spec.containers if spec is not None else None) or ()


def _list_limits(sent: bytes) -> Iterator[str]:
    """Yield the limits that a request set, such as `cpu 5m`, of a pod with one container that it names."""
    containers = _list_containers(sent)
    resources = containers[0].resources if len(containers) == 1 else None
    limits = (resources.limits if resources is not None else None) or {}
    for name in _RESOURCES:
        value = limits.get(name)
        if isinstance(value, str) and _QUANTITY.fullmatch(value):
            yield f"{name} {value}"


def _find_status(sent: bytes) -> PodStatus | None:
    """Return the status that a request wrote; None if the log does not show it, or if it is of another form."""
    try:
        pod = _pods.decode(sent)
    except (ValueError, RecursionError):
        return None
    status = pod.status
    if status is None:
        return None
    return PodStatus(
        uid=pod.metadata.uid or "",
        phase=status.phase or "",
        reason=status.reason or "",
        message=truncate(status.message or "", _MAX_MESSAGE),
        ended=(*_list_failed_init_containers(status), *_list_ends(status.container_statuses or ())),
    )


def _list_failed_init_containers(status: _Status) -> Iterator[ContainerEnd]:
    """Yield the end of each init container that failed: one that succeeds is meant to end."""
    return (one for one in _list_ends(status.init_container_statuses or ()) if one.exit_code != 0)


def _list_ends(containers: Sequence[_Container]) -> Iterator[ContainerEnd]:
    """Yield the end of each container that has ended, or that ran before and has ended then."""
    for container in containers:
        for state in (container.last_state, container.state):
            if state is not None and (ended := state.terminated) is not None:
                at = parse_stamp(ended.finished_at)
                yield ContainerEnd(container.name, ended.reason or "", ended.exit_code, at)
