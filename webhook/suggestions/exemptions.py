"""The narrowest exemptions for writes that were denied, and none for what looks like an attack."""

from collections.abc import Iterator
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import Final

from msgspec import Struct, field

from webhook.api.formats import dns_label, path_segment
from webhook.api.request import Operation
from webhook.inputs.items import Item, Observation
from webhook.policy.model import Policy
from webhook.policy.schema import EXEMPTIBLE, OPERATIONS
from webhook.suggestions.evidence import (
    NOT_DENIED,
    TOOK,
    Coverage,
    Evidence,
    Suspicions,
    account_of,
    annotated,
    attack_of,
    denied_by,
    is_name,
    left_out,
)
from webhook.yaml_writer import comment, flow, scalar

MOST: Final = 100_000
"""Combinations of user, lease, rules and operation that are remembered."""

OWNER: Final = "name the owner here"

_USER: Final = attrgetter("user")
_OF_VERB: Final = {"create": Operation.CREATE, "delete": Operation.DELETE, "deletecollection": Operation.DELETE}


class Denial(Struct, frozen=True):
    """What was denied: to whom, on which lease or candidate, by which rules."""

    user: str
    namespace: str
    name: str
    operation: Operation
    event: str
    rules: tuple[str, ...]


class Exemptions(Struct):
    """Denied writes, and those that would be denied without the cap of a policy.

    `policy` evaluates recorded reviews; in an audit log the webhook itself says what it denied. `until` is the last
    day of every exemption.
    """

    policy: Policy
    until: date
    suspicions: Suspicions
    owner: str = OWNER
    coverage: Coverage = field(default_factory=Coverage)
    denials: dict[Denial, Evidence] = field(default_factory=dict)
    attackers: set[tuple[str, str]] = field(default_factory=set)
    """By user and namespace."""
    writes: int = 0
    dropped: int = 0

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        self.coverage.observe(item)
        if not isinstance(item, Observation):
            return
        suspicions = self.suspicions.of(item)
        if not item.verb or item.writer is None:
            return
        if suspicions:
            self.attackers.add((item.writer.user, item.namespace))
        found = denied_by(self.policy, item, self.suspicions.clock) if item.request else annotated(item.answer)[1]
        self.writes += item.request is not None or found != NOT_DENIED
        if not found.rules:
            return
        operation = _operation_of(item, found.event)
        denial = Denial(item.writer.user, item.namespace, item.name, operation, found.event, tuple(sorted(found.rules)))
        if denial in self.denials or len(self.denials) < MOST:
            self.denials.setdefault(denial, Evidence()).add(item)
        else:
            self.dropped += 1

    def text(self) -> str:
        """A policy file with the exemptions, and comments; "" if the input has no verdict of the webhook."""
        if not self.writes:
            return ""
        lines: list[str] = []
        remarks: list[str] = []
        for user, denials in groupby(sorted(self.denials, key=_USER), key=_USER):
            exempt: dict[tuple[str, str], DeniedOnLease] = {}
            for denial in denials:
                evidence = self.denials[denial]
                if why := self._why_not(denial):
                    rules = ", ".join(denial.rules)
                    what = f"{denial.operation} of {denial.namespace}/{denial.name} ({rules})"
                    remarks.append(left_out(user, what, f"{why} ({evidence.text('time')})"))
                else:
                    found = exempt.setdefault((denial.namespace, denial.name), DeniedOnLease())
                    found.pairs |= {(rule, denial.operation) for rule in denial.rules}
                    found.evidence.include(evidence)
            for entry in _entries(exempt):
                lines += self._lines(user, entry)
        unseen = [f"not seen: {text}" for text in self.coverage.blind_spots()]
        if self.dropped:
            unseen.append(f"not seen: {self.dropped} denials beyond {MOST} combinations")
        begin = ["apiVersion: lease-webhook/v1", "exempt:" if lines else "exempt: []"]
        return "".join(f"{line}\n" for line in (*begin, *lines, *map(comment, (*sorted(remarks), *unseen))))

    def _why_not(self, denial: Denial) -> str:
        """Return why no exemption is suggested for a denial, "" if one is."""
        attacks = [TOOK] if denial.event == "steal" else []
        attacks += [what for rule in denial.rules if (what := attack_of(rule, denial.event))]
        if attacks:
            return f"looks like an attack: {'; '.join(dict.fromkeys(attacks))}"
        if fixed := [rule for rule in denial.rules if rule not in EXEMPTIBLE]:
            return f"no exemption applies to {', '.join(fixed)}: correct the client"
        if (denial.user, denial.namespace) in self.attackers:
            return "what else it did in this namespace looks like an attack"
        if not is_name(denial.user):
            return "this user name cannot be expressed in a policy"
        if dns_label(denial.namespace) or path_segment(denial.name) or not is_name(denial.name):
            return "no object can have this name"
        return ""

    def _lines(self, user: str, entry: "Entry") -> Iterator[str]:
        account = account_of(user)
        who = ("service_accounts", "/".join(account)) if account else ("users", user)
        yield f"- {who[0]}: {flow([who[1]])}"
        yield f"  namespaces: {flow([entry.namespace])}"
        yield f"  leases: {flow(entry.leases)}"
        yield f"  rules: {flow(entry.rules)}"
        yield f"  operations: {flow(entry.operations)}"
        yield f"  owner: {scalar(self.owner)}"
        reason = entry.evidence.text("denied write")
        yield f"  reason: {scalar(f'suggested from {reason}')}"
        yield f"  until: {self.until.isoformat()}"


class DeniedOnLease(Struct):
    """What one user was denied on one lease: (rule, operation)."""

    pairs: set[tuple[str, Operation]] = field(default_factory=set)
    evidence: Evidence = field(default_factory=Evidence)


class Entry(Struct):
    """An exemption: every rule with every operation on every lease, each of which was denied."""

    namespace: str
    rules: tuple[str, ...]
    operations: tuple[Operation, ...]
    leases: list[str] = field(default_factory=list)
    evidence: Evidence = field(default_factory=Evidence)


def _entries(exempt: dict[tuple[str, str], DeniedOnLease]) -> list[Entry]:
    """Entries that together exempt from exactly what was denied."""
    entries: dict[tuple[str, tuple[str, ...], tuple[Operation, ...]], Entry] = {}
    for (namespace, name), found in sorted(exempt.items(), key=lambda one: one[0]):
        by_operations: dict[tuple[Operation, ...], list[str]] = {}
        for rule in sorted({rule for rule, _ in found.pairs}):
            operations = tuple(one for one in OPERATIONS if (rule, one) in found.pairs)
            by_operations.setdefault(operations, []).append(rule)
        for operations, rules in by_operations.items():
            key = (namespace, tuple(rules), operations)
            entry = entries.setdefault(key, Entry(namespace, tuple(rules), operations))
            entry.leases.append(name)
            entry.evidence.include(found.evidence)
    return [*entries.values()]


def _operation_of(seen: Observation, event: str) -> Operation:
    """Return what the API server asked the webhook about: a patch that creates the object is a creation."""
    if seen.request:
        return seen.request.operation
    return Operation.CREATE if event == "create" else _OF_VERB.get(seen.verb, Operation.UPDATE)
