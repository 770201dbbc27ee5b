"""A compiled policy: resolved, frozen, with lookups whose cost does not depend on the length of the file."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from operator import itemgetter
from typing import Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from webhook.admission.policy.fences import Fence
from webhook.admission.policy.schema import ANYWHERE, MODE, PolicyDocument, PolicyError, Setting, Value
from webhook.admission.rules import holders
from webhook.admission.rules.checks import NO_RULES
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.limits import DEFAULT_LIMITS, Limits, find_numbers
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import EXEMPTIBLE, RULES
from webhook.admission.rules.stamps import Stamps
from webhook.cached_property import cached_property
from webhook.kubernetes.request import Operation, UserInfo

T = TypeVar("T")
ALWAYS_EXEMPT: Final = frozenset({"user:system:apiserver", "group:system:masters"})
"""Requesters that every policy exempts from all that can have exemptions: the API server itself, and people who can
remove this webhook anyway."""
_RULE: Final = "{rule}"
"""What stands for the rule's id in `docs_url`."""
MAX_ENTRIES: Final = 500
"""Entries of one bucket of a `LeaseIndex`, all of which a lookup matches: 500 globs take less than 0.1 ms."""


class LeasePolicy(Struct, frozen=True):
    """The settings for one lease: a mode for each rule id, and the numbers.

    The modes are those before the cap and exemptions: `DENY` also under the `observe` preset, whose cap is `WARN`.
    """

    modes: Mapping[str, Mode]
    limits: Limits = DEFAULT_LIMITS

    def numbers(self, rule: str) -> dict[str, int]:
        """Return the numbers of a rule by their names; most rules have none."""
        numbers = RULES[rule].limits if rule in RULES else None
        return asdict(find_numbers(self.limits, numbers)) if numbers else {}


class ExemptRules(Struct, frozen=True):
    """The rules and operations of one exemption; `until` is exclusive, in microseconds since 1970."""

    rules: frozenset[str]
    operations: tuple[Operation, ...]
    until: int


_Glob = tuple[re.Pattern[str] | None, re.Pattern[str] | None, T]


class LeaseIndex(Generic[T]):
    """Values by (namespace glob, lease glob); filled by `put`, then only read.

    Entries that give the namespace, the name, both or neither without a wildcard are in one dict, by what they give; a
    lookup matches the globs of the four buckets that can apply. Without a cache: clients choose the names of leases.
    """

    def __init__(self) -> None:
        self._buckets: dict[tuple[str | None, str | None], list[_Glob[T]]] = {}

    def put(self, namespaces: Sequence[str], leases: Sequence[str], value: T, path: str = "") -> None:
        """Add a value for each pair; without a list, for all. Raises PolicyError, about the entry at `path`."""
        for namespace, lease in product(namespaces or [ANYWHERE], leases or [ANYWHERE]):
            bucket = self._buckets.setdefault((_literal(namespace), _literal(lease)), [])
            if len(bucket) == MAX_ENTRIES:
                problem = f"more than {MAX_ENTRIES} globs would be matched for one lease; use names, or one glob"
                raise PolicyError(problem, path)
            bucket.append((_pattern(namespace), _pattern(lease), value))

    def find(self, namespace: str, name: str) -> list[T]:
        """Return the values whose globs match this lease, in no particular order."""
        found: list[T] = []
        for key in ((namespace, name), (namespace, None), (None, name), (None, None)):
            for namespaces, leases, value in self._buckets.get(key, ()):
                if (namespaces is None or namespaces.match(namespace)) and (leases is None or leases.match(name)):
                    found.append(value)
        return found


Overrides = Mapping[Operation, LeaseIndex[tuple[int, Mapping[Setting, Value]]]]


class Policy(Struct, frozen=True, dict=True):
    """A policy file and its preset, ready for lookups.

    `mode` is the cap for every finding, field rules included: the lower of the file's and the preset's (observe: WARN);
    `OFF` allows everything. A finding that only the cap keeps from denying is one that "would deny".
    `default` holds for leases without a binding, `bound` for leases with one.
    `digest` is eight hex digits of what the file and its preset say, comments left out; `document` is the file as typed
    values, for commands that show it. `docs_url` is "" if the file has none.
    `exemptions` are indexed by requester, see `UserInfo.requesters`. `overrides` are indexed for each operation by
    itself: one for CREATE alone costs a renewal nothing.
    """

    document: PolicyDocument
    preset: str
    digest: str
    mode: Mode
    enforce_without_stamps: bool
    default: LeasePolicy
    bound: LeasePolicy
    overrides: Overrides
    bindings: Mapping[tuple[str, str], Binding]
    exemptions: Mapping[str, LeaseIndex[ExemptRules]]
    docs_url: str = ""
    fences: tuple[Fence, ...] = ()
    stamps: Mapping[str, Stamps] = {}

    def find_page(self, rule: str) -> str:
        """Return where a rule is explained: at an address, else by a command."""
        if not self.docs_url:
            return f"lease-webhook rules {rule}"
        address = self.docs_url if _RULE in self.docs_url else f"{self.docs_url.rstrip('/')}/{_RULE}"
        return address.replace(_RULE, rule)

    def end_with_page(self, rule: str) -> str:
        """Return how a denial ends: with the page, or nothing, because who is denied may lack our commands."""
        return f", see {self.find_page(rule)}" if self.docs_url else ""

    @cached_property
    def name(self) -> str:
        """The preset and the digest, as verdicts name the policy."""
        return f"{self.preset} {self.digest}"

    def resolve(self, namespace: str, name: str, operation: Operation) -> LeasePolicy:
        """Return modes and numbers for one of `OPERATIONS` on a lease, or on a candidate of it."""
        document = self.document
        if not document.overrides and not document.bindings:
            return self.default
        base = self.bound if (namespace, name) in self.bindings else self.default
        settings = self.find_overrides(namespace, name, operation)
        if not settings:
            return base
        return apply_settings(base, {setting: value for setting, (_, value) in settings.items()})

    def find_limits(self, namespace: str, name: str) -> Limits:
        """Return the numbers for a lease, and its candidates, as if it were being created: a `FindLimits`."""
        return self.resolve(namespace, name, Operation.CREATE).limits

    def find_overrides(self, namespace: str, name: str, operation: Operation) -> dict[Setting, tuple[int, Value]]:
        """Return the settings that overrides decide for one lease and its candidates, with the position of each.

        If several overrides set a value, the last one in the file decides.
        """
        found = sorted(self.overrides[operation].find(namespace, name), key=itemgetter(0))
        return {setting: (override, value) for override, values in found for setting, value in values.items()}

    def find_exempt_rules(
        self, user: UserInfo, namespace: str, name: str, operation: Operation, now: int
    ) -> frozenset[str]:
        """Return the ids of the rules that this writer is exempt from on a lease and its candidates.

        `now` is in microseconds.
        """
        if is_always_exempt(user):
            return EXEMPTIBLE
        if not self.exemptions or self.exemptions.keys().isdisjoint(user.requesters):
            return NO_RULES  # nearly every writer
        indexes = [self.exemptions[requester] for requester in user.requesters if requester in self.exemptions]
        found = (exemption for index in indexes for exemption in index.find(namespace, name))
        return NO_RULES.union(
            *(exemption.rules for exemption in found if now < exemption.until and operation in exemption.operations)
        )


def is_always_exempt(user: UserInfo) -> bool:
    """Return true if every policy exempts a user from the rules that can have exemptions."""
    return not ALWAYS_EXEMPT.isdisjoint(user.requesters)


def apply_settings(policy: LeasePolicy, settings: Mapping[Setting, Value]) -> LeasePolicy:
    """Return the policy with some modes and numbers set."""
    modes = dict(policy.modes)
    limits = dict(policy.limits)
    for (rule, name), value in settings.items():
        if name == MODE:
            modes[rule] = Mode(value)
        else:
            limits_type = RULES[rule].limits
            assert limits_type is not None
            limits[limits_type] = replace(find_numbers(limits, limits_type), **{name: value})
    return LeasePolicy(modes, limits)


def _literal(pattern: str) -> str | None:
    return pattern if holders.is_literal(pattern) else None


def _pattern(pattern: str) -> re.Pattern[str] | None:
    """Return what is left to match of a glob once its bucket is found, None if nothing is."""
    return None if pattern == ANYWHERE or holders.is_literal(pattern) else holders.compile_glob(pattern)
