"""Bindings that would have allowed everything that was seen of leases, and nothing that looks like an attack."""

import re
from collections.abc import Collection, Container, Iterator, Mapping
from typing import Final

from webhook.api.formats import MAX_NAME, dns_label, dns_subdomain
from webhook.api.request import UserInfo
from webhook.inputs.items import Act, Writer
from webhook.rules.holders import POD, WILDCARDS, fits_pod
from webhook.suggestions.evidence import UNKNOWN, AllWrites, LeaseWrites
from webhook.yaml_writer import comment, flow, scalar

MAX_NAMES: Final = 8
"""Holders that are listed one by one."""
EVERY: Final = "*"
"""The template that every holder matches: only the writer is then checked."""
_STEM: Final = re.compile(r"(.+_)[0-9a-f]{4,}(?:-[0-9a-f]+)*")
"""An identity that ends in an underscore and something random, as client-go and most others build one."""
_FIRST: Final = "bindings deny: let them warn first, with `rules: {identity-binding: {mode: warn}}`"


def templates_of(
    holders: Collection[tuple[str, str | None]], pods: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the narrowest templates that a policy can say, and the holders that they do not cover.

    `holders` are (holder, pod of the writer): "" if its token names none, None if the writer is not known. All of
    `pods` are known to write the lease, or to run beside it.
    """
    templates: set[str] = set()
    others: set[str] = set()
    for holder, pod in holders:
        if template := _of_pod(holder, pods if pod is None else [pod]):
            templates.add(template)
        else:
            others.add(holder)
    suited = {one for one in others if _is_name(one) and POD not in one}
    names = {f"{found[1]}*" if (found := _STEM.fullmatch(one)) else one for one in suited}
    templates |= names if len(names) <= MAX_NAMES else {EVERY}
    return tuple(sorted(templates)), tuple(sorted(others - suited))


def _of_pod(holder: str, pods: Container[str]) -> str:
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


def binding_policy(seen: AllWrites, only: tuple[str, str] | None = None, namespace: str = "") -> str:
    """Return a policy file with bindings for all leases, `only` one, or those of a namespace; "" if none was seen."""
    attackers = {
        (user, namespace)
        for (namespace, _), lease in seen.leases.items()
        for user, written in lease.users.items()
        if written.attacks and _is_stranger(user, namespace)
    }
    proposals = [
        _Proposal(*key, lease, attackers, seen.pods.get(key[0], {}))
        for key, lease in sorted(seen.leases.items())
        if only in {None, key} and namespace in {"", key[0]}
    ]
    if not proposals:
        return ""
    entries = [line for one in proposals for line in one.entry()]
    begin = [comment(_FIRST), "bindings:"] if entries else ["bindings: []"]
    remarks = [comment(text) for one in proposals for text in one.remarks()]
    unseen = [comment(f"not seen: {text}") for text in seen.unseen()]
    return "\n".join(["apiVersion: lease-webhook/v1", *begin, *entries, *remarks, *unseen, ""])


class _Proposal:
    """The binding of one lease: its writers, each with the evidence, and the holders that they wrote."""

    def __init__(
        self,
        namespace: str,
        name: str,
        lease: LeaseWrites,
        attackers: Container[tuple[str, str]],
        pods: Mapping[str, str],
    ) -> None:
        """`attackers` are by user and namespace; `pods` are those of the namespace, with their service accounts."""
        self._namespace, self._name, self._place, self._lease = namespace, name, f"{namespace}/{name}", lease
        users = {user: one for user, one in lease.users.items() if user != UNKNOWN}
        self._left_out = {user: why for user in sorted(users) if (why := self._why_not(user, attackers))}
        self._bound = sorted(users.keys() - self._left_out.keys())
        held = {pair for user in self._bound for pair in users[user].holders}
        barred = {holder for holder, is_attack in lease.came_by_attack.items() if is_attack}
        barred |= {holder for user in users for holder, _ in users[user].holders}
        unknown = lease.users[UNKNOWN].holders if UNKNOWN in lease.users else set()
        all_held = [*held, *((holder, None) for holder, _ in unknown if holder not in barred)]
        self._holders = sorted({holder for holder, _ in all_held})
        self._templates, self._unsuited = templates_of(all_held, {*lease.pods, *pods})
        self._writers = {_named(user): users[user].stored.text("write") for user in self._bound}
        if not users:
            self._writers = dict(self._by_pods(pods))

    def entry(self) -> Iterator[str]:
        """Yield the lines of the policy file; none if there can be no binding."""
        if not self._writers:
            return
        yield f"- namespace: {scalar(self._namespace)}"
        yield f"  lease: {scalar(self._name)}"
        yield "  writers:"
        for name, evidence in self._writers.items():
            yield f"  - {scalar(name)}  {comment(evidence)}"
        shown = f"{', '.join(self._holders[:3])}{', ...' if len(self._holders) > 3 else ''}"
        seen = f"{len(self._holders)} seen: {shown}" if self._holders else "no holder was seen"
        yield f"  holder: {flow(self._templates or (EVERY,))}  {comment(seen)}"

    def remarks(self) -> Iterator[str]:
        """Yield what the binding does not allow, and what was not seen."""
        place = self._place
        if not self._writers:
            none = "no writer was seen; add the pods to a list, or add an audit log"
            yield f"no binding for {place}: {'every writer is left out' if self._left_out else none}"
        for user, why in self._left_out.items():
            yield f"left out: {Writer(user).name} on {place}: {why}"
        for user in self._bound:
            if self._lease.users[user].attacks:
                yield f"look at {_named(user)} on {place}, which is a writer: {self._attacks(user)}"
        for holder in self._unsuited:
            yield f"left out: holder {holder} of {place}: it cannot be expressed in a policy"
        if EVERY in self._templates:
            yield f"{place}: more than {MAX_NAMES} holders do not begin with their pods: {EVERY} checks the writer only"
        if self._writers and (unseen := ", ".join(self._unseen())):
            yield f"not seen of {place}: {unseen}"

    def _attacks(self, user: str) -> str:
        """Return what of the writes of a user looks like an attack."""
        found = self._lease.users[user].attacks
        return "; ".join(f"{what} ({evidence.text('time')})" for what, evidence in found.items())

    def _why_not(self, user: str, attackers: Container[tuple[str, str]]) -> str:
        """Return why a user is not listed as a writer, "" if it is."""
        written, namespace = self._lease.users[user], self._namespace
        if written.began_with_attack or (written.attacks and _is_stranger(user, namespace)):
            return f"looks like an attack: {self._attacks(user)}"
        if (user, namespace) in attackers:
            return "what else it did in this namespace looks like an attack"
        return "" if _is_name(user) else "this user name cannot be expressed in a policy"

    def _by_pods(self, pods: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the service accounts of the pods that the holders name: who writes is not in the input."""
        for pod, account in sorted(pods.items()):
            if not dns_subdomain(account) and any(fits_pod(holder, pod) for holder in self._holders):
                name = f"{self._namespace}/{account}"
                yield name, f"of pod {pod}, which the holder names; no write of it was seen"

    def _unseen(self) -> Iterator[str]:
        """Yield what of the life of a lease the input does not contain."""
        if len(self._holders) == 1:
            yield "a second holder"
        if Act.CREATED not in self._lease.acts:
            yield "who creates it"
        if Act.DELETED not in self._lease.acts:
            yield "who deletes it"


def _account_of(user: str) -> tuple[str, str] | None:
    """Return (namespace, name) of a service account with legal names, else None."""
    account = UserInfo(user).service_account
    return account if account and not dns_label(account[0]) and not dns_subdomain(account[1]) else None


def _is_stranger(user: str, namespace: str) -> bool:
    """Return whether a user is a node, or a service account of another namespace."""
    account = _account_of(user)
    return user.startswith("system:node:") or (account is not None and account[0] != namespace)


def _named(user: str) -> str:
    account = _account_of(user)
    return "/".join(account) if account else f"user:{user}"


def _is_name(text: str) -> bool:
    """Return whether a name means only itself in a policy, and can stand there."""
    return bool(text) and text == text.strip() and text.isprintable() and not any(one in text for one in WILDCARDS)
