"""Writes of an audit log to what a leader depends on: its account, its rights, its workload, and what refuses writes.

In: an audit event. Out: who changed which object, and when; whether that concerns a lease is for others to say.
"""

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from webhook.analysis.inputs.items import RelatedWrite

if TYPE_CHECKING:
    from webhook.analysis.inputs.kinds import AuditEvent

RELATED_MARKERS: Final = (
    b'"rbac.authorization.k8s.io"',
    b'"admissionregistration.k8s.io"',
    b'"flowcontrol.apiserver.k8s.io"',
    b'"resource":"deployments"',
    b'"resource":"statefulsets"',
    b'"resource":"resourcequotas"',
)
"""Text in the audit events that are read for this, beside deletions, which are read anyway."""
_KINDS: Final = {
    ("", "serviceaccounts"): "ServiceAccount",
    ("", "resourcequotas"): "ResourceQuota",
    ("", "namespaces"): "Namespace",
    ("", "configmaps"): "ConfigMap",
    ("apps", "deployments"): "Deployment",
    ("apps", "statefulsets"): "StatefulSet",
    ("rbac.authorization.k8s.io", "roles"): "Role",
    ("rbac.authorization.k8s.io", "rolebindings"): "RoleBinding",
    ("rbac.authorization.k8s.io", "clusterroles"): "ClusterRole",
    ("rbac.authorization.k8s.io", "clusterrolebindings"): "ClusterRoleBinding",
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): "ValidatingWebhookConfiguration",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): "MutatingWebhookConfiguration",
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): "ValidatingAdmissionPolicy",
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): "ValidatingAdmissionPolicyBinding",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "FlowSchema",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): "PriorityLevelConfiguration",
}
_DONE: Final = {"create": "created", "update": "changed", "patch": "changed", "delete": "deleted"}
_CONTROLLERS: Final = (
    "system:apiserver",
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:deployment-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
    "system:serviceaccount:kube-system:resourcequota-controller",
)
"""Users that write these objects all the time without changing what was asked of them."""


def interpret_related_write(event: "AuditEvent") -> RelatedWrite | None:
    """Return what a request changed; None if it was refused, was a dry run, or is about something else."""
    reference, at = event.object_ref, event.answered_at
    kind, done = _KINDS.get((reference.api_group, reference.resource)), _DONE.get(event.verb)
    is_whole = reference.subresource in {"", "scale"} and bool(reference.name) and at is not None
    if kind is None or done is None or not is_whole or not 200 <= event.response_status.code < 300:
        return None
    writer = event.writer
    is_dry_run = "dryRun" in parse_qs(urlsplit(event.request_uri).query) or b"dryRun" in bytes(event.request_object)
    if is_dry_run or (done != "deleted" and writer.user in _CONTROLLERS):
        return None
    assert at is not None
    return RelatedWrite(
        at=at,
        kind=kind,
        namespace="" if kind == "Namespace" else reference.namespace,
        name=reference.name,
        verb="scaled" if reference.subresource == "scale" else done,
        writer=writer,
        is_sure=done != "deleted" or bytes(event.response_object) not in (b"", b"null"),
    )
