"""From a policy file's typed document to a policy: layers merged, indexes built, contradictions refused."""

import hashlib
import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Final, TypeVar

import msgspec
from msgspec import UnsetType
from msgspec.structs import asdict

from webhook.api.request import Operation
from webhook.policy.entries import ANYWHERE, mode_of, operations_of, rules_of, settings_of, until_of, users_of
from webhook.policy.error import PolicyError
from webhook.policy.fences.compiler import fences_of
from webhook.policy.index import MOST_ALIKE, LeaseIndex, TooManyAlikeError
from webhook.policy.model import (
    ALL,
    FOREVER,
    MODE,
    OPERATIONS,
    Decided,
    Exempted,
    Exemptions,
    LeasePolicy,
    Policy,
    Setting,
    Settings,
    Value,
    later_wins,
    with_settings,
)
from webhook.policy.presets import preset
from webhook.policy.schema_types import Exemption, LeaseBinding, Override, PolicyDocument
from webhook.policy.size import check_size, differ_by_operation
from webhook.rules.binding import Binding
from webhook.rules.mode import Mode

EXEMPT_USERS: Final = ("system:apiserver",)
EXEMPT_GROUPS: Final = ("system:masters",)
"""Exempt in every policy: the API server itself, and people who can remove this webhook anyway."""

BOUND: Final[Mapping[Setting, Value]] = {("owner-reference-added", MODE): Mode.DENY}
"""What a binding sets unless the file does: an owner that does not exist would have the bound lease deleted."""

T = TypeVar("T")
USER: Final = "user:"
_UNKNOWN_VARIABLE: Final = re.compile(r"\$\{(?!pod\})")


def compiled(document: PolicyDocument) -> Policy:
    """The policy of a document on top of its preset.

    Raises:
        PolicyError: the document contradicts itself or is too large.

    """
    check_size(document)
    base = preset(document.preset)
    default = _default(base, document)
    return Policy(
        document=document,
        preset=document.preset,
        digest=_digest(base, document),
        mode=min(mode_of(base.mode), mode_of(document.mode)),
        enforce_without_stamps=document.without_stamps == "enforce",
        default=default,
        bound=_default(base, document, BOUND),
        overrides=_overrides(document.overrides, default),
        bindings=_bindings(document.bindings),
        exemptions=_exemptions(document.exempt),
        docs_url="" if isinstance(document.docs_url, UnsetType) else document.docs_url.rstrip("/"),
        fences=fences_of(document.fences or ()),
    )


def _default(base: PolicyDocument, document: PolicyDocument, between: Mapping[Setting, Value] = {}) -> LeasePolicy:
    """What holds for all leases; `between` is a layer above the preset and below the file's own rules."""
    settings = settings_of(document.rules)
    default = with_settings(LeasePolicy(modes={}), settings_of(base.rules) | dict(between) | settings)
    _check_numbers(default, settings, "rules")
    return default


def _overrides(overrides: list[Override], default: LeasePolicy) -> dict[Operation, LeaseIndex[Settings]]:
    indexes: dict[Operation, LeaseIndex[Settings]] = dict.fromkeys(OPERATIONS, LeaseIndex())
    if differ_by_operation(overrides):
        indexes = {operation: LeaseIndex() for operation in OPERATIONS}
    for position, override in enumerate(overrides):
        path = f"overrides[{position}]"
        values = settings_of(override.rules)
        _check_numbers(with_settings(default, values), values, f"{path}.rules")
        settings: Settings = {setting: Decided(position, value) for setting, value in values.items()}
        for index in dict.fromkeys(indexes[operation] for operation in operations_of(override)):
            _put(index, override, settings, later_wins, path)
    return indexes


def _exemptions(exemptions: list[Exemption]) -> Exemptions:
    users: dict[str, LeaseIndex[Exempted]] = {user: _everywhere() for user in EXEMPT_USERS}
    groups: dict[str, LeaseIndex[Exempted]] = {group: _everywhere() for group in EXEMPT_GROUPS}
    anyone: LeaseIndex[Exempted] = LeaseIndex()
    for position, exemption in enumerate(exemptions):
        path = f"exempt[{position}]"
        names = users_of(exemption)
        if not (names or exemption.groups or exemption.namespaces or exemption.leases):
            raise PolicyError("must have users, groups, service_accounts, namespaces or leases", path)
        indexes = [users.setdefault(user, LeaseIndex()) for user in names]
        indexes += [groups.setdefault(group, LeaseIndex()) for group in exemption.groups]
        operations = operations_of(exemption) if exemption.operations else [ALL]
        exempted: Exempted = dict.fromkeys(product(rules_of(exemption) or [ALL], operations), until_of(exemption))
        for index in indexes or [anyone]:
            _put(index, exemption, exempted, _longer, path)
    return Exemptions(users, groups, anyone)


def _everywhere() -> LeaseIndex[Exempted]:
    index: LeaseIndex[Exempted] = LeaseIndex()
    index.put(ANYWHERE, ANYWHERE, {(ALL, ALL): FOREVER}, _longer)
    return index


def _longer(earlier: Exempted, later: Exempted) -> Exempted:
    """Both; of what both exempt from, the later end counts."""
    return {**earlier, **{key: max(until, earlier.get(key, until)) for key, until in later.items()}}


def _put(index: LeaseIndex[T], entry: Exemption | Override, value: T, merge: Callable[[T, T], T], path: str) -> None:
    try:
        for namespace in entry.namespaces or [ANYWHERE]:
            for lease in entry.leases or [ANYWHERE]:
                index.put(namespace, lease, value, merge)
    except TooManyAlikeError as error:
        problem = f"more than {MOST_ALIKE} globs begin and end like one of these; use names, or one glob"
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
    users = [writer.removeprefix(USER) for writer in binding.writers if writer.startswith(USER)]
    accounts = [writer.partition("/") for writer in binding.writers if not writer.startswith(USER)]
    return Binding(
        service_accounts=frozenset((namespace, name) for namespace, _, name in accounts),
        users=frozenset(users),
        holders=tuple(binding.holder),
        require_pod=binding.require_pod,
    )


def _check_numbers(policy: LeasePolicy, settings: Mapping[Setting, Value], path: str) -> None:
    """A warn tier above the deny tier of the same unit would never apply."""
    for rule, name in settings:
        if name == MODE:
            continue
        numbers: Mapping[str, int] = asdict(getattr(policy.limits, rule.replace("-", "_")))
        for warn, value in numbers.items():
            deny = warn.replace("warn_", "deny_", 1)
            if deny in numbers and value > numbers[deny]:
                raise PolicyError(f"{warn} {value} must not be above {deny} {numbers[deny]}", f"{path}.{rule}")


def _digest(base: PolicyDocument, document: PolicyDocument) -> str:
    return hashlib.sha256(msgspec.json.encode([base, document], order="deterministic")).hexdigest()[:8]
