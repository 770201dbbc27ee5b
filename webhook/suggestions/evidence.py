"""What was written to each lease and by whom: the evidence for bindings, and what of it looks like an attack."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from msgspec import Struct, field

from webhook.api.formats import dns_label, dns_subdomain
from webhook.api.objects import Lease, LeaseSpec
from webhook.api.times import DAY, canonical_seconds, span
from webhook.evaluate import evaluate
from webhook.explanation.words import count
from webhook.history.events import EventKind
from webhook.history.follow import Follower
from webhook.inputs.items import Act, ClockSkew, Foreign, Item, LogEnd, Noted, Observation, Unreadable, Writer
from webhook.policy.model import Policy
from webhook.policy.parse import parse
from webhook.rules.change import CLEANUP_CONTROLLERS, is_untouched
from webhook.rules.registry import RULES
from webhook.rules.rule import Mode

LONG: Final = 7 * DAY
"""Microseconds; less may not contain an upgrade, a failover and a repair."""
MAX_WRITES: Final = 200_000
"""Combinations of lease, writer and holder that are remembered; the writes of others are counted."""
UNKNOWN: Final = ""
"""The user of a write whose writer the input does not show."""
TOOK: Final = "took a lease that its holder still had"

_READS: Final = frozenset({Act.READ, Act.COLLECTION})


class Evidence(Struct):
    """Some of the observations; `first` and `last` in microseconds since 1970, None if the input has no times."""

    count: int = 0
    first: int | None = None
    last: int | None = None

    def add(self, at: int | None) -> None:
        """Count one more."""
        self.count += 1
        self.extend_to(at)

    def extend_to(self, at: int | None) -> None:
        """Extend the period to a moment."""
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)

    @property
    def period(self) -> str:
        """`from 2026-01-31T12:00:00Z to 2026-01-31T12:01:00Z (1 min 0 s)`; "" if there are no times."""
        if self.first is None or self.last is None:
            return ""
        first, last = canonical_seconds(self.first), canonical_seconds(self.last)
        return f"at {first}" if first == last else f"from {first} to {last} ({span(self.last - self.first)})"

    def text(self, noun: str) -> str:
        """`3 writes from 2026-01-31T12:00:00Z to 2026-01-31T12:01:00Z (1 min 0 s)`."""
        return f"{count(self.count, noun)} {self.period}".rstrip()


class Written(Struct):
    """What one user stored in one lease. `attacks` are by phrases that say what of it looks like an attack.

    `holders` are (holder after the write, pod of the writer). `began_with_attack` says it of the first write.
    """

    began_with_attack: bool
    stored: Evidence = field(default_factory=Evidence)
    attacks: dict[str, Evidence] = field(default_factory=dict)
    holders: set[tuple[str, str]] = field(default_factory=set)


class LeaseWrites(Struct):
    """What was stored in one lease, as far as a binding restricts it; `came_by_attack` says it of each holder."""

    users: dict[str, Written] = field(default_factory=dict)
    acts: set[Act] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    came_by_attack: dict[str, bool] = field(default_factory=dict)

    def add(self, seen: Observation, writer: Writer, holder: str, attacks: tuple[str, ...]) -> None:
        """Take in a stored write, or a stored object; `holder` is "" if there is none, or the log hides it."""
        self.acts.add(seen.act)
        if seen.act is not Act.DELETED and writer.pod:
            self.pods.add(writer.pod)
        written = self.users.setdefault(writer.user, Written(began_with_attack=bool(attacks)))
        written.stored.add(seen.at)
        for what in attacks:
            written.attacks.setdefault(what, Evidence()).add(seen.at)
        if holder:
            written.holders.add((holder, writer.pod))
            self.came_by_attack.setdefault(holder, bool(attacks))


class AllWrites(Struct):
    """Everything that was written, by namespace and name of the lease; observations of one lease come in order.

    `clock`, in microseconds since 1970, is when reviews were made if nothing says so. `pods` are those of the input, by
    namespace, with their service accounts. `coverage` is the period of the whole input.
    """

    clock: int
    leases: dict[tuple[str, str], LeaseWrites] = field(default_factory=dict)
    coverage: Evidence = field(default_factory=Evidence)
    unreadable: int = 0
    pods: dict[str, dict[str, str]] = field(default_factory=dict)
    _dropped: int = 0
    _known: set[tuple[str, str, Writer, str]] = field(default_factory=set)
    _follower: Follower = field(default_factory=Follower)
    _specs: dict[tuple[str, str], LeaseSpec] = field(default_factory=dict)

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        if isinstance(item, Observation):
            self.coverage.add(item.at)
            self._observe(item)
        elif isinstance(item, ClockSkew):
            self._follower.take(item)
        elif isinstance(item, LogEnd):
            self.coverage.extend_to(item.at)
        elif isinstance(item, Unreadable):
            self.unreadable += 1
        elif isinstance(item, Foreign) and item.service_account:
            self.pods.setdefault(item.namespace, {})[item.name] = item.service_account

    def _observe(self, item: Observation) -> None:
        attacks = self.attacks_of(item)
        is_named = not dns_label(item.namespace) and not dns_subdomain(item.name)
        if item.kind != "Lease" or item.act in _READS or not item.is_stored or not is_named:
            return
        spec = item.object.spec if isinstance(item.object, Lease) and item.act is not Act.DELETED else None
        holder = (spec and spec.holder_identity) or ""
        writer = item.writer or Writer(UNKNOWN)
        key = (item.namespace, item.name, writer, holder)
        if len(self._known) >= MAX_WRITES and key not in self._known:
            self._dropped += 1
            return
        self._known.add(key)
        lease = self.leases.setdefault((item.namespace, item.name), LeaseWrites())
        # No rule that a policy can exempt from applies to the API server itself and to administrators.
        is_exempt = writer.user == "system:apiserver" or "system:masters" in writer.groups
        if not self._is_open(item, spec) and not is_exempt:
            lease.add(item, writer, holder, attacks)

    def unseen(self) -> Iterator[str]:
        """Yield what the input does not show."""
        if self.coverage.first is None or self.coverage.last is None:
            yield "when it happened: the input has no times"
        elif self.coverage.last - self.coverage.first < LONG:
            yield f"anything but what happened {self.coverage.period}: upgrades, failovers and repairs may need more"
        if self.unreadable:
            yield f"{count(self.unreadable, 'part')} of the input that could not be read"
        if self._dropped:
            yield f"{count(self._dropped, 'write')} beyond {MAX_WRITES} different ones"

    def attacks_of(self, seen: Observation) -> tuple[str, ...]:
        """Return what the write did that looks like an attack, as phrases."""
        # A read takes no lease, and anyone may ask for any name.
        events = self._follower.feed(seen) if seen.act not in _READS and seen.is_stored else []
        phrases = dict.fromkeys(_attacks_by_rules(seen, self.clock))
        if any(one.kind is EventKind.ACQUIRED and one.tenure and one.tenure.may_be_stolen for one in events):
            phrases[TOOK] = None
        return tuple(phrases)

    def _is_open(self, seen: Observation, new: LeaseSpec | None) -> bool:
        """Return whether a binding allows a stored write to anyone; `new` is the state after it, None if not known."""
        key = (seen.namespace, seen.name)
        before = self._specs.pop(key, None)
        old = seen.old.spec if isinstance(seen.old, Lease) else before
        if new is not None:
            self._specs[key] = new
        if seen.act is Act.DELETED:
            return seen.writer is not None and seen.writer.user in CLEANUP_CONTROLLERS
        return seen.act is Act.UPDATED and new is not None and old is not None and is_untouched(old, new)


@cache
def _strict() -> Policy:
    """Return the policy that finds all that looks like an attack."""
    return parse("apiVersion: lease-webhook/v1\npreset: strict\n")


def _attacks_by_rules(seen: Observation, clock: int) -> Iterator[str]:
    """Yield the attacks that the rules see in a review, or that the webhook noted in the audit log."""
    noted = seen.answer.noted if seen.answer else Noted()
    denied, event = [*noted.would_deny], noted.event
    for rule, mode in noted.modes.items():
        known = RULES.get(rule)
        # Where a policy only warned, a log shows attacks as well.
        if mode == "deny" or (known and known.attack_at_any_mode and known.strict is Mode.DENY):
            denied.append(rule)
    if seen.request is not None:
        at = next((one for one in (seen.at, seen.latest_stamp) if one is not None), clock)
        verdict = evaluate(seen.request, _strict(), at)
        denied = [*(one.rule for one in verdict.findings if one.mode is Mode.DENY), *denied]
        event = verdict.event or event
    for one in denied:
        known = RULES.get(one)
        if known and known.texts.attack and (known.attack_on_create or event != "create"):
            yield known.texts.attack
