"""A fence as two objects of the API server: a ValidatingAdmissionPolicy and its binding.

Every default of the API server is written out, so that a second server-side apply changes nothing.

Who writes comes from `request.userInfo.extra`, which the API server fills in from the bound token; nothing that the
object or the lease contains decides whether two names are the same pod. Every text of a policy file enters an
expression as a quoted literal. An API server evaluates the expression of the message for every write, allowed or not,
and each variable adds to the cost. So the check for the usual allowed write uses no variable and comes first in both
expressions.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook import __version__
from webhook.policy.fences import Fence, HolderTemplate
from webhook.rules.holders import MAX_HOSTNAME
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
_MAX_SHOWN: Final = 128
"""Characters of a holder identity that a message shows; the identity may have a megabyte."""

_CLAIMS: Final = {claim: f"authentication.kubernetes.io/{claim}-name" for claim in ("pod", "node")}
_HOLDER: Final = 'params.?spec.?holderIdentity.orValue("")'
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"'}

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
        "matchConditions": [{"name": "writer", "expression": _writer_condition(fence)}],
        "variables": [{"name": name, "expression": text} for name, text in _variables(fence)],
        "validations": [
            {
                "expression": f"{_allowed(fence)}\n|| variables.leads",
                "message": f"only the holder of lease {fence.lease_text} may write this (fence {fence.name})",
                "messageExpression": _message_expression(fence),
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


def _literal(text: str) -> str:
    """Return the text as a CEL string literal, in printable ASCII."""
    return f'"{"".join(map(_escaped, text))}"'


def _writer_condition(fence: Fence) -> str:
    names = ", ".join(_literal(name) for name in fence.usernames)
    return f"request.userInfo.username in [{names}]"


def _variables(fence: Fence) -> tuple[tuple[str, str], ...]:
    """Return (name, expression), each using only those before it."""
    claims = [claim for claim in _CLAIMS if claim == "pod" or any(claim == one.claim for one in fence.holders)]
    found = [(claim, _claim(_CLAIMS[claim])) for claim in claims]
    if any(one.claim == "pod" for one in fence.holders):
        cut = f'variables.pod.find("^.{{0,{MAX_HOSTNAME - 1}}}[^.-]")'
        found.append(("host", f"size(variables.pod) > {MAX_HOSTNAME} ? {cut} : variables.pod"))
    found += [
        ("holder", _HOLDER),
        ("leads", "\n|| ".join(_fits(one) for one in fence.holders)),
        ("lease", _lease_text(fence)),
        ("writer", _writer_text(with_node="node" in claims)),
    ]
    return tuple(found)


def _message_expression(fence: Fence) -> str:
    """Return which pod wrote, who holds the lease since which transition, and a fix; empty for an allowed write."""
    unbound = _literal("; write with the token that is mounted into the holder's pod")
    stale = _literal("; only the holder may write: stop this work, or acquire the lease first")
    fix = f'(variables.pod == "" ? {unbound} : {stale})'
    terms = ("variables.lease", _literal(", and this write comes from "), "variables.writer", fix)
    text = " + ".join((*terms, _literal(f" (fence {fence.name})")))
    return f'{_allowed(fence)}\n? ""\n: {text}'


def _allowed(fence: Fence) -> str:
    """True if the lease may be unheld and is, or its holder is the writer's pod by its full name, or its node."""
    unheld = [f'{_HOLDER} == ""'] if fence.when_unheld == "allow" else []
    return "\n|| ".join([*unheld, *(_fits_claim(one) for one in fence.holders)])


def _fits_claim(template: HolderTemplate) -> str:
    found = _values(_CLAIMS[template.claim])
    return f'(size({found}) == 1 && {found}[0] != "" && {_fits_name(template, _HOLDER, f"{found}[0]")})'


def _values(key: str) -> str:
    return f"request.userInfo.?extra[{_literal(key)}].orValue([])"


def _claim(key: str) -> str:
    found = _values(key)
    return f'size({found}) == 1 ? {found}[0] : ""'


def _fits(template: HolderTemplate) -> str:
    names = ["variables.pod", "variables.host"] if template.claim == "pod" else ["variables.node"]
    tests = " || ".join(_fits_name(template, "variables.holder", name) for name in names)
    return f'({names[0]} != "" && ({tests}))'


def _fits_name(template: HolderTemplate, holder: str, name: str) -> str:
    parts = [template.before and _literal(template.before), name, template.after and _literal(template.after)]
    identity = " + ".join(filter(None, parts))
    return f"{holder}.startsWith({identity})" if template.open else f"{holder} == {identity}"


def _lease_text(fence: Fence) -> str:
    shown = (
        f'size(variables.holder) <= {_MAX_SHOWN} && variables.holder.matches("^[!-~]+$")'
        ' ? variables.holder : "a holder whose name cannot be shown"'
    )
    transition = "string(params.?spec.?leaseTransitions.orValue(0))"
    held = f'{_literal(f"lease {fence.lease_text} is held by ")} + ({shown}) + " since transition " + {transition}'
    return f'variables.holder == ""\n? {_literal(f"lease {fence.lease_text} has no holder")}\n: {held}'


def _writer_text(*, with_node: bool) -> str:
    node = ' + (variables.node == "" ? "" : " on node " + variables.node)' if with_node else ""
    return f'variables.pod == "" ? "a token that names no pod" : "pod " + variables.pod{node}'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isascii() and character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
