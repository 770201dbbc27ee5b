"""Bindings that would have allowed everything that was seen of leases, and nothing that looks like an attack.

The evidence is what was written to each lease and by whom, and what of it looks like an attack.
"""

import re
from collections.abc import Collection, Container, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from webhook.admission.evaluate import evaluate
from webhook.admission.policy.model import is_always_exempt
from webhook.admission.policy.parse import parse
from webhook.admission.rules.change import CLEANUP_CONTROLLERS, is_spec_untouched
from webhook.admission.rules.holders import POD, WILDCARDS, fits_pod
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES
from webhook.analysis.claims.words import format_count
from webhook.analysis.history.events import EventKind
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import (
    Act,
    ClockSkew,
    Item,
    LogEnd,
    Observation,
    OtherObject,
    Unreadable,
    WebhookAnnotations,
    Writer,
)
from webhook.kubernetes.formats import MAX_NAME, dns_label, dns_subdomain
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.request import NODE_USER, UserInfo
from webhook.kubernetes.times import DAY, format_span, format_time
from webhook.text.yaml_writer import write_comment, write_flow, write_scalar

MAX_NAMES: Final = 8
"""Holders that are listed one by one."""
EVERY: Final = "*"
"""The template that every holder matches: only the writer is then checked."""
_STEM: Final = re.compile(r"(.+_)[0-9a-f]{4,}(?:-[0-9a-f]+)*")
"""An identity that ends in an underscore and something random, as client-go and most others build one."""
_FIRST: Final = "bindings deny: let them warn first, with `rules: {identity-binding: {mode: warn}}`"
LONG: Final = 7 * DAY
"""Microseconds; less may not contain an upgrade, a failover and a repair."""
MAX_WRITES: Final = 200_000
"""Combinations of lease, writer and holder that are remembered; the writes of others are counted."""
UNKNOWN: Final = ""
"""The user of a write whose writer the input does not show."""
TOOK: Final = "took a lease that its holder still had"

_STRICT: Final = parse("apiVersion: lease-webhook/v1\npreset: strict\n")
"""The policy that finds all that looks like an attack."""
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
        first, last = format_time(self.first), format_time(self.last)
        return f"at {first}" if first == last else f"from {first} to {last} ({format_span(self.last - self.first)})"

    def describe(self, noun: str) -> str:
        """`3 writes from 2026-01-31T12:00:00Z to 2026-01-31T12:01:00Z (1 min 0 s)`."""
        return f"{format_count(self.count, noun)} {self.period}".rstrip()


class WritesOfUser(Struct):
    """The stored writes of one user to one lease. `attacks` are by phrases that say what of it looks like an attack.

    `holders` are (holder after the write, pod of the writer). `began_with_attack` says it of the first write.
    """

    began_with_attack: bool
    stored: Evidence = field(default_factory=Evidence)
    attacks: dict[str, Evidence] = field(default_factory=dict)
    holders: set[tuple[str, str]] = field(default_factory=set)

    @property
    def suspicion(self) -> str:
        """Everything that looks like an attack, and how often."""
        return "; ".join(f"{what} ({evidence.describe('time')})" for what, evidence in self.attacks.items())


class LeaseWrites(Struct):
    """The stored writes to one lease, as far as a binding restricts it; `came_by_attack` says it of each holder."""

    users: dict[str, WritesOfUser] = field(default_factory=dict)
    acts: set[Act] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    came_by_attack: dict[str, bool] = field(default_factory=dict)

    def add(self, seen: Observation, writer: Writer, holder: str, attacks: tuple[str, ...]) -> None:
        """Take in a stored write, or a stored object; `holder` is "" if there is none, or the log hides it."""
        self.acts.add(seen.act)
        if seen.act is not Act.DELETED and writer.pod:
            self.pods.add(writer.pod)
        written = self.users.setdefault(writer.user, WritesOfUser(began_with_attack=bool(attacks)))
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
    _histories: ClusterHistory = field(default_factory=ClusterHistory)
    _specs: dict[tuple[str, str], LeaseSpec] = field(default_factory=dict)

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        if isinstance(item, Observation):
            self.coverage.add(item.at)
            self._observe(item)
        elif isinstance(item, ClockSkew):
            self._histories.add(item)
        elif isinstance(item, LogEnd):
            self.coverage.extend_to(item.at)
        elif isinstance(item, Unreadable):
            self.unreadable += 1
        elif isinstance(item, OtherObject) and item.service_account:
            self.pods.setdefault(item.namespace, {})[item.name] = item.service_account

    def _observe(self, item: Observation) -> None:
        attacks = self.find_attacks(item)
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
        if not self._is_open(item, spec) and not is_always_exempt(UserInfo(writer.user, writer.groups)):
            lease.add(item, writer, holder, attacks)

    def list_unseen(self) -> Iterator[str]:
        """Yield what the input does not show."""
        if self.coverage.first is None or self.coverage.last is None:
            yield "when it happened: the input has no times"
        elif self.coverage.last - self.coverage.first < LONG:
            yield f"anything but what happened {self.coverage.period}: upgrades, failovers and repairs may need more"
        if self.unreadable:
            yield f"{format_count(self.unreadable, 'part')} of the input that could not be read"
        if self._dropped:
            yield f"{format_count(self._dropped, 'write')} beyond {MAX_WRITES} different ones"

    def find_attacks(self, seen: Observation) -> tuple[str, ...]:
        """Return what the write did that looks like an attack, as phrases."""
        # A read takes no lease, and anyone may ask for any name.
        events = self._histories.add(seen) if seen.act not in _READS and seen.is_stored else []
        phrases = dict.fromkeys(_find_attacks_by_rules(seen, self.clock))
        taken = [one.tenure for one in events if one.kind is EventKind.ACQUIRED and one.tenure]
        if any(one.may_be_stolen or one.beginning.is_over_unshown for one in taken):
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
        return seen.act is Act.UPDATED and new is not None and old is not None and is_spec_untouched(old, new)


def _find_attacks_by_rules(seen: Observation, clock: int) -> Iterator[str]:
    """Yield the attacks that the rules see in a review, or that the webhook noted in the audit log."""
    noted = seen.answer.webhook_annotations if seen.answer else WebhookAnnotations()
    denied, event = [*noted.would_deny], noted.event
    for rule, mode in noted.modes.items():
        known = RULES.get(rule)
        # Where a policy only warned, a log shows attacks as well.
        if mode == "deny" or (known and known.attack_at_any_mode and known.strict is Mode.DENY):
            denied.append(rule)
    if seen.request is not None:
        at = next((one for one in (seen.at, seen.latest_stamp) if one is not None), clock)
        verdict = evaluate(seen.request, _STRICT, at)
        denied = [*(one.rule for one in verdict.findings if one.mode is Mode.DENY), *denied]
        event = verdict.event or event
    for rule in denied:
        known = RULES.get(rule)
        if known and known.texts.attack and (known.attack_on_create or event != "create"):
            yield known.texts.attack


def find_templates(
    holders: Collection[tuple[str, str | None]], pods: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the narrowest templates that a policy can say, and the holders that they do not cover.

    `holders` are (holder, pod of the writer): "" if its token names none, None if the writer is not known. All of
    `pods` are known to write the lease, or to run beside it.
    """
    templates: set[str] = set()
    others: set[str] = set()
    for holder, pod in holders:
        if template := _find_template(holder, pods if pod is None else [pod]):
            templates.add(template)
        else:
            others.add(holder)
    suited = {one for one in others if _is_name(one) and POD not in one}
    names = {f"{found[1]}*" if (found := _STEM.fullmatch(one)) else one for one in suited}
    templates |= names if len(names) <= MAX_NAMES else {EVERY}
    return tuple(sorted(templates)), tuple(sorted(others - suited))


def _find_template(holder: str, pods: Container[str]) -> str:
    """Return `${pod}` with what follows the pod's name, "" if the holder does not begin with a pod."""
    for length in range(min(len(holder), MAX_NAME), 0, -1):
        pod = holder[:length]
        if pod in pods and fits_pod(holder, pod):
            rest = holder[length:]
            if not rest:
                return POD
            if rest[0] not in WILDCARDS and _is_name(rest[0]):
                return f"{POD}{rest[0]}*"
    return ""


def make_binding_policy(seen: AllWrites, only: tuple[str, str] | None, namespace: str = "") -> str:
    """Return a policy file with bindings for all leases, `only` one, or those of a namespace; "" if none was seen."""
    attackers = {
        (user, namespace)
        for (namespace, _), lease in seen.leases.items()
        for user, written in lease.users.items()
        if written.attacks and _is_stranger(user, namespace)
    }
    proposals = [
        _Proposal(key, lease, attackers, seen.pods.get(key[0], {}))
        for key, lease in sorted(seen.leases.items())
        if only in {None, key} and namespace in {"", key[0]}
    ]
    if not proposals:
        return ""
    entries = [line for one in proposals for line in one.format_entry()]
    beginning = [write_comment(_FIRST), "bindings:"] if entries else ["bindings: []"]
    remarks = [write_comment(text) for one in proposals for text in one.format_remarks()]
    unseen = [write_comment(f"not seen: {text}") for text in seen.list_unseen()]
    return "\n".join(["apiVersion: lease-webhook/v1", *beginning, *entries, *remarks, *unseen, ""])


class _Proposal:
    """The binding of one lease: its writers, each with the evidence, and the holders that they wrote."""

    def __init__(
        self, key: tuple[str, str], lease: LeaseWrites, attackers: Container[tuple[str, str]], pods: Mapping[str, str]
    ) -> None:
        """`attackers` are by user and namespace; `pods` are those of the namespace, with their service accounts."""
        self._namespace, self._name = key
        self._lease = lease
        users = {user: one for user, one in lease.users.items() if user != UNKNOWN}
        self._left_out = {
            user: why for user in sorted(users) if (why := self._find_reason_to_leave_out(user, attackers))
        }
        self._bound = sorted(users.keys() - self._left_out.keys())
        held = {pair for user in self._bound for pair in users[user].holders}
        barred = {holder for holder, is_attack in lease.came_by_attack.items() if is_attack}
        barred |= {holder for user in users for holder, _ in users[user].holders}
        unknown = lease.users[UNKNOWN].holders if UNKNOWN in lease.users else set()
        all_held = [*held, *((holder, None) for holder, _ in unknown if holder not in barred)]
        self._holders = sorted({holder for holder, _ in all_held})
        self._templates, self._unsuited = find_templates(all_held, {*lease.pods, *pods})
        self._writers = {_describe_user(user): users[user].stored.describe("write") for user in self._bound}
        if not users:
            # Who writes is not in the input: the service accounts of the pods that the holders name.
            self._writers = {
                f"{self._namespace}/{account}": f"of pod {pod}, which the holder names; no write of it was seen"
                for pod, account in sorted(pods.items())
                if not dns_subdomain(account) and any(fits_pod(holder, pod) for holder in self._holders)
            }

    def format_entry(self) -> Iterator[str]:
        """Yield the lines of the policy file; none if there can be no binding."""
        if not self._writers:
            return
        yield f"- namespace: {write_scalar(self._namespace)}"
        yield f"  lease: {write_scalar(self._name)}"
        yield "  writers:"
        for name, evidence in self._writers.items():
            yield f"  - {write_scalar(name)}  {write_comment(evidence)}"
        shown = f"{', '.join(self._holders[:3])}{', ...' if len(self._holders) > 3 else ''}"
        seen = f"{len(self._holders)} seen: {shown}" if self._holders else "no holder was seen"
        yield f"  holder: {write_flow(self._templates or (EVERY,))}  {write_comment(seen)}"

    def format_remarks(self) -> Iterator[str]:
        """Yield what the binding does not allow, and what was not seen."""
        place = f"{self._namespace}/{self._name}"
        if not self._writers:
            none = "no writer was seen; add the pods to a list, or add an audit log"
            yield f"no binding for {place}: {'every writer is left out' if self._left_out else none}"
        for user, why in self._left_out.items():
            yield f"left out: {Writer(user).name} on {place}: {why}"
        for user in self._bound:
            writes = self._lease.users[user]
            if writes.attacks:
                yield f"look at {_describe_user(user)} on {place}, which is a writer: {writes.suspicion}"
        for holder in self._unsuited:
            yield f"left out: holder {holder} of {place}: it cannot be expressed in a policy"
        if EVERY in self._templates:
            yield f"{place}: more than {MAX_NAMES} holders do not begin with their pods: {EVERY} checks the writer only"
        unseen = ["a second holder"] if len(self._holders) == 1 else []
        unseen += ["who creates it"] if Act.CREATED not in self._lease.acts else []
        unseen += ["who deletes it"] if Act.DELETED not in self._lease.acts else []
        if self._writers and unseen:
            yield f"not seen of {place}: {', '.join(unseen)}"

    def _find_reason_to_leave_out(self, user: str, attackers: Container[tuple[str, str]]) -> str:
        """Return why a user is not listed as a writer, "" if it is."""
        written, namespace = self._lease.users[user], self._namespace
        if written.began_with_attack or (written.attacks and _is_stranger(user, namespace)):
            return f"looks like an attack: {written.suspicion}"
        if (user, namespace) in attackers:
            return "what else it did in this namespace looks like an attack"
        return "" if _is_name(user) else "this user name cannot be expressed in a policy"


def _find_account(user: str) -> tuple[str, str] | None:
    """Return (namespace, name) of a service account with legal names, else None."""
    account = UserInfo(user).service_account
    return account if account and not dns_label(account[0]) and not dns_subdomain(account[1]) else None


def _is_stranger(user: str, namespace: str) -> bool:
    """Return whether a user is a node, or a service account of another namespace."""
    account = _find_account(user)
    return user.startswith(NODE_USER) or (account is not None and account[0] != namespace)


def _describe_user(user: str) -> str:
    account = _find_account(user)
    return "/".join(account) if account else f"user:{user}"


def _is_name(text: str) -> bool:
    """Return whether a name means only itself in a policy, and can stand there."""
    return bool(text) and text == text.strip() and text.isprintable() and not any(one in text for one in WILDCARDS)
