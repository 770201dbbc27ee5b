"""A compiled policy: resolved, frozen, with fast lookups."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.api.request import Operation
from webhook.api.user import UserInfo
from webhook.policy.fences.model import Fence
from webhook.policy.index import LeaseIndex
from webhook.policy.schema_types import EXEMPTIBLE, PolicyDocument
from webhook.rules.binding import Binding
from webhook.rules.limits import DEFAULT_LIMITS, Limits
from webhook.rules.mode import Mode

FOREVER: Final = 1 << 63
"""An `until` in microseconds that no clock reaches."""

MODE: Final = "mode"

ALL: Final = "*"
"""Stands for every rule, or every operation, of an exemption."""

OPERATIONS: Final = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
"""What a policy may name; CONNECT changes nothing and is not evaluated."""

_ALL_RULES: Final = frozenset(EXEMPTIBLE)
_NO_RULE: Final[frozenset[str]] = frozenset()


class LeasePolicy(Struct, frozen=True):
    """What applies to one lease: a mode for each rule id, the numbers, and the identity binding if there is one.

    The modes do not include the policy's cap and exemptions: a rule that would deny has `DENY` here even under the
    preset observe, whose cap is `WARN`.
    """

    modes: Mapping[str, Mode]
    limits: Limits = DEFAULT_LIMITS
    binding: Binding | None = None


Setting = tuple[str, str]
"""(rule id, "mode" or the name of a number)."""

Value = Mode | int


class Decided(Struct, frozen=True):
    """One setting, and the override that decided it, as its position in the file (counted from 0)."""

    override: int
    value: Value


Settings = Mapping[Setting, Decided]


Exempted = Mapping[tuple[str, str], int]
"""Until when (exclusive, microseconds since 1970) each (rule or ALL, operation or ALL) is exempt."""


class Exemptions(Struct, frozen=True):
    """What a requester is exempt from on which leases."""

    users: Mapping[str, LeaseIndex[Exempted]]
    groups: Mapping[str, LeaseIndex[Exempted]]
    anyone: LeaseIndex[Exempted]


class Policy(Struct, frozen=True):
    """A policy file and its preset, ready for lookups whose cost does not depend on the length of the file.

    `mode` is the cap for every finding, field rules included: the lower of the file's and the preset's (observe: WARN);
    `OFF` allows everything. A finding that only the cap keeps from denying is one that "would deny".
    `default` holds for leases without a binding, `bound` for leases with one.
    `digest` is eight hex digits of what the file and its preset say, comments left out; `document` is the file as typed
    values, for commands that show it. `docs_url` is "" if the file has none, and ends without a slash.
    `overrides` are indexed for each operation by itself: one for CREATE alone costs a renewal nothing.
    """

    document: PolicyDocument
    preset: str
    digest: str
    mode: Mode
    enforce_without_stamps: bool
    default: LeasePolicy
    bound: LeasePolicy
    overrides: Mapping[Operation, LeaseIndex[Settings]]
    bindings: Mapping[tuple[str, str], Binding]
    exemptions: Exemptions
    docs_url: str = ""
    fences: tuple[Fence, ...] = ()

    def for_lease(self, namespace: str, name: str, operation: Operation) -> LeasePolicy:
        """Modes, numbers and binding for a write to one lease (for a candidate: of its own namespace and name).

        The operation is one of `OPERATIONS`.
        """
        document = self.document
        if not document.overrides and not document.bindings:
            return self.default
        binding = self.bindings.get((namespace, name))
        settings = self.overridden(namespace, name, operation)
        if binding is None and not settings:
            return self.default
        base = self.default if binding is None else self.bound
        changed = with_settings(base, {setting: decided.value for setting, decided in settings.items()})
        return replace(changed, binding=binding)

    def overridden(self, namespace: str, name: str, operation: Operation) -> dict[Setting, Decided]:
        """The settings that overrides decide for a write to one lease; of several, the last one in the file."""
        settings: dict[Setting, Decided] = {}
        for found in self.overrides[operation].find(namespace, name):
            settings = later_wins(settings, found)
        return settings

    def exempt_rules(self, user: UserInfo, namespace: str, name: str, operation: Operation, now: int) -> frozenset[str]:
        """The ids of the rules that this writer is exempt from for such a write; `now` in microseconds since 1970."""
        exemptions = self.exemptions
        indexes = [exemptions.anyone]
        if user.username in exemptions.users:
            indexes.append(exemptions.users[user.username])
        indexes.extend(exemptions.groups[group] for group in user.groups if group in exemptions.groups)
        exempt = _NO_RULE
        for index in indexes:
            for exempted in index.find(namespace, name):
                rules = {rule for (rule, on), until in exempted.items() if now < until and on in (ALL, operation)}
                if ALL in rules:
                    return _ALL_RULES
                exempt |= rules
        return exempt


def later_wins(earlier: Settings, later: Settings) -> dict[Setting, Decided]:
    """Both combined; if both have a setting, the override further down in the file counts."""
    merged = dict(earlier)
    for setting, decided in later.items():
        if setting not in merged or merged[setting].override <= decided.override:
            merged[setting] = decided
    return merged


def with_settings(policy: LeasePolicy, settings: Mapping[Setting, Value]) -> LeasePolicy:
    """The policy with some modes and numbers set."""
    modes = dict(policy.modes)
    limits = policy.limits
    for (rule, name), value in settings.items():
        if name == MODE:
            modes[rule] = Mode(value)
        else:
            field = rule.replace("-", "_")
            limits = replace(limits, **{field: replace(getattr(limits, field), **{name: value})})
    return LeasePolicy(modes, limits, policy.binding)
