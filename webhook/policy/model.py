"""A policy as the core sees it: resolved, frozen and quick to ask."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.api.user import UserInfo
from webhook.api.verdict import Mode
from webhook.policy.lookup import LeaseIndex
from webhook.policy.settings import PolicyDocument
from webhook.rules.binding import Binding
from webhook.rules.limits import DEFAULT_LIMITS, Limits

FOREVER: Final = 1 << 63
"""An `until` in microseconds that no clock reaches."""

MODE: Final = "mode"


class LeasePolicy(Struct, frozen=True):
    """What holds for one lease: a mode for each rule id, the numbers, and the identity binding if there is one.

    The modes stand before the policy's cap and before exemptions: a rule that would deny says `DENY` here even under
    the preset observe, whose cap is `WARN`.
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


class Exemptions(Struct, frozen=True):
    """Until when (exclusive, microseconds since 1970) a requester is exempt on which leases."""

    users: Mapping[str, LeaseIndex[int]]
    groups: Mapping[str, LeaseIndex[int]]
    anybody: LeaseIndex[int]


class Policy(Struct, frozen=True):
    """What people decided, ready for lookups that do not depend on how long the file is.

    `mode` is the cap for every finding, field rules included: the lower of the file's and the preset's (observe: WARN);
    `OFF` allows everything. A finding that only the cap keeps from denying is one that "would deny".
    `default` holds for leases without a binding, `bound` for leases with one.
    `digest` is eight hex digits of what the file and its preset say, comments left out; `document` is the file as typed
    values, for people who ask what it says.
    """

    document: PolicyDocument
    preset: str
    digest: str
    mode: Mode
    enforce_without_stamps: bool
    default: LeasePolicy
    bound: LeasePolicy
    overrides: LeaseIndex[Settings]
    bindings: Mapping[tuple[str, str], Binding]
    exemptions: Exemptions

    def for_lease(self, namespace: str, name: str) -> LeasePolicy:
        """Modes, numbers and binding for one lease (for a candidate: of its own namespace and name)."""
        document = self.document
        if not document.overrides and not document.bindings:
            return self.default
        binding = self.bindings.get((namespace, name))
        settings = self.overridden(namespace, name)
        if binding is None and not settings:
            return self.default
        base = self.default if binding is None else self.bound
        changed = with_settings(base, {setting: decided.value for setting, decided in settings.items()})
        return replace(changed, binding=binding)

    def overridden(self, namespace: str, name: str) -> dict[Setting, Decided]:
        """The settings that overrides decide for one lease; where several do, the last one in the file."""
        settings: dict[Setting, Decided] = {}
        for found in self.overrides.find(namespace, name):
            settings = later_wins(settings, found)
        return settings

    def exempts(self, user: UserInfo, namespace: str, name: str, now: int) -> bool:
        """Whether section 5 rules are silent for this writer on this lease; `now` in microseconds since 1970."""
        exemptions = self.exemptions
        indexes = [exemptions.anybody]
        if user.username in exemptions.users:
            indexes.append(exemptions.users[user.username])
        indexes.extend(exemptions.groups[group] for group in user.groups if group in exemptions.groups)
        return any(now < until for index in indexes for until in index.find(namespace, name))


def later_wins(earlier: Settings, later: Settings) -> dict[Setting, Decided]:
    """Both, where each setting comes from the override that stands further down in the file."""
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
