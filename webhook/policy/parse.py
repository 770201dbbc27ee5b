"""From the text of a policy file to its policy: layers merged, indexes built, contradictions refused."""

import hashlib
import re
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final, TypeVar

import msgspec
from msgspec.structs import asdict

from webhook.api.request import Operation
from webhook.policy import document as policy_document
from webhook.policy.document import preset
from webhook.policy.error import PolicyError
from webhook.policy.fences import fences_of
from webhook.policy.model import (
    MAX_ENTRIES,
    Exemptions,
    ExemptRules,
    LeaseIndex,
    LeasePolicy,
    ModeDecision,
    Policy,
    TooManyEntriesError,
    with_settings,
)
from webhook.policy.schema import (
    ANYWHERE,
    EXEMPTIBLE,
    FOREVER,
    MODE,
    OPERATIONS,
    Exemption,
    LeaseBinding,
    Override,
    PolicyDocument,
    Setting,
    Value,
    mode_of,
    operations_of,
    rules_of,
    settings_of,
    until_of,
    users_of,
)
from webhook.rules.holders import Binding
from webhook.rules.rule import Mode

T = TypeVar("T")
EXEMPT_USERS: Final = ("system:apiserver",)
EXEMPT_GROUPS: Final = ("system:masters",)
"""Exempt in every policy: the API server itself, and people who can remove this webhook anyway."""
BOUND: Final[Mapping[Setting, Value]] = {("owner-reference-added", MODE): Mode.DENY}
"""What a binding sets unless the file does: an owner that does not exist would have the bound lease deleted."""
MAX_COMBINATIONS: Final = 200_000
"""Far more than people write by hand, and few enough to index in a second."""

_USER: Final = "user:"
_UNKNOWN_VARIABLE: Final = re.compile(r"\$\{(?!pod\})")


def parse(text: str) -> Policy:
    """Return the policy that a file describes.

    Raises:
        PolicyError: the text is not a policy; no other error is raised, whatever the text is.

    """
    value = policy_document.read(text)
    try:
        return _compiled(policy_document.converted(value))
    except PolicyError as error:
        raise PolicyError(error.problem, error.path, policy_document.line_of(text, error.path)) from error


def _compiled(document: PolicyDocument) -> Policy:
    """Return the policy of a document on top of its preset."""
    _check_size(document)
    base = preset(document.preset)
    default = _default(base, document)
    return Policy(
        document=document,
        preset=document.preset,
        digest=hashlib.sha256(msgspec.json.encode([base, document], order="deterministic")).hexdigest()[:8],
        mode=min(mode_of(base.mode), mode_of(document.mode)),
        enforce_without_stamps=document.without_stamps == "enforce",
        default=default,
        bound=_default(base, document, BOUND),
        overrides=_overrides(document.overrides, default),
        bindings=_bindings(document.bindings),
        exemptions=_exemptions(document.exempt),
        docs_url=(document.docs_url or "").rstrip("/"),
        fences=fences_of(document.fences or ()),
    )


def _check_size(document: PolicyDocument) -> None:
    """Raise PolicyError for the entry with which the combinations become too many, before any of them is indexed."""
    combinations = 0
    for position, one in enumerate(document.exempt):
        requesters = len(one.users) + len(one.groups) + len(one.service_accounts)
        combinations += _product(requesters, len(one.namespaces), len(one.leases), len(rules_of(one)))
        _check_combinations(combinations, f"exempt[{position}]")
    for position, override in enumerate(document.overrides):
        combinations += _product(len(override.namespaces), len(override.leases), len(override.operations or ()))
        _check_combinations(combinations, f"overrides[{position}]")


def _product(*lengths: int) -> int:
    return prod(max(1, length) for length in lengths)


def _check_combinations(combinations: int, path: str) -> None:
    if combinations > MAX_COMBINATIONS:
        problem = f"more than {MAX_COMBINATIONS} combinations of requester, namespace, lease, rule and operation so far"
        raise PolicyError(f"{problem}; use globs", path)


def _default(base: PolicyDocument, document: PolicyDocument, between: Mapping[Setting, Value] = {}) -> LeasePolicy:
    """Return what holds for all leases; `between` is a layer above the preset and below the file's own rules."""
    settings = settings_of(document.rules)
    default = with_settings(LeasePolicy(modes={}), settings_of(base.rules) | dict(between) | settings)
    _check_numbers(default, settings, "rules")
    return default


def _overrides(
    overrides: list[Override], default: LeasePolicy
) -> dict[Operation, LeaseIndex[Mapping[Setting, ModeDecision]]]:
    indexes: dict[Operation, LeaseIndex[Mapping[Setting, ModeDecision]]] = {one: LeaseIndex() for one in OPERATIONS}
    for position, override in enumerate(overrides):
        path = f"overrides[{position}]"
        values = settings_of(override.rules)
        _check_numbers(with_settings(default, values), values, f"{path}.rules")
        decisions = {setting: ModeDecision(position, value) for setting, value in values.items()}
        for operation in operations_of(override):
            _put(indexes[operation], override, decisions, path)
    return indexes


def _exemptions(exemptions: list[Exemption]) -> Exemptions:
    users: dict[str, LeaseIndex[ExemptRules]] = {user: _everywhere() for user in EXEMPT_USERS}
    groups: dict[str, LeaseIndex[ExemptRules]] = {group: _everywhere() for group in EXEMPT_GROUPS}
    anyone: LeaseIndex[ExemptRules] = LeaseIndex()
    for position, exemption in enumerate(exemptions):
        path = f"exempt[{position}]"
        names = users_of(exemption)
        if not (names or exemption.groups or exemption.namespaces or exemption.leases):
            raise PolicyError("must have users, groups, service_accounts, namespaces or leases", path)
        indexes = [users.setdefault(user, LeaseIndex()) for user in names]
        indexes += [groups.setdefault(group, LeaseIndex()) for group in exemption.groups]
        rules = frozenset(rules_of(exemption) or EXEMPTIBLE)
        for index in indexes or [anyone]:
            _put(index, exemption, ExemptRules(rules, operations_of(exemption), until_of(exemption)), path)
    return Exemptions(users, groups, anyone)


def _everywhere() -> LeaseIndex[ExemptRules]:
    index: LeaseIndex[ExemptRules] = LeaseIndex()
    index.put(ANYWHERE, ANYWHERE, ExemptRules(frozenset(EXEMPTIBLE), OPERATIONS, FOREVER))
    return index


def _put(index: LeaseIndex[T], entry: Exemption | Override, value: T, path: str) -> None:
    try:
        for namespace, lease in product(entry.namespaces or [ANYWHERE], entry.leases or [ANYWHERE]):
            index.put(namespace, lease, value)
    except TooManyEntriesError as error:
        problem = f"more than {MAX_ENTRIES} globs would be matched for one lease; use names, or one glob"
        raise PolicyError(problem, path) from error


def _bindings(bindings: list[LeaseBinding]) -> dict[tuple[str, str], Binding]:
    found: dict[tuple[str, str], Binding] = {}
    first: dict[tuple[str, str], int] = {}
    for position, binding in enumerate(bindings):
        key = (binding.namespace, binding.lease)
        path = f"bindings[{position}]"
        if key in found:
            raise PolicyError(f"{'/'.join(key)} is already bound by bindings[{first[key]}]", path)
        for number, template in enumerate(binding.holder):
            if _UNKNOWN_VARIABLE.search(template):
                raise PolicyError("`${pod}` is the only variable", f"{path}.holder[{number}]")
        first[key] = position
        found[key] = _binding(binding)
    return found


def _binding(binding: LeaseBinding) -> Binding:
    accounts = [writer.partition("/") for writer in binding.writers if not writer.startswith(_USER)]
    return Binding(
        service_accounts=frozenset((namespace, name) for namespace, _, name in accounts),
        users=frozenset(writer.removeprefix(_USER) for writer in binding.writers if writer.startswith(_USER)),
        holders=tuple(binding.holder),
        require_pod=binding.require_pod,
    )


def _check_numbers(policy: LeasePolicy, settings: Mapping[Setting, Value], path: str) -> None:
    """Refuse a warn tier above the deny tier of the same unit: it would never apply."""
    for rule, name in settings:
        if name == MODE:
            continue
        numbers: Mapping[str, int] = asdict(getattr(policy.limits, rule.replace("-", "_")))
        for warn, value in numbers.items():
            deny = warn.replace("warn_", "deny_", 1)
            if deny in numbers and value > numbers[deny]:
                raise PolicyError(f"{warn} {value} must not be above {deny} {numbers[deny]}", f"{path}.{rule}")
