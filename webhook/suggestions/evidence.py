"""What was written to leases and by whom: the evidence for every suggestion, and what looks like an attack."""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct, field

from webhook.api.formats import dns_label, dns_subdomain
from webhook.api.objects import Lease, LeaseCandidate, LeaseSpec
from webhook.api.times import DAY, canonical_seconds, span
from webhook.evaluate import evaluate
from webhook.explanation.words import count
from webhook.history.events import EventKind, Handover
from webhook.history.follow import Follower
from webhook.inputs.items import Act, Foreign, InputKind, Item, LogEnd, Noted, Observation, Unreadable, Writer
from webhook.policy.model import Policy
from webhook.policy.parse import parse
from webhook.rules.change import CLEANUP_CONTROLLERS, is_untouched
from webhook.rules.holders import WILDCARDS
from webhook.rules.registry import RULES
from webhook.rules.rule import Mode
from webhook.verdict import Downgraded

LONG: Final = 7 * DAY
"""Microseconds; less may not contain an upgrade, a failover and a repair."""

_IN: Final = {
    InputKind.DUMP: "a list of objects",
    InputKind.WATCH: "a watch",
    InputKind.AUDIT_LOG: "an audit log",
    InputKind.REVIEW: "reviews",
}
_BLIND_SPOTS: Final = {
    InputKind.DUMP: "anything but the present, in a list of objects",
    InputKind.WATCH: "who wrote, in a watch: it names field managers only",
    InputKind.REVIEW: "reads, and most renewals, in reviews: the API server sends neither to the webhook",
}


class Evidence(Struct):
    """Some of the observations; `first` and `last` in microseconds since 1970, None if the input has no times."""

    count: int = 0
    first: int | None = None
    last: int | None = None
    origins: set[InputKind] = field(default_factory=set)

    def add(self, seen: Observation) -> None:
        """Count one more."""
        self.count += 1
        self.origins.add(seen.input_kind)
        self.extend_to(seen.at)

    def include(self, other: "Evidence") -> None:
        """Count those of another one, too."""
        self.count += other.count
        self.origins |= other.origins
        self.extend_to(other.first)
        self.extend_to(other.last)

    def extend_to(self, at: int | None) -> None:
        """Extend the period to a moment."""
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)

    @property
    def length(self) -> int:
        """Microseconds from the first to the last."""
        return 0 if self.first is None or self.last is None else self.last - self.first

    def period(self, form: str) -> str:
        """Return the first and the last moment, and how long it was, in a form for them; "" if there are none."""
        if self.first is None or self.last is None:
            return ""
        first, last = canonical_seconds(self.first), canonical_seconds(self.last)
        return f"at {first}" if first == last else form.format(first, last, span(self.length))

    def text(self, noun: str) -> str:
        """`3 writes from 2026-01-31T12:00:00Z to 2026-01-31T12:01:00Z (1 min 0 s), in an audit log`."""
        period = self.period("from {0} to {1} ({2})")
        where = f", in {' and '.join(_IN[one] for one in InputKind if one in self.origins)}" if self.origins else ""
        return f"{count(self.count, noun)}{f' {period}' if period else ''}{where}"


def total(parts: Iterable[Evidence]) -> Evidence:
    """Return all of them as one."""
    found = Evidence()
    for one in parts:
        found.include(one)
    return found


API_SERVER: Final = "system:apiserver"

_PREFIX: Final = "system:serviceaccount:"
_NODE: Final = "system:node:"


@lru_cache(maxsize=1024)
def account_of(user: str) -> tuple[str, str] | None:
    """(namespace, name) of a service account with legal names, else None."""
    found = Writer(user).name.partition("/") if user.startswith(_PREFIX) else ("", "", "")
    namespace, _, name = found
    return None if dns_label(namespace) or dns_subdomain(name) else (namespace, name)


def is_stranger(user: str, namespace: str) -> bool:
    """Return whether a user is a node, or a service account of another namespace."""
    account = account_of(user)
    return user.startswith(_NODE) or (account is not None and account[0] != namespace)


def is_always_exempt(writer: Writer) -> bool:
    """Return whether no rule that a policy can exempt from applies to a writer."""
    return writer.user == API_SERVER or writer.is_administrator


def is_name(text: str) -> bool:
    """Return whether a name means only itself in a policy, and can stand there."""
    return bool(text) and text == text.strip() and text.isprintable() and not any(one in text for one in WILDCARDS)


def left_out(user: str, what: str, why: str) -> str:
    """The text about something that a suggestion does not allow."""
    return f"left out: {Writer(user).name} on {what}: {why}"


MAX_WRITES: Final = 200_000
"""Kinds of writes that are remembered; those of others are counted."""
REFUSED: Final = frozenset({401, 403, 422})
_READS: Final = frozenset({Act.READ, Act.COLLECTION})

UNKNOWN: Final = ""
"""The user of a write whose writer the input does not show."""


class Write(Struct, frozen=True):
    """What equal writes have in common; texts are "" if they are not known.

    `holder` is that after the write, None if the log hides it. `is_refused` by rights or rules, not by a conflict.
    `is_open`: a binding allows it to anyone. `attacks` are phrases that say what of it looks like an attack.
    """

    kind: str
    namespace: str
    name: str
    act: Act
    writer: Writer
    holder: str | None
    is_stored: bool
    is_refused: bool
    is_open: bool
    attacks: tuple[str, ...]


TOOK: Final = "took a lease that its holder still had"


@cache
def _strict() -> Policy:
    """Return the policy that finds all that looks like an attack."""
    return parse("apiVersion: lease-webhook/v1\npreset: strict\n")


def _denied_review(seen: Observation, clock: int) -> tuple[tuple[str, ...], str]:
    """Return the rules that deny a recorded review, or would without a cap, and its event.

    It is evaluated at `clock` (microseconds) if it does not say when it was made.
    """
    if seen.request is None:
        return (), ""
    at = next((one for one in (seen.at, seen.latest_stamp) if one is not None), clock)
    verdict = evaluate(seen.request, _strict(), at)
    found = (one.rule for one in verdict.findings if one.mode is Mode.DENY or one.downgraded is Downgraded.BY_CAP)
    return tuple(found), verdict.event


def _noted_rules(noted: Noted) -> Iterator[str]:
    """Yield the rules by which the webhook, by its own account, denied a write, or would have, or saw an attack."""
    yield from (rule for rule, mode in noted.modes.items() if mode == "deny")
    yield from noted.would_deny
    # Where a policy only warned, a log shows attacks as well.
    known = (RULES[rule] for rule in noted.modes if rule in RULES)
    yield from (rule.id for rule in known if rule.attack_at_any_mode and rule.strict is Mode.DENY)


def _attack_of(rule: str, event: str) -> str:
    """Return what a denied write did if it looks like an attack, else ""."""
    found = RULES.get(rule)
    return found.texts.attack if found and (found.attack_on_create or event != "create") else ""


class Writes(Struct):
    """Everything that was written, in the order of the first of each kind; observations of one lease come in order.

    `clock`, in microseconds since 1970, is when reviews were made if nothing says so. `pods` are those of the input, by
    namespace, with their service accounts.
    """

    clock: int
    writes: dict[Write, Evidence] = field(default_factory=dict)
    coverage: Evidence = field(default_factory=Evidence)
    """The period that the whole input covers."""
    unreadable: int = 0
    pods: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped: int = 0
    _follower: Follower = field(default_factory=Follower)
    _specs: dict[tuple[str, str], LeaseSpec] = field(default_factory=dict)

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        if isinstance(item, Observation):
            self.coverage.add(item)
            self._observe(item)
        elif isinstance(item, LogEnd):
            self.coverage.extend_to(item.at)
        elif isinstance(item, Unreadable):
            self.unreadable += 1
        elif isinstance(item, Foreign) and item.service_account:
            self.pods.setdefault(item.namespace, {})[item.name] = item.service_account

    def _observe(self, item: Observation) -> None:
        attacks = self.attacks_of(item)
        is_write = item.act not in _READS and not item.is_dry_run
        is_stored = is_write and item.is_stored
        # Electors that race cause conflicts.
        is_refused = is_write and not is_stored and item.answer is not None and item.answer.code in REFUSED
        if not (is_stored or is_refused or attacks):
            return
        is_open = is_stored and self._is_open(item)
        holder = None
        if item.act is Act.DELETED or isinstance(item.object, LeaseCandidate):
            holder = ""
        elif item.object is not None:
            holder = item.object.spec.holder_identity or ""
        write = Write(
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            act=item.act,
            writer=item.writer or Writer(UNKNOWN),
            holder=holder,
            is_stored=is_stored,
            is_refused=is_refused,
            is_open=is_open,
            attacks=attacks,
        )
        if write in self.writes or len(self.writes) < MAX_WRITES:
            self.writes.setdefault(write, Evidence()).add(item)
        else:
            self.dropped += 1

    def unseen(self) -> Iterator[str]:
        """Yield what such an input cannot show, or this one does not."""
        for origin, text in _BLIND_SPOTS.items():
            if origin in self.coverage.origins:
                yield text
        if self.coverage.first is None:
            yield "when it happened: the input has no times"
        elif self.coverage.length < LONG:
            period = self.coverage.period("in {2}, from {0} to {1}")
            yield f"anything but what happened {period}: upgrades, failovers and repairs may need more"
        if self.unreadable:
            yield f"{count(self.unreadable, 'part')} of the input that could not be read"
        if self.dropped:
            yield f"{self.dropped} writes beyond {MAX_WRITES} different ones"

    def attacks_of(self, seen: Observation) -> tuple[str, ...]:
        """Return what the write did that looks like an attack, as phrases."""
        # A read takes no lease, and anyone may ask for any name.
        events = self._follower.feed(seen) if seen.act not in _READS and seen.is_stored else []
        phrases = dict.fromkeys(self._attacks_by_rules(seen))
        begun = (one.tenure.began for one in events if one.kind is EventKind.ACQUIRED and one.tenure)
        if Handover.STOLEN in begun:
            phrases[TOOK] = None
        return tuple(phrases)

    def _attacks_by_rules(self, seen: Observation) -> Iterator[str]:
        noted = seen.answer.noted if seen.answer else Noted()
        rules, event = _denied_review(seen, self.clock)
        for rule in dict.fromkeys((*rules, *_noted_rules(noted))):
            if what := _attack_of(rule, event or noted.event):
                yield what

    def _is_open(self, seen: Observation) -> bool:
        """Return whether a binding allows a stored write to anyone."""
        if seen.kind != "Lease":
            return False
        key = (seen.namespace, seen.name)
        new = seen.object.spec if isinstance(seen.object, Lease) and seen.act is not Act.DELETED else None
        before = self._specs.pop(key, None)
        old = seen.old.spec if isinstance(seen.old, Lease) else before
        if new is not None:
            self._specs[key] = new
        if seen.act is Act.DELETED:
            return seen.writer is not None and seen.writer.user in CLEANUP_CONTROLLERS
        return seen.act is Act.UPDATED and new is not None and old is not None and is_untouched(old, new)
