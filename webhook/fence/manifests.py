"""A fence as two objects of the API server: a ValidatingAdmissionPolicy and its binding.

Every default of the API server is written out, so that a second server-side apply changes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook import __version__
from webhook.fence import expressions
from webhook.policy.fences import Fence
from webhook.yaml_writer import stream

API_VERSION: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
PREFIX: Final = "fence-"
LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/component": "fence",
    "app.kubernetes.io/managed-by": "lease-webhook",
}
"""The labels by which `doctor` finds the objects."""
MADE_BY: Final = "lease-webhook/made-by"

_ACTIONS: Final = {"deny": ["Deny", "Audit"], "warn": ["Warn", "Audit"], "audit": ["Audit"]}
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"

Manifest = dict[str, Any]


def manifests(fence: Fence) -> list[Manifest]:
    """Return the policy and its binding."""
    return [
        {"apiVersion": API_VERSION, "kind": POLICY, "metadata": _metadata(fence), "spec": _policy(fence)},
        {"apiVersion": API_VERSION, "kind": BINDING, "metadata": _metadata(fence), "spec": _binding(fence)},
    ]


def yaml_text(fences: Iterable[Fence]) -> str:
    """Return the objects of all fences as a stream of YAML documents; the same fences give the same text."""
    return stream(one for fence in fences for one in manifests(fence))


def object_name(fence: Fence) -> str:
    """Return the name of both objects."""
    return PREFIX + fence.name


def _metadata(fence: Fence) -> Manifest:
    return {
        "name": object_name(fence),
        "labels": {**LABELS, "lease-webhook/fence": fence.name},
        "annotations": {MADE_BY: f"lease-webhook {__version__}, export fence"},
    }


def _policy(fence: Fence) -> Manifest:
    return {
        "failurePolicy": "Fail" if fence.mode == "deny" else "Ignore",
        "paramKind": {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": _namespace_selector(fence),
            "objectSelector": {},
            "resourceRules": _rules(fence),
        },
        "matchConditions": [{"name": "writer", "expression": expressions.writer_condition(fence)}],
        "variables": [{"name": name, "expression": text} for name, text in expressions.variables(fence)],
        "validations": [
            {
                "expression": expressions.validation(fence),
                "message": expressions.message(fence),
                "messageExpression": expressions.message_expression(fence),
                "reason": "Forbidden",
            }
        ],
    }


def _binding(fence: Fence) -> Manifest:
    return {
        "policyName": object_name(fence),
        "paramRef": {
            "name": fence.lease,
            "namespace": fence.namespace,
            "parameterNotFoundAction": "Deny" if fence.denies_if_lease_is_missing else "Allow",
        },
        "validationActions": _ACTIONS[fence.mode],
    }


def _namespace_selector(fence: Fence) -> Manifest:
    if not fence.namespaces:
        return {}
    return {"matchExpressions": [{"key": _NAMESPACE_NAME, "operator": "In", "values": [*fence.namespaces]}]}


def _rules(fence: Fence) -> list[Manifest]:
    groups: dict[str, list[str]] = {}
    for one in fence.resources:
        groups.setdefault(one.group, []).append(one.path)
    common = {"operations": [*fence.operations], "scope": "*"}
    return [
        {"apiGroups": [group], "apiVersions": ["*"], "resources": paths} | common for group, paths in groups.items()
    ]
