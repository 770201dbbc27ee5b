"""Bindings that would have allowed everything that was seen of leases, and nothing that looks like an attack."""

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.api.formats import dns_label, dns_subdomain
from webhook.inputs.items import Act
from webhook.rules.holders import MAX_POD, POD, WILDCARDS, fits_pod
from webhook.suggestions.evidence import (
    UNKNOWN,
    Evidence,
    Write,
    Writes,
    account_of,
    is_always_exempt,
    is_name,
    is_stranger,
    left_out,
    total,
)
from webhook.yaml_writer import comment, flow, scalar

MAX_NAMES: Final = 8
"""Holders that are listed one by one."""
MAX_REASONS: Final = 4
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

    `holders` are (holder, pod of the writer): "" if its token names none, None if the writer is not known. All of
    `pods` are known to write the lease, or to run beside it.
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
    else:
        templates.add(EVERY)
        remarks.append(
            f"{len(suited)} holders do not begin with their pods, so {EVERY} checks the writer only: "
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


_FIRST: Final = "bindings deny: let them warn first, with `rules: {identity-binding: {mode: warn}}`"

_Seen = Mapping[Write, Evidence]


def binding_policy(seen: Writes, only: tuple[str, str] | None = None) -> str:
    """Return a policy file with bindings for all leases, or `only` one, and comments; "" if no lease was seen."""
    leases: dict[tuple[str, str], dict[Write, Evidence]] = {}
    for write, evidence in seen.writes.items():
        key = (write.namespace, write.name)
        if write.kind == "Lease" and (write.is_stored or write.is_refused) and only in {None, key}:
            leases.setdefault(key, {})[write] = evidence
    if not leases:
        return ""
    attackers = {(one.writer.user, one.namespace) for writes in leases.values() for one in writes if _is_foreign(one)}
    proposals = [_Proposal(*key, leases[key], attackers, seen.pods.get(key[0], {})) for key in sorted(leases)]
    entries = [line for one in proposals for line in one.entry()]
    remarks = [comment(text) for one in proposals for text in one.remarks()]
    begin = ["apiVersion: lease-webhook/v1"]
    begin += [comment(_FIRST), "bindings:"] if entries else ["bindings: []"]
    unseen = [comment(f"not seen: {text}") for text in seen.unseen()]
    return "".join(f"{line}\n" for line in (*begin, *entries, *remarks, *unseen))


def _counts(write: Write) -> bool:
    """Return whether a write, or a stored object, says who has to be bound."""
    return write.is_stored and not write.is_open and not is_always_exempt(write.writer)


def _is_foreign(write: Write) -> bool:
    """Return whether someone who does not belong to the lease made what looks like an attack."""
    return _counts(write) and bool(write.attacks) and is_stranger(write.writer.user, write.namespace)


class _Proposal:
    """The binding of one lease: its writers, each with the evidence, and the holders that they wrote."""

    def __init__(
        self, namespace: str, name: str, seen: _Seen, attackers: Container[tuple[str, str]], pods: Mapping[str, str]
    ) -> None:
        """`attackers` are by user and namespace; `pods` are those of the namespace, with their service accounts."""
        self.namespace, self.name, self._place = namespace, name, f"{namespace}/{name}"
        self._seen = seen
        self._pods = pods
        self._attackers = attackers
        self._kept = [one for one in seen if _counts(one)]
        self._users: dict[str, list[Write]] = {}
        for one in self._kept:
            if one.act is not Act.STORED:
                self._users.setdefault(one.writer.user, []).append(one)
        self._left_out = {user: why for user in self._users if (why := self._why_not(user))}
        self._bound = sorted(self._users.keys() - self._left_out.keys() - {UNKNOWN})
        self._held = [*self._holders()]
        self.writers = {_named(user): self._total(self._users[user]).text("write") for user in self._bound}
        if not self._users.keys() - {UNKNOWN}:
            self.writers = dict(sorted(self._by_pods()))
        held = [(one.holder or "", None if one.writer.user == UNKNOWN else one.writer.pod) for one in self._held]
        writing = {one.writer.pod for one in self._kept if one.writer.pod and one.act is not Act.DELETED}
        self.templates = templates_of(held, {*writing, *pods})
        self.can_be_named = not dns_label(namespace) and not dns_subdomain(name)

    def _total(self, writes: Iterable[Write]) -> Evidence:
        return total(self._seen[one] for one in writes)

    def _holders(self) -> Iterator[Write]:
        """Yield what the bound users wrote, and what unknown ones did, without what was taken or others wrote."""
        held = [one for one in self._kept if one.holder]
        first = {one.holder: one for one in reversed(held)}
        users = {UNKNOWN, *self._bound}
        known = {one.holder for one in held if one.writer.user in self._bound}
        barred = {one.holder for one in held if one.writer.user not in users or first[one.holder].attacks}
        for one in held:
            if one.writer.user in self._bound or (one.writer.user == UNKNOWN and one.holder not in barred - known):
                yield one

    def entry(self) -> Iterator[str]:
        """The lines of the policy file; none if there can be no binding."""
        if not self.writers or not self.can_be_named:
            return
        yield f"- namespace: {scalar(self.namespace)}"
        yield f"  lease: {scalar(self.name)}"
        yield "  writers:"
        for name, evidence in self.writers.items():
            yield f"  - {scalar(name)}  {comment(evidence)}"
        yield f"  holder: {flow(self.templates.templates or (EVERY,))}  {comment(self._about_holders())}"

    def remarks(self) -> Iterator[str]:
        """Yield what the binding does not allow, and what was not seen."""
        place = self._place
        if not self.can_be_named:
            yield f"no binding for {place}: no lease can have this name"
            return
        if not self.writers:
            yield f"no binding for {place}: {self._why_none()}"
        for user, why in sorted(self._left_out.items()):
            yield left_out(user, place, why)
        for user in self._bound:
            if reasons := self._reasons(user):
                yield f"look at {_named(user)} on {place}, which is a writer: {reasons}"
        for (user, what), writes in sorted(self._refused().items()):
            why = f": looks like an attack: {what}" if what else ""
            yield left_out(user, place, f"refused{why} ({self._total(writes).text('time')})")
        for name in sorted(self._exempt):
            yield f"{place}: {name} wrote it, too; bindings do not apply to it"
        for holder in self.templates.unsuited:
            yield f"left out: holder {holder} of {place}: it cannot be expressed in a policy"
        yield from (f"{place}: {text}" for text in self.templates.remarks)
        if self.writers and (unseen := ", ".join(self._unseen())):
            yield f"not seen of {place}: {unseen}"

    def _refused(self) -> dict[tuple[str, str], list[Write]]:
        """Return what was not stored, by user and by what looks like an attack."""
        found: dict[tuple[str, str], list[Write]] = {}
        for one in self._seen:
            if one.is_refused:
                found.setdefault((one.writer.user, "; ".join(one.attacks)), []).append(one)
        return found

    @property
    def _exempt(self) -> set[str]:
        """Those who wrote it and to whom bindings do not apply."""
        stored = (one.writer for one in self._seen if one.is_stored and not one.is_open)
        return {writer.name for writer in stored if is_always_exempt(writer)}

    def _reasons(self, user: str) -> str:
        """Return what of the writes of a user looks like an attack."""
        attacks = list(dict.fromkeys(what for one in self._users[user] for what in one.attacks))[:MAX_REASONS]
        found = {what: self._total(one for one in self._users[user] if what in one.attacks) for what in attacks}
        return "; ".join(f"{what} ({evidence.text('time')})" for what, evidence in found.items())

    def _why_not(self, user: str) -> str:
        """Return why a user is not listed as a writer, "" if it is."""
        writes = self._users[user]
        if user == UNKNOWN:
            return ""
        if writes[0].attacks or any(map(_is_foreign, writes)):
            return f"looks like an attack: {self._reasons(user)}"
        if (user, self.namespace) in self._attackers:
            return "what else it did in this namespace looks like an attack"
        return "" if is_name(user) else "this user name cannot be expressed in a policy"

    def _by_pods(self) -> Iterator[tuple[str, str]]:
        """The service accounts of the pods that the holders name: who writes is not in the input."""
        for pod, account in self._pods.items():
            is_account = account_of(f"system:serviceaccount:{self.namespace}:{account}")
            if is_account and any(fits_pod(one.holder or "", pod) for one in self._held):
                yield (f"{self.namespace}/{account}", f"of pod {pod}, which the holder names; no write of it was seen")

    def _why_none(self) -> str:
        if self._left_out:
            return "every writer is left out"
        holders = sorted({one.holder or "" for one in self._held})
        if self._exempt:
            return "only writers to whom bindings do not apply wrote it"
        if not holders:
            return "no holder and no writer was seen"
        shown = ", ".join(holders[:3])
        return f"who writes is not in the input, only the holder {shown}; add pods to it, or an audit log"

    def _about_holders(self) -> str:
        unseen = self._total(one for one in self._kept if one.holder is None)
        hidden = f"; hidden by the log in {unseen.text('write')}" if unseen.count else ""
        if not self._held:
            return f"no holder was seen{hidden}"
        holders = sorted({one.holder or "" for one in self._held})
        shown = ", ".join(holders[:3])
        return f"{len(holders)} seen: {shown}{', ...' if len(holders) > 3 else ''}{hidden}"

    def _unseen(self) -> Iterator[str]:
        """Yield what of the life of a lease the input does not contain."""
        acts = {one.act for one in self._kept}
        if len({one.holder for one in self._held}) == 1:
            yield "a second holder"
        if Act.CREATED not in acts:
            yield "who creates it"
        if Act.DELETED not in acts:
            yield "who deletes it"
        if any(one.writer.user != UNKNOWN and not one.writer.pod for one in self._held):
            yield "the pods of some writers"


def _named(user: str) -> str:
    account = account_of(user)
    return "/".join(account) if account else f"user:{user}"
