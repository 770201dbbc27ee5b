"""A fence as objects of the API server: a ValidatingAdmissionPolicy and its binding, and those of a token and a clock.

Every default of the API server is written out, so that a second server-side apply changes nothing.

Who writes comes from `request.userInfo.extra`, which the API server fills in from the bound token; nothing that the
object or the lease contains decides whether two names are the same pod. Every text of a policy file enters an
expression as a quoted literal.

An API server evaluates every validation and the expression of every message, allowed or not, and the variables twice
for them. A policy that mutates has the object written as JSON and read again, even if it changes nothing. So what is
usual is found out by the match condition: no policy is evaluated further for a write that it would leave as it is.

What a token and a clock add is in `token.yaml`; it needs the annotations that deploy/stamp writes into the lease.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

import yaml
from msgspec.structs import replace

from webhook import __version__
from webhook.admission.policy.fences import Fence, FencedResource, HolderTemplate
from webhook.admission.rules.holders import MAX_HOSTNAME

API_VERSION: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
MUTATING_POLICY: Final = "MutatingAdmissionPolicy"
MUTATING_BINDING: Final = "MutatingAdmissionPolicyBinding"
KINDS: Final = (POLICY, BINDING, MUTATING_POLICY, MUTATING_BINDING)
STAMPING: Final = ".token"
KEEPING: Final = ".kept"
CLOCK: Final = ".clock"
"""The suffixes of the names of further policies of a fence; no name of a fence has a dot."""
LABELS: Final[Mapping[str, str]] = {
    "app.kubernetes.io/component": "fence",
    "app.kubernetes.io/managed-by": "lease-webhook",
}
"""The labels by which `doctor` finds the objects."""
MADE_BY: Final = "lease-webhook/made-by"

ACTIONS: Final = {"deny": ["Deny", "Audit"], "warn": ["Warn", "Audit"], "audit": ["Audit"]}
_MAX_SHOWN: Final = 128
"""Characters of a holder identity that a message shows; the identity may have a megabyte."""
_MAX_WRITER: Final = 400
"""Characters of a stamp that a message shows: a uid and the longest name of a service account."""

_CLAIMS: Final = {claim: f"authentication.kubernetes.io/{claim}-name" for claim in ("pod", "node")}
_HOLDER: Final = 'params.?spec.?holderIdentity.orValue("")'
_WORD: Final = re.compile("[A-Z]{3,}")

_UID: Final = "authentication.kubernetes.io/pod-uid"
_TOKEN: Final[Mapping[str, Any]] = yaml.safe_load(
    files("webhook.api_server.fence").joinpath("token.yaml").read_text("utf-8")
)

_PLACE: Final = 'request.resource.group + "/" + request.resource.resource + "/" + request.?subResource.orValue("")'
"""An expression: what is written, as `apps/deployments/status`; the core group is "", the object itself ends with /."""
_BINDINGS: Final = FencedResource("", "bindings")
"""The other way to bind a pod. As by pods/binding, the API server copies the annotations of a Binding into the pod."""

_IDENTITIES: Final = frozenset({"pod", "node", "host", "holder", "leads"})
"""Variables of a fence that say who writes, and whether that is the holder."""

Manifest = dict[str, Any]


def make_fence_manifests(fence: Fence) -> list[Manifest]:
    """Return the policies, each followed by its binding; what stamps a token comes before what asks for it."""
    found = [*_make_stamping(fence)] if fence.has_token else []
    missing = "Deny" if fence.denies_if_lease_is_missing else "Allow"
    binding = {"paramRef": _make_reference(fence, missing), "validationActions": ACTIONS[fence.mode]}
    found += make_pair(_make_metadata(fence), _make_policy(fence), binding)
    return [*found, *_make_clock(fence)] if fence.when_expired != "allow" else found


def name_policy(fence: Fence) -> str:
    """Return the name of the policy and of its binding; those of the others begin with it and a dot."""
    return f"fence-{fence.name}"


def make_pair(metadata: Manifest, policy: Manifest, binding: Manifest) -> Iterator[Manifest]:
    """Yield a policy, which mutates if it has mutations, and its binding, under one name."""
    kinds = (MUTATING_POLICY, MUTATING_BINDING) if "mutations" in policy else (POLICY, BINDING)
    for kind, spec in zip(kinds, (policy, {"policyName": metadata["name"]} | binding), strict=True):
        yield {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _make_metadata(fence: Fence, part: str = "") -> Manifest:
    return {
        "name": name_policy(fence) + part,
        "labels": {**LABELS, "lease-webhook/fence": fence.name},
        "annotations": {MADE_BY: f"lease-webhook {__version__}, export fence"},
    }


def _make_policy(fence: Fence) -> Manifest:
    usual = f"({_write_leader_expression(fence)})" + (
        f"\n&& {_fill_template(fence, 'settled')}" if fence.has_token else ""
    )
    variables = [{"name": name, "expression": text} for name, text in _list_variables(fence)]
    rules, condition = _make_own_rules(fence), f"!({usual})"
    whole = [one for one in fence.resources if not one.subresource]
    if fence.has_token and "UPDATE" in fence.operations:
        rules, condition = [*rules, *_make_rules(whole, ["/*"], ["UPDATE"])], f"{condition}\n&& ({_is_covered(fence)})"
    validations = [
        {
            "expression": _write_admission_expression(fence),
            "message": f"only the holder of lease {fence.lease_text} may write this (fence {fence.name})",
            "messageExpression": _write_message_expression(fence),
            "reason": "Forbidden",
        }
    ]
    if fence.has_token:
        variables += [*_fill_template(fence, "common"), *_fill_template(fence, "comparison")]
        validations += _fill_template(fence, "validations")
    return _match_writes(fence, rules, condition) | {"variables": variables, "validations": validations}


def _write_admission_expression(fence: Fence) -> str:
    """Return an expression over the variables of the fence: whether the writer leads, or no one does and all may."""
    return (
        _write_leader_expression(fence)
        if fence.is_by_stamp
        else f"{_write_leader_expression(fence)}\n|| variables.leads"
    )


def _is_covered(fence: Fence) -> str:
    """Return an expression: the resource or subresource is listed, or its object gets other metadata by this write.

    The `status` of most kinds stores labels, annotations, finalizers and owners of the whole object.
    """
    listed = _make_list(map(_name_place, _list_fenced(fence)))
    return f"{_PLACE} in {listed}\n|| {_fill_template(fence, 'relabeled')}"


def _list_fenced(fence: Fence) -> list[FencedResource]:
    """Return the resources of the fence; who may not bind pods may not do so by `bindings` either."""
    binds = any((one.group, one.path) == ("", "pods/binding") for one in fence.resources)
    return [*dict.fromkeys([*fence.resources, *([_BINDINGS] if binds else [])])]


def _list_kept(fence: Fence) -> list[FencedResource]:
    """Return the resources whose tokens nobody else may change, and by which a Binding could do so."""
    has_pods = any((one.group, one.resource) == ("", "pods") for one in fence.resources)
    return [*dict.fromkeys([*fence.resources, *([_BINDINGS] if has_pods else [])])]


def _name_place(resource: FencedResource) -> str:
    return f"{resource.group}/{resource.resource}/{resource.subresource}"


def _write_bearer_expression(fence: Fence) -> str:
    """Return an expression: what is written is stamped. A Binding by `bindings` is, only where a fence lists them."""
    bearer = f'request.?subResource.orValue("") in {_make_list(_list_subresources(fence))}'
    is_unlisted = _BINDINGS not in fence.resources and _BINDINGS in _list_kept(fence)
    return f"{bearer} && {_PLACE} != {make_literal(_name_place(_BINDINGS))}" if is_unlisted else bearer


def _write_reset_expression(fence: Fence) -> str:
    """Return an expression: a write of a subresource that is not known to store annotations."""
    storing = {
        _name_place(replace(one, subresource=name)) for one in fence.resources for name in one.storing_subresources
    }
    known = f" && !({_PLACE} in {_make_list(sorted(storing))})" if storing else ""
    return f'request.?subResource.orValue("") != ""{known}'


def _make_stamping(fence: Fence) -> Iterator[Manifest]:
    """Yield what stamps the writes of the writers, and what puts back a token that anyone else changes.

    Both match whatever is stored with the object, so that no write that the fence does not refuse changes a token.
    """
    paths = [f"/{one}" if one else "" for one in _list_subresources(fence)]
    stamped = _make_rules(fence.resources, paths, ["CREATE", "UPDATE"])
    token = _match_writes(fence, stamped, f"!({_fill_template(fence, 'settled')})")
    who = [{"name": name, "expression": text} for name, text in _list_variables(fence) if name in _IDENTITIES]
    token |= {
        "reinvocationPolicy": "IfNeeded",
        "variables": [*who, *_fill_template(fence, "common"), *_fill_template(fence, "readable")],
    }
    token["mutations"] = _fill_template(fence, "stamping")
    # Without the lease there is no term. Whether such a write is refused is the matter of the fence itself.
    yield from make_pair(_make_metadata(fence, STAMPING), token, {"paramRef": _make_reference(fence, "Allow")})
    rules = _make_rules(_list_kept(fence), ["", "/*"], ["CREATE", "UPDATE"])
    kept = _match_writes(fence, rules) | {"reinvocationPolicy": "IfNeeded"}
    del kept["paramKind"]
    kept |= _fill_template(fence, "kept")
    kept["variables"] += _fill_template(fence, "readable")
    yield from make_pair(_make_metadata(fence, KEEPING), kept, {})


def _make_clock(fence: Fence) -> Iterator[Manifest]:
    """Yield what refuses, or warns about, a write after the lease expired; it never refuses more than the fence."""
    mode = max(fence.mode, fence.when_expired, key=[*ACTIONS].index)
    policy = _match_writes(fence, _make_own_rules(fence), _fill_template(fence, "late"))
    policy |= _fill_template(fence, "clock")
    policy["failurePolicy"] = "Ignore"
    binding = {"paramRef": _make_reference(fence, "Allow"), "validationActions": ACTIONS[mode]}
    yield from make_pair(_make_metadata(fence, CLOCK), policy, binding)


def _match_writes(fence: Fence, rules: Sequence[Manifest], condition: str = "true") -> Manifest:
    """Return what every policy of a fence begins with: the lease, and the writes of its writers under a condition.

    It is one expression, because an API server evaluates all conditions, also after one that is false.
    """
    names = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*fence.namespaces]}
    is_writer = f"request.userInfo.username in {_make_list(fence.usernames)}"
    return {
        "failurePolicy": "Fail" if fence.mode == "deny" else "Ignore",
        "paramKind": {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [names]} if fence.namespaces else {},
            "objectSelector": {},
            "resourceRules": rules,
        },
        "matchConditions": [{"name": "writer", "expression": f"{is_writer}\n&& {condition}"}],
    }


def _make_reference(fence: Fence, if_missing: str) -> Manifest:
    return {"name": fence.lease, "namespace": fence.namespace, "parameterNotFoundAction": if_missing}


def _list_subresources(fence: Fence) -> list[str]:
    """Return the subresources through which annotations may be written; "" is the object itself.

    `binding` is one, if it is listed: a fence of version 0.3 asks for the token in a Binding, and during an upgrade the
    API server may take over the new stamping policy before the new fence.
    """
    named = {one.subresource for one in fence.resources} - {"scale"}
    return sorted({"", "status", *named})


def _fill_template(fence: Fence, part: str) -> Any:  # noqa: ANN401 - lists and mappings, as in the file
    """Return a part of `token.yaml` with the texts of the fence as literals in place of the words in capitals."""
    texts = {
        "KEY": make_literal(fence.token_key),
        "TERM": make_literal(f"lease-webhook/term-{fence.suffix}"),
        "WRITTEN": make_literal(f"lease-webhook/written-{fence.suffix}"),
        "WRITERS": _make_list(fence.usernames),
        "BEARER": _write_bearer_expression(fence),
        "RESETS": _write_reset_expression(fence),
        "LEASE": make_literal(fence.lease_text),
        "FENCE": make_literal(fence.name),
        "TOKEN": make_literal(name_policy(fence) + STAMPING),
        "ADMITTED": _write_admission_expression(fence),
    }

    def fill(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, dict):
            return {key: fill(one) for key, one in value.items()}
        if isinstance(value, list):
            return [fill(one) for one in value]
        return _WORD.sub(lambda found: texts.get(found[0], found[0]), value)

    return fill(_TOKEN[part])


def _make_own_rules(fence: Fence) -> list[Manifest]:
    return _make_rules(_list_fenced(fence), (), fence.operations)


def _make_rules(resources: Iterable[FencedResource], below: Sequence[str], operations: Sequence[str]) -> list[Manifest]:
    """Return rules for resources; with `below`, for these paths of each of them."""
    groups: dict[str, list[str]] = {}
    for resource in resources:
        paths = [resource.resource + path for path in below] if below else [resource.path]
        groups.setdefault(resource.group, []).extend(paths)
    common = {"operations": [*operations], "scope": "*"}
    return [
        {"apiGroups": [group], "apiVersions": ["*"], "resources": [*dict.fromkeys(paths)]} | common
        for group, paths in groups.items()
    ]


def make_literal(text: str) -> str:
    """Return the text as a CEL string literal, in printable ASCII."""
    # Every escape that Python writes means the same character in CEL.
    escaped = text.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


def _make_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(make_literal, texts))}]"


def _list_variables(fence: Fence) -> tuple[tuple[str, str], ...]:
    """Return (name, expression), each using only those before it."""
    claims = [claim for claim in _CLAIMS if claim == "pod" or any(claim == one.claim for one in fence.holders)]
    named = {claim: _write_extra_expression(_CLAIMS[claim]) for claim in claims}
    found = [(claim, f'size({values}) == 1 ? {values}[0] : ""') for claim, values in named.items()]
    if not fence.is_by_stamp and any(one.claim == "pod" for one in fence.holders):
        cut = f'variables.pod.find("^.{{0,{MAX_HOSTNAME - 1}}}[^.-]")'
        found.append(("host", f"size(variables.pod) > {MAX_HOSTNAME} ? {cut} : variables.pod"))
    found.append(("holder", _HOLDER))
    if fence.is_by_stamp:
        found.append(("stamp", _write_stamp_expression(fence)))
    else:
        found.append(("leads", "\n|| ".join(_write_fit_expression(one) for one in fence.holders)))
    return (
        *found,
        ("lease", _write_lease_text(fence)),
        ("writer", _write_writer_text(fence, with_node="node" in claims)),
    )


def _write_message_expression(fence: Fence) -> str:
    """Return the expression of a message: who holds the lease since which transition, which pod wrote, and a fix."""
    unbound = make_literal("; write with the token that is mounted into the holder's pod")
    stale = make_literal("; only the holder may write: stop this work, or acquire the lease first")
    fix = f'(variables.pod == "" ? {unbound} : {stale})'
    terms = ("variables.lease", make_literal(", and this write comes from "), "variables.writer", fix)
    return " + ".join((*terms, make_literal(f" (fence {fence.name})")))


def _write_leader_expression(fence: Fence) -> str:
    """Return an expression: the lease may be and is unheld, or its holder is the writer's pod (full name) or node."""
    unheld = [f'{_HOLDER} == ""'] if fence.when_unheld == "allow" else []
    uid = _write_extra_expression(_UID)
    writer = f'{uid}[0] + " " + request.userInfo.username'
    stamped = f'(size({uid}) == 1 && {uid}[0] != "" && {_write_stamp_expression(fence)} == {writer})'
    holds = [stamped] if fence.is_by_stamp else [_write_claim_expression(one) for one in fence.holders]
    return "\n|| ".join([*unheld, *holds])


def _write_stamp_expression(fence: Fence) -> str:
    """Return an expression for the stamped writer: the uid of its pod, a blank and its user; "" if there is none."""
    return f'params.?metadata.?annotations[?{make_literal(f"lease-webhook/writer-{fence.suffix}")}].orValue("")'


def _write_claim_expression(template: HolderTemplate) -> str:
    found = _write_extra_expression(_CLAIMS[template.claim])
    return f'(size({found}) == 1 && {found}[0] != "" && {_write_fit_name_expression(template, _HOLDER, f"{found}[0]")})'


def _write_extra_expression(key: str) -> str:
    return f"request.userInfo.?extra[{make_literal(key)}].orValue([])"


def _write_fit_expression(template: HolderTemplate) -> str:
    names = ["variables.pod", "variables.host"] if template.claim == "pod" else ["variables.node"]
    tests = " || ".join(_write_fit_name_expression(template, "variables.holder", name) for name in names)
    return f'({names[0]} != "" && ({tests}))'


def _write_fit_name_expression(template: HolderTemplate, holder: str, name: str) -> str:
    parts = [template.before and make_literal(template.before), name, template.after and make_literal(template.after)]
    identity = " + ".join(filter(None, parts))
    return f"{holder}.startsWith({identity})" if template.is_open else f"{holder} == {identity}"


def _write_lease_text(fence: Fence) -> str:
    shown = (
        f'size(variables.holder) <= {_MAX_SHOWN} && variables.holder.matches("^[!-~]+$")'
        ' ? variables.holder : "a holder whose name cannot be shown"'
    )
    held = (
        f"{make_literal(f'lease {fence.lease_text} is held by ')} + ({shown})"
        ' + " since transition " + string(params.?spec.?leaseTransitions.orValue(0))'
    )
    if fence.is_by_stamp:
        shown = f'size(variables.stamp) <= {_MAX_WRITER} && variables.stamp.matches("^[!-~]+ [!-~]+$")'
        held += f' + ({shown} ? ", stamped by " + variables.stamp : ", and no writer of it is stamped")'
    return f'variables.holder == ""\n? {make_literal(f"lease {fence.lease_text} has no holder")}\n: {held}'


def _write_writer_text(fence: Fence, *, with_node: bool) -> str:
    uid = f'{_write_extra_expression(_UID)}.map(uid, " with uid " + uid).join()'
    node = ' + (variables.node == "" ? "" : " on node " + variables.node)' if with_node else ""
    more = f" + {uid}" if fence.is_by_stamp else node
    return f'variables.pod == "" ? "a token that names no pod" : "pod " + variables.pod{more}'
