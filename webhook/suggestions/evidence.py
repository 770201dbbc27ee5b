"""What was seen of leases and of who wrote them: the evidence for a suggestion, and what looks like an attack."""

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct, field

from webhook.api.formats import dns_label, dns_subdomain
from webhook.api.objects import Lease, LeaseSpec
from webhook.api.times import DAY, canonical_seconds, span
from webhook.evaluate import evaluate
from webhook.history.events import EventKind, Handover
from webhook.history.follow import Follower
from webhook.inputs.items import Act, Answer, InputKind, Item, LogEnd, Observation, Unreadable, Writer
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

    def text(self, noun: str) -> str:
        """`3 writes from 2026-01-31T12:00:00Z to 2026-01-31T12:01:00Z (1 min 0 s), in an audit log`."""
        number = f"{self.count} {noun}{'' if self.count == 1 else 's'}"
        where = f", in {' and '.join(_IN[one] for one in InputKind if one in self.origins)}" if self.origins else ""
        if self.first is None or self.last is None:
            return f"{number}{where}"
        first, last = canonical_seconds(self.first), canonical_seconds(self.last)
        period = f"at {first}" if first == last else f"from {first} to {last} ({span(self.length)})"
        return f"{number} {period}{where}"


class Coverage(Struct):
    """The period that the whole input covers."""

    all: Evidence = field(default_factory=Evidence)
    unreadable: int = 0

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        if isinstance(item, Observation):
            self.all.add(item)
        elif isinstance(item, LogEnd):
            self.all.extend_to(item.at)
        elif isinstance(item, Unreadable):
            self.unreadable += 1

    def blind_spots(self) -> Iterator[str]:
        """Yield what such an input cannot show, or this one does not."""
        for origin, text in _BLIND_SPOTS.items():
            if origin in self.all.origins:
                yield text
        if self.all.first is None or self.all.last is None:
            yield "when it happened: the input has no times"
        elif self.all.length < LONG:
            first, last = canonical_seconds(self.all.first), canonical_seconds(self.all.last)
            period = f"at {first}" if first == last else f"in {span(self.all.length)}, from {first} to {last}"
            yield f"anything but what happened {period}: upgrades, failovers and repairs may need more"
        if self.unreadable:
            yield f"{self.unreadable} {'part' if self.unreadable == 1 else 'parts'} of the input that could not be read"


API_SERVER: Final = "system:apiserver"
MAX_REASONS: Final = 4

_PREFIX: Final = "system:serviceaccount:"
_NODE: Final = "system:node:"


class Record(Struct):
    """What one user did to one lease.

    `suspicious` are the writes that look like an attack, by what they did; `begins_so` if the first of all is one.
    """

    uses: Evidence = field(default_factory=Evidence)
    suspicious: dict[str, Evidence] = field(default_factory=dict)
    begins_so: bool = False

    def add(self, seen: Observation, suspicions: tuple[str, ...]) -> None:
        """Count one request."""
        self.begins_so = self.begins_so or (not self.uses.count and bool(suspicions))
        self.uses.add(seen)
        for what in suspicions:
            self.suspicious.setdefault(what, Evidence()).add(seen)

    def is_left_out(self, user: str, namespace: str) -> bool:
        """Return whether the user took the lease by what looks like an attack, or made one as a stranger to it."""
        return self.begins_so or (bool(self.suspicious) and is_stranger(user, namespace))

    @property
    def reasons(self) -> str:
        """What looks like an attack, in words."""
        shown = [f"{what} ({found.text('time')})" for what, found in list(self.suspicious.items())[:MAX_REASONS]]
        return "; ".join(shown)


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


MAX_HOLDERS: Final = 1000
"""Of one lease: users with their pods and holders that are remembered."""
REFUSED: Final = frozenset({401, 403, 422})

UNKNOWN: Final = ""
"""The user of a write whose writer the input does not show."""


class LeaseHolder(Struct, frozen=True):
    """A holder with the user and the pod that wrote it, each "" if it is not known."""

    user: str
    pod: str
    holder: str


class LeaseUse(Struct):
    """What was seen of one lease.

    `records` are the writes of each user, `exempt` the users to whom a binding does not apply, `refused` what was not
    stored, by user and by what looks like an attack. `taken` are holders that first came by what looks like one.
    `hidden` are the writes whose holder the input does not show.
    """

    namespace: str
    name: str
    records: dict[str, Record] = field(default_factory=dict)
    holders: dict[LeaseHolder, None] = field(default_factory=dict)
    taken: dict[str, None] = field(default_factory=dict)
    pods: dict[str, None] = field(default_factory=dict)
    refused: dict[tuple[str, str], Evidence] = field(default_factory=dict)
    exempt: dict[str, None] = field(default_factory=dict)
    hidden: Evidence = field(default_factory=Evidence)
    acts: set[Act] = field(default_factory=set)

    _last: LeaseSpec | None = None

    def observe(self, seen: Observation, suspicions: tuple[str, ...]) -> None:
        """Take in one write, or the stored object."""
        writer = seen.writer
        user = writer.user if writer else UNKNOWN
        if not seen.is_stored:
            # Electors that race cause conflicts.
            if seen.answer and seen.answer.code in REFUSED:
                self.refused.setdefault((user, "; ".join(suspicions)), Evidence()).add(seen)
            return
        new = seen.object.spec if isinstance(seen.object, Lease) and seen.act is not Act.DELETED else None
        old, self._last = (seen.old.spec if isinstance(seen.old, Lease) else self._last), new
        if (seen.act is Act.DELETED and user in CLEANUP_CONTROLLERS) or (
            seen.act is Act.UPDATED and new is not None and old is not None and is_untouched(old, new)
        ):
            return  # a binding allows this to anyone
        if writer and is_always_exempt(writer):
            self.exempt[user] = None
            return
        self.acts.add(seen.act)
        if seen.act is not Act.STORED:
            self.records.setdefault(user, Record()).add(seen, suspicions)
        pod = writer.pod if writer else ""
        if seen.act is Act.DELETED:
            return
        if pod and len(self.pods) < MAX_HOLDERS:
            self.pods[pod] = None
        if new is None:
            self.hidden.add(seen)
        elif new.holder_identity:
            self._hold(LeaseHolder(user, pod, new.holder_identity), is_taken=bool(suspicions))

    def _hold(self, held: LeaseHolder, *, is_taken: bool) -> None:
        if is_taken and all(one.holder != held.holder for one in self.holders):
            self.taken[held.holder] = None
        if held in self.holders or len(self.holders) < MAX_HOLDERS:
            self.holders[held] = None

    @property
    def attackers(self) -> Iterator[str]:
        """Users who do not belong to the lease and made what looks like an attack."""
        for user, record in self.records.items():
            if record.suspicious and is_stranger(user, self.namespace):
                yield user

    def holders_of(self, users: frozenset[str]) -> list[LeaseHolder]:
        """The holders that these users wrote, and those whose writer is not known, without what was taken."""
        known = {one.holder for one in self.holders if one.user in users}
        barred = {one.holder for one in self.holders if one.user not in users | {UNKNOWN}} | self.taken.keys()
        return [
            one
            for one in self.holders
            if one.user in users or (one.user == UNKNOWN and one.holder not in barred - known)
        ]


READS: Final = frozenset({Act.READ, Act.COLLECTION})
TOOK: Final = "took a lease that its holder still had"


class DeniedWrites(Struct, frozen=True):
    """Why a policy denies a write, or would without its cap: ids of rules, with the event of the write."""

    rules: tuple[str, ...] = ()
    event: str = ""


NOT_DENIED: Final = DeniedWrites()


@cache
def strict() -> Policy:
    """The policy that finds all that looks like an attack."""
    return parse("apiVersion: lease-webhook/v1\npreset: strict\n")


def denied_by(policy: Policy, seen: Observation, clock: int) -> DeniedWrites:
    """Return what a policy denies of a recorded review; nothing of any other observation.

    `clock`, in microseconds since 1970, is used if nothing says when it was made.
    """
    if seen.request is None:
        return NOT_DENIED
    at = next((one for one in (seen.at, seen.latest_stamp) if one is not None), clock)
    verdict = evaluate(seen.request, policy, at)
    found = (one.rule for one in verdict.findings if one.mode is Mode.DENY or one.downgraded is Downgraded.BY_CAP)
    return DeniedWrites(tuple(dict.fromkeys(found)), verdict.event)


def annotated(answer: Answer | None) -> tuple[dict[str, str], DeniedWrites]:
    """Return what the webhook wrote into the audit log: all rules with their modes, and what was or would be denied."""
    modes: dict[str, str] = {}
    would: list[str] = []
    event = ""
    for key, text in (answer.annotations if answer else {}).items():
        # The name of the webhook stands before the slash, and anyone may choose it.
        match key.rpartition("/")[2]:
            case "rules":
                pairs = (one.partition("=") for one in text.split(","))
                modes |= {rule: mode for rule, _, mode in pairs if rule in RULES}
            case "would-deny":
                would += [rule for rule in text.split(",") if rule in RULES]
            case "event":
                event = text
            case _:
                continue
    denied = [rule for rule, mode in modes.items() if mode == "deny"]
    return modes, DeniedWrites(tuple(dict.fromkeys([*denied, *would])), event)


def attack_of(rule: str, event: str) -> str:
    """Return what a denied write did if it looks like an attack, else ""."""
    found = RULES.get(rule)
    return found.texts.attack if found and (found.attack_on_create or event != "create") else ""


class Suspicions(Struct):
    """Follows every lease, and says of each write whether it looks like an attack; observations come in order."""

    clock: int
    _follower: Follower = field(default_factory=Follower)

    def of(self, seen: Observation) -> tuple[str, ...]:
        """Return what the write did that looks like an attack, as phrases."""
        # A read takes no lease, and anyone may ask for any name.
        events = self._follower.feed(seen) if seen.act not in READS and seen.is_stored else []
        phrases = dict.fromkeys(self._by_rules(seen))
        begun = (one.tenure.began for one in events if one.kind is EventKind.ACQUIRED and one.tenure)
        if Handover.STOLEN in begun:
            phrases[TOOK] = None
        return tuple(phrases)

    def _by_rules(self, seen: Observation) -> Iterator[str]:
        found = denied_by(strict(), seen, self.clock)
        modes, annotation = annotated(seen.answer)
        # Where a policy only warned, a log shows attacks as well.
        warned = (rule for rule in modes if RULES[rule].attack_at_any_mode and RULES[rule].strict is Mode.DENY)
        rules = dict.fromkeys((*found.rules, *annotation.rules, *warned))
        for rule in rules:
            if what := attack_of(rule, found.event or annotation.event):
                yield what
