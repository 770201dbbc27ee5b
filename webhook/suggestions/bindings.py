"""Bindings that would have allowed everything that was seen of leases, and nothing that looks like an attack."""

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Final

from msgspec import Struct, field

from webhook.api.formats import dns_label, dns_subdomain
from webhook.inputs.items import Act, Foreign, Item, Observation, Writer
from webhook.rules.holders import MAX_POD, POD, WILDCARDS, fits_pod, host_name
from webhook.suggestions.evidence import READS, UNKNOWN, Coverage, LeaseUse, Suspicions, account_of, is_name, left_out
from webhook.yaml_writer import comment, flow, scalar

MAX_NAMES: Final = 8
"""Holders that are listed one by one; of more, what they have in common is taken."""
MIN_PREFIX: Final = 3
_STEM: Final = re.compile(r"(.+_)[0-9a-f]{4,}(?:-[0-9a-f]+)*")
"""An identity that ends in an underscore and something random, as client-go and most others build one."""

EVERY: Final = "*"
"""The template that every holder matches: only the writer is then checked."""


class Templates(Struct, frozen=True):
    """Templates that cover all holders but the `unsuited`; `remarks` say what is special about them."""

    templates: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    unsuited: tuple[str, ...] = ()


def templates_of(holders: Collection[tuple[str, str | None]], pods: Collection[str]) -> Templates:
    """The narrowest templates that a policy can say.

    Args:
        holders: (holder, pod of the writer); "" if its token names none, None if the writer is not known.
        pods: all pods that are known to write the lease, or to run beside it.

    """
    templates: set[str] = set()
    remarks: list[str] = []
    others: set[str] = set()
    for holder, pod in {*holders}:
        template = _of_pod(holder, pods if pod is None else [pod])
        if template:
            templates.add(template)
        else:
            others.add(holder)
    suited = {one for one in others if is_name(one) and POD not in one}
    if any(map(_STEM.fullmatch, suited)):
        remarks.append("what follows the underscore looks random, so any text may stand there")
    names = {f"{found[1]}*" if (found := _STEM.fullmatch(one)) else one for one in suited}
    if len(names) <= MAX_NAMES:
        templates |= names
    elif prefix := _common(suited):
        templates.add(f"{prefix}*")
        remarks.append(f"{len(suited)} holders do not begin with their pods; all begin with {prefix}")
    else:
        templates.add(EVERY)
        remarks.append(
            f"{len(suited)} holders have nothing in common, so {EVERY} checks the writer only: "
            "give the elector an identity that begins with the name of its pod"
        )
    return Templates(tuple(sorted(templates)), tuple(remarks), tuple(sorted(others - suited)))


def _of_pod(holder: str, pods: Container[str]) -> str:
    """`${pod}` with what follows the pod's name, "" if the holder does not begin with a pod."""
    for length in range(min(len(holder), MAX_POD), 0, -1):
        pod = holder[:length]
        if pod in pods and fits_pod(holder, pod):
            rest = holder[length:]
            if not rest:
                return POD
            if rest[0] not in WILDCARDS and is_name(rest[0]):
                return f"{POD}{rest[0]}*"
    return ""


def _common(holders: Collection[str]) -> str:
    """Return what all begin with, up to the last separator."""
    pairs = zip(min(holders), max(holders), strict=False)
    prefix = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    while prefix and prefix[-1].isalnum():
        prefix = prefix[:-1]
    return prefix if len(prefix) >= MIN_PREFIX else ""


MAX_LEASES: Final = 100_000

_FIRST: Final = "bindings deny: let them warn first, with `rules: {identity-binding: {mode: warn}}`"


class Bindings(Struct):
    """What was written to leases, and by whom.

    `only` is the one lease that counts, by namespace and name; None for all. `pods` are those of the input, by
    namespace, with their service accounts.
    """

    suspicions: Suspicions
    only: tuple[str, str] | None = None
    coverage: Coverage = field(default_factory=Coverage)
    leases: dict[tuple[str, str], LeaseUse] = field(default_factory=dict)
    pods: dict[str, dict[str, str]] = field(default_factory=dict)
    dropped: int = 0

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        self.coverage.observe(item)
        if isinstance(item, Foreign) and item.service_account:
            self.pods.setdefault(item.namespace, {})[item.name] = item.service_account
        if not isinstance(item, Observation) or item.kind != "Lease":
            return
        suspicions = self.suspicions.of(item)
        key = (item.namespace, item.name)
        if item.act in READS or item.is_dry_run or self.only not in {None, key}:
            return
        if key in self.leases or len(self.leases) < MAX_LEASES:
            self.leases.setdefault(key, LeaseUse(*key)).observe(item, suspicions)
        else:
            self.dropped += 1

    def text(self) -> str:
        """A policy file with a binding for each lease, and comments; "" if no lease was seen."""
        if not self.leases:
            return ""
        attackers = {(user, use.namespace) for use in self.leases.values() for user in use.attackers}
        by_names = {namespace: _by_names(pods) for namespace, pods in self.pods.items()}
        proposals = []
        for key in sorted(self.leases):
            use = self.leases[key]
            barred = frozenset(user for user in use.records if (user, use.namespace) in attackers)
            pods = self.pods.get(use.namespace, {})
            proposals.append(_Proposal(use, barred, pods, by_names.get(use.namespace, {})))
        entries = [line for one in proposals for line in one.entry()]
        remarks = [comment(text) for one in proposals for text in one.remarks()]
        unseen = [*self.coverage.blind_spots()]
        if self.dropped:
            unseen.append(f"{self.dropped} writes to more than {MAX_LEASES} leases")
        begin = ["apiVersion: lease-webhook/v1"]
        begin += [comment(_FIRST), "bindings:"] if entries else ["bindings: []"]
        unseen_lines = [comment(f"not seen: {text}") for text in unseen]
        return "".join(f"{line}\n" for line in (*begin, *entries, *remarks, *unseen_lines))


class _Proposal:
    """The binding of one lease: its writers, each with the evidence, and the holders that they wrote."""

    def __init__(
        self, use: LeaseUse, barred: frozenset[str], pods: Mapping[str, str], by_names: Mapping[str, list[str]]
    ) -> None:
        """`barred` are users who attacked a lease of this namespace, `pods` those of the namespace, also by names."""
        self.use = use
        self._barred = barred
        self._pods = pods
        self._by_names = by_names
        self._left_out = {user: why for user, record in use.records.items() if (why := self._why_not(user))}
        users = frozenset(use.records.keys() - self._left_out.keys() - {UNKNOWN})
        self._held = use.holders_of(users)
        self.writers = {_named(user): use.records[user].uses.text("write") for user in sorted(users)}
        if not use.records.keys() - {UNKNOWN}:
            self.writers = dict(sorted(self._by_pods()))
        held = [(one.holder, None if one.user == UNKNOWN else one.pod) for one in self._held]
        self.templates = templates_of(held, {*use.pods, *pods})
        self.can_be_named = not dns_label(use.namespace) and not dns_subdomain(use.name)

    def entry(self) -> Iterator[str]:
        """The lines of the policy file; none if there can be no binding."""
        if not self.writers or not self.can_be_named:
            return
        yield f"- namespace: {scalar(self.use.namespace)}"
        yield f"  lease: {scalar(self.use.name)}"
        yield "  writers:"
        for name, evidence in self.writers.items():
            yield f"  - {scalar(name)}  {comment(evidence)}"
        yield f"  holder: {flow(self.templates.templates or (EVERY,))}  {comment(self._about_holders())}"

    def remarks(self) -> Iterator[str]:
        """Yield what the binding does not allow, and what was not seen."""
        place = f"{self.use.namespace}/{self.use.name}"
        if not self.can_be_named:
            yield f"no binding for {place}: no lease can have this name"
            return
        if not self.writers:
            yield f"no binding for {place}: {self._why_none()}"
        for user, why in sorted(self._left_out.items()):
            yield left_out(user, place, why)
        for user in sorted(self.use.records.keys() - self._left_out.keys() - {UNKNOWN}):
            if reasons := self.use.records[user].reasons:
                yield f"look at {_named(user)} on {place}, which is a writer: {reasons}"
        for (user, what), evidence in sorted(self.use.refused.items()):
            why = f": looks like an attack: {what}" if what else ""
            yield left_out(user, place, f"refused{why} ({evidence.text('time')})")
        for user in sorted(self.use.exempt):
            yield f"{place}: {Writer(user).name} wrote it, too; bindings do not apply to it"
        for holder in self.templates.unsuited:
            yield f"left out: holder {holder} of {place}: it cannot be expressed in a policy"
        yield from (f"{place}: {text}" for text in self.templates.remarks)
        if self.writers and (unseen := ", ".join(self._unseen())):
            yield f"not seen of {place}: {unseen}"

    def _why_not(self, user: str) -> str:
        """Return why a user is not listed as a writer, "" if it is."""
        record = self.use.records[user]
        if user == UNKNOWN:
            return ""
        if record.is_left_out(user, self.use.namespace):
            return f"looks like an attack: {record.reasons}"
        if user in self._barred:
            return "what else it did in this namespace looks like an attack"
        return "" if is_name(user) else "this user name cannot be expressed in a policy"

    def _by_pods(self) -> Iterator[tuple[str, str]]:
        """The service accounts of the pods that the holders name: who writes is not in the input."""
        beginnings = {one.holder[:end] for one in self._held for end in range(1, min(len(one.holder), MAX_POD) + 1)}
        for pod in dict.fromkeys(pod for name in sorted(beginnings) for pod in self._by_names.get(name, ())):
            account = self._pods[pod]
            is_account = account_of(f"system:serviceaccount:{self.use.namespace}:{account}")
            if is_account and any(fits_pod(one.holder, pod) for one in self._held):
                yield (
                    f"{self.use.namespace}/{account}",
                    f"of pod {pod}, which the holder names; no write of it was seen",
                )

    def _why_none(self) -> str:
        if self._left_out:
            return "every writer is left out"
        holders = sorted({one.holder for one in self._held})
        if self.use.exempt:
            return "only writers to whom bindings do not apply wrote it"
        if not holders:
            return "no holder and no writer was seen"
        shown = ", ".join(holders[:3])
        return f"who writes is not in the input, only the holder {shown}; add pods to it, or an audit log"

    def _about_holders(self) -> str:
        hidden = f"; hidden by the log in {self.use.hidden.text('write')}" if self.use.hidden.count else ""
        if not self._held:
            return f"no holder was seen{hidden}"
        holders = sorted({one.holder for one in self._held})
        shown = ", ".join(holders[:3])
        return f"{len(holders)} seen: {shown}{', ...' if len(holders) > 3 else ''}{hidden}"

    def _unseen(self) -> Iterator[str]:
        """Yield what of the life of a lease the input does not contain."""
        use = self.use
        seen = {one.holder for one in self._held}
        if len(seen) == 1:
            yield "a second holder"
        if Act.CREATED not in use.acts:
            yield "who creates it"
        if Act.DELETED not in use.acts:
            yield "who deletes it"
        if any(one.user != UNKNOWN and not one.pod for one in self._held):
            yield "the pods of some writers"


def _by_names(pods: Iterable[str]) -> dict[str, list[str]]:
    """Pods by their names and by their host names, as holders begin with either."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        for name in {pod, host_name(pod)}:
            found.setdefault(name, []).append(pod)
    return found


def _named(user: str) -> str:
    """A user as a binding names one."""
    account = account_of(user)
    return "/".join(account) if account else f"user:{user}"
