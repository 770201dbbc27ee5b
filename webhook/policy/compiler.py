"""From a policy file's typed document to a policy: layers folded, indexes built, what contradicts itself refused."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import product
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, fields

from webhook.api.request import Operation
from webhook.policy.error import PolicyError
from webhook.policy.fences import fences_of
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
from webhook.policy.schema_types import Exemption, LeaseBinding, Override, PolicyDocument, Rules
from webhook.rules.binding import Binding
from webhook.rules.mode import Mode

EXEMPT_USERS: Final = ("system:apiserver",)
EXEMPT_GROUPS: Final = ("system:masters",)
"""Exempt in every policy: the API server itself, and people who can remove this webhook anyway."""

BOUND: Final[Mapping[Setting, Value]] = {("owner-reference-added", MODE): Mode.DENY}
"""What a binding sets where the file does not: an owner that does not exist would have the bound lease deleted."""

T = TypeVar("T")
MOST_COMBINATIONS: Final = 200_000
"""Far more than people write by hand, and small enough to index in a second."""
USER: Final = "user:"

ANYWHERE: Final = "*"
_RULES: Final = {rule.name: rule.encode_name for rule in fields(Rules)}
_DAY: Final = 86_400 * 1_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_UNKNOWN_VARIABLE: Final = re.compile(r"\$\{(?!pod\})")


def compiled(document: PolicyDocument) -> Policy:
    """The policy of a document on top of its preset; raises PolicyError where the document contradicts itself."""
    _check_size(document)
    base = preset(document.preset)
    default = _default(base, document)
    bound = _default(base, document, BOUND)
    return Policy(
        document=document,
        preset=document.preset,
        digest=_digest(base, document),
        mode=min(mode_of(base.mode), mode_of(document.mode)),
        enforce_without_stamps=document.without_stamps == "enforce",
        default=default,
        bound=bound,
        overrides=_overrides(document.overrides, default),
        bindings=_bindings(document.bindings),
        exemptions=_exemptions(document.exempt),
        docs_url="" if isinstance(document.docs_url, UnsetType) else document.docs_url.rstrip("/"),
        fences=fences_of(document.fences or ()),
    )


def mode_of(word: str) -> Mode:
    """The mode that a policy file spells in lower case."""
    return Mode[word.upper()]


def settings_of(rules: Rules) -> dict[Setting, Value]:
    """What a `rules` mapping sets."""
    settings: dict[Setting, Value] = {}
    for field, rule in _RULES.items():
        said = getattr(rules, field)
        if said is not UNSET:
            for name, value in asdict(said).items():
                if value is not UNSET:
                    settings[rule, name] = mode_of(value) if name == MODE else value
    return settings


def until_of(exemption: Exemption) -> int:
    """The first microsecond since 1970 at which an exemption no longer holds."""
    if isinstance(exemption.until, UnsetType):
        return FOREVER
    return (exemption.until.toordinal() - _EPOCH + 1) * _DAY


def operations_of(entry: Exemption | Override) -> tuple[Operation, ...]:
    """The operations on which an exemption or an override holds."""
    if isinstance(entry.operations, UnsetType):
        return OPERATIONS
    return tuple(Operation(word) for word in entry.operations)


def users_of(exemption: Exemption) -> list[str]:
    """The user names of an exemption; a service account is the user that its token authenticates as."""
    accounts = (account.replace("/", ":") for account in exemption.service_accounts)
    return [*exemption.users, *(f"system:serviceaccount:{account}" for account in accounts)]


def _default(base: PolicyDocument, document: PolicyDocument, between: Mapping[Setting, Value] = {}) -> LeasePolicy:
    """What holds for all leases; `between` stands above the preset and below the file's own rules."""
    settings = settings_of(document.rules)
    default = with_settings(LeasePolicy(modes={}), settings_of(base.rules) | dict(between) | settings)
    _check_numbers(default, settings, "rules")
    return default


def _overrides(overrides: list[Override], default: LeasePolicy) -> dict[Operation, LeaseIndex[Settings]]:
    indexes: dict[Operation, LeaseIndex[Settings]] = dict.fromkeys(OPERATIONS, LeaseIndex())
    if _differ_by_operation(overrides):
        indexes = {operation: LeaseIndex() for operation in OPERATIONS}
    for position, override in enumerate(overrides):
        path = f"overrides[{position}]"
        values = settings_of(override.rules)
        _check_numbers(with_settings(default, values), values, f"{path}.rules")
        settings: Settings = {setting: Decided(position, value) for setting, value in values.items()}
        for index in dict.fromkeys(indexes[operation] for operation in operations_of(override)):
            _put(index, override, settings, later_wins, path)
    return indexes


def _differ_by_operation(overrides: list[Override]) -> bool:
    return any(override.operations is not UNSET for override in overrides)


def _exemptions(exemptions: list[Exemption]) -> Exemptions:
    users: dict[str, LeaseIndex[Exempted]] = {user: _everywhere() for user in EXEMPT_USERS}
    groups: dict[str, LeaseIndex[Exempted]] = {group: _everywhere() for group in EXEMPT_GROUPS}
    anybody: LeaseIndex[Exempted] = LeaseIndex()
    for position, exemption in enumerate(exemptions):
        path = f"exempt[{position}]"
        who = users_of(exemption)
        if not (who or exemption.groups or exemption.namespaces or exemption.leases):
            raise PolicyError("must say whom or where: users, groups, service_accounts, namespaces or leases", path)
        indexes = [users.setdefault(user, LeaseIndex()) for user in who]
        indexes += [groups.setdefault(group, LeaseIndex()) for group in exemption.groups]
        exempted: Exempted = dict.fromkeys(product(*_rules_and_operations(exemption)), until_of(exemption))
        for index in indexes or [anybody]:
            _put(index, exemption, exempted, _longer, path)
    return Exemptions(users, groups, anybody)


def _everywhere() -> LeaseIndex[Exempted]:
    index: LeaseIndex[Exempted] = LeaseIndex()
    index.put(ANYWHERE, ANYWHERE, {(ALL, ALL): FOREVER}, _longer)
    return index


def _rules_and_operations(exemption: Exemption) -> tuple[Sequence[str], Sequence[str]]:
    """What the entry names, `ALL` if it names none."""
    rules = [ALL] if isinstance(exemption.rules, UnsetType) else exemption.rules
    return rules, [ALL] if isinstance(exemption.operations, UnsetType) else exemption.operations


def _longer(earlier: Exempted, later: Exempted) -> Exempted:
    """Both; what both exempt from ends with the one that lasts longer."""
    return {**earlier, **{key: max(until, earlier.get(key, until)) for key, until in later.items()}}


def _put(index: LeaseIndex[T], where: Exemption | Override, value: T, merge: Callable[[T, T], T], path: str) -> None:
    try:
        for namespace in where.namespaces or [ANYWHERE]:
            for lease in where.leases or [ANYWHERE]:
                index.put(namespace, lease, value, merge)
    except TooManyAlikeError as error:
        problem = f"more than {MOST_ALIKE} globs have the beginning and the end of one of these; use names, or one glob"
        raise PolicyError(problem, path) from error


def _bindings(bindings: list[LeaseBinding]) -> dict[tuple[str, str], Binding]:
    found: dict[tuple[str, str], Binding] = {}
    first: dict[tuple[str, str], int] = {}
    for position, binding in enumerate(bindings):
        key = (binding.namespace, binding.lease)
        path = f"bindings[{position}]"
        if key in found:
            raise PolicyError(f"{'/'.join(key)} is bound already, by bindings[{first[key]}]", path)
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


def _check_size(document: PolicyDocument) -> None:
    combinations = 0
    for position, exemption in enumerate(document.exempt):
        requesters = len(exemption.users) + len(exemption.groups) + len(exemption.service_accounts)
        rules, operations = _rules_and_operations(exemption)
        combinations += max(1, requesters) * _pairs(exemption) * len(rules) * len(operations)
        _check_combinations(combinations, f"exempt[{position}]")
    by_operation = _differ_by_operation(document.overrides)
    for position, override in enumerate(document.overrides):
        combinations += _pairs(override) * (len(operations_of(override)) if by_operation else 1)
        _check_combinations(combinations, f"overrides[{position}]")


def _pairs(where: Exemption | Override) -> int:
    return max(1, len(where.namespaces)) * max(1, len(where.leases))


def _check_combinations(combinations: int, path: str) -> None:
    if combinations > MOST_COMBINATIONS:
        problem = (
            f"more than {MOST_COMBINATIONS} combinations of requester, namespace, lease, rule and operation so far; "
            "use globs"
        )
        raise PolicyError(problem, path)


def _check_numbers(policy: LeasePolicy, settings: Mapping[Setting, Value], path: str) -> None:
    """A warn tier above the deny tier of the same unit would never speak."""
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
