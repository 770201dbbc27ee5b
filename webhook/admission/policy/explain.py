"""Explains a policy: the settings of a lease, the layer or entry of each, and what an author may not have meant."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.policy import schema
from webhook.admission.policy.fences import Fence
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import BOUND
from webhook.admission.rules import holders
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES
from webhook.kubernetes.request import Operation
from webhook.text.quoting import escape

E = TypeVar("E", schema.Exemption, schema.Override)


class SettingSource(Struct, frozen=True):
    """One setting of one rule, and the layer that decided it, for some operations; none are named if it is for all.

    `layer` is `preset`, `built in` (numbers), `bindings` (of a bound lease), `rules` or such as `overrides[2]`.
    """

    rule: str
    name: str
    value: schema.Value
    layer: str
    operations: tuple[Operation, ...] = ()


def explain(policy: Policy, namespace: str = "", name: str = "") -> Iterator[SettingSource]:
    """Yield every mode with its numbers, once for each operation on which they differ; only `*` matches ""."""
    answers = {operation: list(_explain(policy, namespace, name, operation)) for operation in schema.OPERATIONS}
    for same_setting in zip(*answers.values(), strict=True):
        rule = same_setting[0].rule
        by_answer: dict[SettingSource, tuple[Operation, ...]] = {}
        for operation, answer in zip(answers, same_setting, strict=True):
            if operation in RULES[rule].operations:
                by_answer[answer] = (*by_answer.get(answer, ()), operation)
        for answer, operations in by_answer.items():
            yield answer if len(by_answer) == 1 else replace(answer, operations=operations)


def find_applying(entries: Sequence[E], namespace: str = "", name: str = "") -> Iterator[tuple[int, E]]:
    """Yield the exemptions or overrides of a file that apply to a lease, with their positions; "" matches any."""
    for position, entry in enumerate(entries):
        if _is_matched(entry.namespaces, namespace) and _is_matched(entry.leases, name):
            yield position, entry


def _explain(policy: Policy, namespace: str, lease: str, operation: Operation) -> Iterator[SettingSource]:
    lease_policy = policy.resolve(namespace, lease, operation)
    overridden = policy.find_overrides(namespace, lease, operation)
    in_file = schema.list_settings(policy.document.rules)

    def layer(rule: str, name: str, otherwise: str) -> str:
        if (rule, name) in overridden:
            return f"overrides[{overridden[rule, name][0]}]"
        if (rule, name) in in_file:
            return "rules"
        return "bindings" if (namespace, lease) in policy.bindings and (rule, name) in BOUND else otherwise

    for rule, mode in lease_policy.modes.items():
        yield SettingSource(rule, schema.MODE, mode, layer(rule, schema.MODE, "preset"))
        for number, value in lease_policy.numbers(rule).items():
            yield SettingSource(rule, number, value, layer(rule, number, "built in"))


def _is_matched(globs: list[str], text: str) -> bool:
    return not globs or not text or any(holders.matches(pattern, text) for pattern in globs)


SOON: Final = 14 * 86_400 * 1_000_000  # two weeks before its end, in microseconds, an exemption is reported


def list_oddities(policy: Policy, now: int) -> list[str]:
    """Return sentences that begin with the path they are about; `now` is in microseconds since 1970."""
    found = [*_explain_exemptions(policy, now), *_explain_bindings(policy), *_explain_fences(policy)]
    if policy.document.without_stamps == "enforce":
        found.append("without_stamps: enforce lets a dead holder whose clock was ahead block takeovers for that long")
    return found


def _explain_exemptions(policy: Policy, now: int) -> Iterator[str]:
    for position, exemption in enumerate(policy.document.exempt):
        path = f"exempt[{position}] ({escape(exemption.owner)})"
        until = schema.find_end(exemption)
        if until <= now:
            yield f"{path} expired after {exemption.until}; remove it, or extend it with a new reason"
            continue
        if until - now <= SOON:
            yield f"{path} expires after {exemption.until}, within two weeks"
        who = (*schema.list_users(exemption), *exemption.groups)
        if not who and {*exemption.namespaces, *exemption.leases} <= {schema.ANYWHERE}:
            instead = "set the modes of these rules under `rules`" if exemption.rules else "set `mode: warn`"
            yield f"{path} exempts everyone everywhere; {instead} instead"


def _explain_bindings(policy: Policy) -> Iterator[str]:
    for position, binding in enumerate(policy.document.bindings):
        path = f"bindings[{position}]"
        policies = {one: policy.resolve(binding.namespace, binding.lease, one) for one in schema.OPERATIONS}
        admitted = [operation for operation, one in policies.items() if one.modes["identity-binding"] < Mode.DENY]
        if admitted:
            yield f"{path} denies no {', '.join(admitted)}: the mode of identity-binding is below deny on this lease"
        if schema.ANYWHERE in binding.holder:
            yield f"{path}.holder: `*` matches every holder, so only the writer is checked"


def _list_unlisted_status(fence: Fence) -> str:
    """Return the names of the subresources `status` that a fence leaves out, as a policy file has them."""
    listed = {(one.group, one.resource, one.subresource) for one in fence.resources}
    return ", ".join(
        f"{one}/status"
        for one in fence.resources
        if not one.subresource and one.has_stored_metadata and (one.group, one.resource, "status") not in listed
    )


def _list_status_without_token(fence: Fence) -> str:
    """Return the names of the listed subresources `status` that are not known to store annotations."""
    return ", ".join(str(one) for one in fence.resources if one.subresource == "status" and not one.has_stored_metadata)


def _explain_fences(policy: Policy) -> Iterator[str]:
    for position, fence in enumerate(policy.fences):
        path = f"fences[{position}] ({fence.name})"
        if not fence.suffix and (fence.namespace, fence.lease) not in policy.bindings:
            yield (
                f"{path}: lease {fence.lease_text} has no binding: anyone with write access to it can move the fence; "
                "add it to bindings"
            )
        if fence.denies_if_lease_is_missing and not fence.namespaces:
            # Beside a token, missing_lease is deny.
            alternative = "" if fence.has_token else ", or set missing_lease: allow"
            yield (
                f"{path}: while lease {fence.lease_text} does not exist, API servers refuse these writes by anyone, "
                f"in every namespace; list namespaces{alternative}"
            )
        if fence.has_token and any(one.subresource == "scale" for one in fence.resources):
            yield f"{path}.token: a Scale has no annotations: there the writer is compared, but no term"
        if fence.has_token and (bare := _list_status_without_token(fence)):
            yield (
                f"{path}.token: a write of {bare} may store no token: its term is compared with the token that the "
                "leader's last write of the resource itself left"
            )
        if fence.has_token and (open_ := _list_unlisted_status(fence)):
            yield (
                f"{path}.resources: the content of {open_} is not fenced, only the metadata that it may change; list "
                "it unless followers write it"
            )
        if any(template.claim == "node" for template in fence.holders):
            yield f"{path}.holder: ${{node}} cannot distinguish two pods on the same node"
