"""Writes of an audit log to what a leader depends on: its account, its rights, its workload, and what refuses writes.

In: an audit event. Out: who changed which object, and when; whether that concerns a lease is for others to say.
"""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from webhook.analysis.inputs.dry_runs import find_dry_run, is_never_dry
from webhook.analysis.inputs.items import RelatedWrite, name_program
from webhook.analysis.inputs.node_taints import describe_taints, find_taints
from webhook.analysis.inputs.workload_changes import WorkloadChange, describe_workload_change, is_test_alone
from webhook.kubernetes.request import NODE_USER, NULL
from webhook.kubernetes.times import get_instant, normalize

if TYPE_CHECKING:
    from webhook.analysis.inputs.audit_event import AuditEvent

KINDS: Final = {
    ("", "serviceaccounts"): "ServiceAccount",
    ("", "resourcequotas"): "ResourceQuota",
    ("", "namespaces"): "Namespace",
    ("", "nodes"): "Node",
    ("", "configmaps"): "ConfigMap",
    ("", "secrets"): "Secret",
    ("apps", "deployments"): "Deployment",
    ("apps", "statefulsets"): "StatefulSet",
    ("apps", "replicasets"): "ReplicaSet",
    ("networking.k8s.io", "networkpolicies"): "NetworkPolicy",
    ("rbac.authorization.k8s.io", "roles"): "Role",
    ("rbac.authorization.k8s.io", "rolebindings"): "RoleBinding",
    ("rbac.authorization.k8s.io", "clusterroles"): "ClusterRole",
    ("rbac.authorization.k8s.io", "clusterrolebindings"): "ClusterRoleBinding",
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): "ValidatingWebhookConfiguration",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): "MutatingWebhookConfiguration",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): "MutatingAdmissionPolicy",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): "MutatingAdmissionPolicyBinding",
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): "ValidatingAdmissionPolicy",
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): "ValidatingAdmissionPolicyBinding",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "CustomResourceDefinition",
    ("scheduling.k8s.io", "priorityclasses"): "PriorityClass",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "FlowSchema",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): "PriorityLevelConfiguration",
}
"""The kinds of what leaders depend on, by group and resource."""
_RELATED: Final = re.compile(
    rb'"resource":\s*+"(?:%b)"' % b"|".join(resource.encode() for resource in dict.fromkeys(name for _, name in KINDS))
)
"""The resource of an objectRef, as an API server writes it, or with spaces; a text in an event has quotes escaped."""
_DEBUGGED: Final = b'"subresource":"ephemeralcontainers"'
_READ: Final = re.compile(
    rb'\{"kind":"Event","apiVersion":"audit\.k8s\.io/v1","level":"\w*+",(?:"auditID":"[^"\\]*+",)?+"stage":"\w*+",'
    rb'"requestURI":"[^"\\]*+","verb":"(?:get|list|watch)"'
)
"""The start of an event about a read, whole, as API servers write it: what comes after that may quote a client."""
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_./-]{1,60}")
_ADDRESS: Final = re.compile(r"[0-9A-Fa-f.:]{2,45}")
WORKLOADS: Final = frozenset({"Deployment", "StatefulSet"})
_OWNER: Final = "ReplicaSet"
"""A kind of which only deletions count: of what it owns, the rest is said of its Deployment."""
DEBUGGED: Final = "Pod"
"""The kind of a write that put a container for debugging into a pod; others of pods are no `RelatedWrite`."""
STATUS_WRITTEN: Final = "given another status"
REGISTERED: Final = "registered anew"
"""A kubelet asks for its Node when it starts, and at no other time; that it exists is an answer as good as any."""
_DONE: Final = {"create": "created", "update": "updated", "patch": "updated", "delete": "deleted"}
_VERBS: Final = {"scale": "scaled", "status": STATUS_WRITTEN}
_CONTROLLERS: Final = (
    "system:apiserver",
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:deployment-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
    "system:serviceaccount:kube-system:resourcequota-controller",
)
"""Users that write these objects all the time without changing what was asked of them."""


def _is_about_health(event: "AuditEvent") -> bool:
    """Return whether a write to a Node may say that it is not heard, or that it is to have no pods.

    Kubelets and others write its labels and its status all the time. The node controller writes the status of a node
    that is not heard, and of no other, and taints those that are not ready. Source: `tryUpdateNodeHealth` and
    `processTaintBaseEviction` of kubernetes `pkg/controller/nodelifecycle`.
    """
    below = event.object_ref.subresource
    if event.verb not in {"update", "patch"}:
        return False
    if below == "status":
        return event.writer.is_node_controller or _describe_readiness(event) != ""
    return not below and not event.writer.user.startswith(NODE_USER)


def _describe_readiness(event: "AuditEvent") -> str:
    """Say that a node wrote of itself that it is not ready, from where, and what its writer calls itself; else "".

    Its kubelet is not the only one that can: whoever has its credentials may.
    """
    sent, is_own = bytes(event.request_object), event.writer.user == f"{NODE_USER}{event.object_ref.name}"
    if not is_own or event.writer.impersonator or b'"Ready"' not in sent or not event.source_ips:
        return ""
    try:
        conditions = _nodes.decode(sent).status.conditions
    except (ValueError, RecursionError):
        return ""
    if not any((one.type, one.status) == ("Ready", "False") for one in conditions):
        return ""
    address, program = event.source_ips[-1], name_program(event.user_agent)
    by = f" with the user agent {program}" if _PROGRAM.fullmatch(program) else ""
    return f"which set Ready to False, from {address}{by}" if _ADDRESS.fullmatch(address) else ""


def may_be_related_write(line: bytes) -> bool:
    """Return whether a line of a log may be of a write to what leaders depend on; most lines are not, so it is fast."""
    is_related = _RELATED.search(line) is not None or _DEBUGGED in line
    return is_related and _READ.match(line) is None


def interpret_related_write(event: "AuditEvent") -> RelatedWrite | None:
    """Return what a request changed; None if it was refused, was a dry run, or is about something else."""
    reference, at = event.object_ref, event.answered_at
    if reference.subresource == "ephemeralcontainers":
        return _interpret_ephemeral_container(event)
    kind, done = KINDS.get((reference.api_group, reference.resource)), _DONE.get(event.verb)
    if event.verb == "patch" and event.response_status.code == HTTPStatus.CREATED:
        done = "created"  # an apply creates what does not exist
    is_of_node = kind == "Node" and _is_about_health(event)
    is_whole = (is_of_node or reference.subresource in {"", "scale"}) and bool(reference.name) and at is not None
    if kind == "Node" and _is_registration(event):
        return _make_registration(event)
    if kind is None or done is None or not is_whole or not 200 <= event.response_status.code < 300:
        return None
    writer = event.writer
    is_dry_run = find_dry_run(event)
    # Who acts as a controller writes what no controller does.
    is_usual = (writer.user in _CONTROLLERS and not writer.impersonator) or kind == _OWNER
    # That a Node was created tells that it was gone, if it had been there.
    is_idle_of_node = kind == "Node" and done == "updated" and not is_of_node
    if is_dry_run or (done != "deleted" and (is_usual or is_idle_of_node)):
        return None
    sent = bytes(event.request_object)
    if is_test_alone(event.verb, sent):
        return None
    change = describe_workload_change(event.verb, sent) if kind in WORKLOADS else WorkloadChange()
    words = change.words
    if kind == "Node":
        words = _describe_readiness(event) if reference.subresource else describe_taints(event.verb, sent)
    is_tainted = kind == "Node" and done != "deleted"
    assert at is not None
    return RelatedWrite(
        at=at,
        kind=kind,
        namespace="" if kind == "Namespace" else reference.namespace,
        name=reference.name,
        verb=_VERBS.get(reference.subresource, done),
        writer=writer,
        is_surely_not_dry_run=is_dry_run is not None or is_never_dry(event),
        received=get_instant(normalize(event.request_received_timestamp)),
        change=words,
        switched_off=change.switched_off,
        program=name_program(event.user_agent),
        may_change_nothing=event.verb == "patch" and done == "updated" and sent == bytes(NULL),
        taints=find_taints(event.verb, sent, bytes(event.response_object)) if is_tainted else None,
    )


def _is_registration(event: "AuditEvent") -> bool:
    """Return whether a node asked for its own Node, which existed already.

    Source: `registerWithAPIServer` of kubernetes `pkg/kubelet/kubelet_node_status.go`.
    """
    reference, user = event.object_ref, event.writer.user
    is_own = user.startswith(NODE_USER) and reference.name in {"", user.removeprefix(NODE_USER)}
    is_asked = event.verb == "create" and not reference.subresource and event.answered_at is not None
    exists = event.response_status.code == HTTPStatus.CONFLICT
    return is_own and is_asked and exists and not event.writer.impersonator and not find_dry_run(event)


def _make_registration(event: "AuditEvent") -> RelatedWrite:
    at = event.answered_at
    assert at is not None
    return RelatedWrite(
        at=at,
        kind="Node",
        namespace="",
        name=event.writer.user.removeprefix(NODE_USER),
        verb=REGISTERED,
        writer=event.writer,
        received=get_instant(normalize(event.request_received_timestamp)),
        program=name_program(event.user_agent),
        may_change_nothing=True,
    )


class _Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class _NodeStatus(Struct, frozen=True):
    conditions: Sequence[_Condition] = ()


class _Node(Struct, frozen=True):
    status: _NodeStatus = _NodeStatus()


_nodes: Final = msgspec.json.Decoder(_Node)


class _EphemeralContainer(Struct, frozen=True):
    command: Sequence[object] | None = None


class _EphemeralContainers(Struct, frozen=True, rename="camel"):
    ephemeral_containers: Sequence[_EphemeralContainer] | None = None


class _Debugged(Struct, frozen=True):
    spec: _EphemeralContainers | None = None


_debugged: Final = msgspec.json.Decoder(_Debugged)


def _interpret_ephemeral_container(event: "AuditEvent") -> RelatedWrite | None:
    """Return that somebody put a container for debugging into a pod that runs; None if that was not stored."""
    reference, at = event.object_ref, event.answered_at
    what = (reference.api_group, reference.resource, bool(reference.name))
    if what != ("", "pods", True) or at is None or not 200 <= event.response_status.code < 300:
        return None
    if event.verb not in {"patch", "update"} or find_dry_run(event):
        return None
    return RelatedWrite(
        at=at,
        kind=DEBUGGED,
        namespace=reference.namespace,
        name=reference.name,
        verb=f"given an ephemeral container{_describe_program(bytes(event.request_object))}",
        writer=event.writer,
        is_surely_not_dry_run=True,
        received=get_instant(normalize(event.request_received_timestamp)),
    )


def _describe_program(sent: bytes) -> str:
    """` that runs gdb`: its arguments may be secret, and are not repeated; "" if the log does not show one."""
    try:
        spec = _debugged.decode(sent).spec
    except (ValueError, RecursionError):
        return ""
    containers = (spec.ephemeral_containers if spec is not None else None) or ()
    programs = [one.command[0] for one in containers if one.command]
    found = programs[-1] if programs else None
    return f" that runs {found}" if isinstance(found, str) and _PROGRAM.fullmatch(found) else ""
