"""What service accounts asked of leases and were allowed to: the smallest Roles with the evidence of each rule."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from webhook.api.formats import dns_label
from webhook.observations.observation import Act, Item, Observation, Writer
from webhook.suggestions.evidence import Evidence, Extent
from webhook.suggestions.roles import RESOURCES, VERBS, Uses, role_lines
from webhook.suggestions.suspicion import READS, Suspicions, annotated
from webhook.suggestions.writers import Record, account_of, is_name, is_stranger, left_out
from webhook.suggestions.yaml_text import comment

MOST: Final = 100_000
"""Pairs of a service account and a lease that are remembered."""

_OF_ALL_NAMESPACES: Final = frozenset({"list", "watch"})
_OF_MANY: Final = _OF_ALL_NAMESPACES | {"create", "deletecollection"}
"""Requests that name no object: a creation may leave the name to the API server."""
_EXPECTED: Final = {
    "get": "an elector reads its lease before it writes",
    "create": "the lease must then be there before the elector starts",
}
"""Verbs that most electors need."""


class Rights(Struct):
    """What the service accounts of an input need.

    `account` is the only one that counts, as namespace/name; "" for all.
    """

    suspicions: Suspicions
    account: str = ""
    extent: Extent = field(default_factory=Extent)
    places: "dict[tuple[str, str], Place]" = field(default_factory=dict)
    """By user and namespace; the namespace is "" for requests about all of them."""
    remembered: int = 0
    dropped: int = 0

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        self.extent.observe(item)
        if not isinstance(item, Observation):
            return
        suspicions = self.suspicions.of(item)
        user = item.writer.user if item.writer else ""
        account = account_of(user)
        if account is None or item.verb not in VERBS or self.account not in {"", "/".join(account)}:
            return
        if (item.namespace and dns_label(item.namespace)) or not _can_be_granted(item):
            return
        place = self.places.setdefault((user, item.namespace), Place(user, item.namespace))
        if _was_refused(item):
            place.refuse(item, suspicions)
        elif self._has_space(place, item):
            place.use(item, suspicions)

    def text(self) -> str:
        """The objects as YAML documents, with the evidence as comments; "" if no request counts."""
        unseen = [comment(f"not seen: {text}") for text in self.extent.blind_spots()]
        if self.dropped:
            unseen.append(comment(f"not seen: {self.dropped} requests about more than {MOST} leases"))
        documents = ("".join(f"{line}\n" for line in self.places[key].lines(unseen)) for key in sorted(self.places))
        return "---\n".join(documents)

    def _has_space(self, place: "Place", seen: Observation) -> bool:
        if (RESOURCES[seen.kind], seen.name) in place.uses:
            return True
        self.remembered += 1
        self.dropped += self.remembered > MOST
        return self.remembered <= MOST


class Place(Struct):
    """What one service account did in one namespace. `refused` are what it tried, with why that was refused."""

    user: str
    namespace: str
    uses: Uses = field(default_factory=dict)
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    refused: dict[str, Evidence] = field(default_factory=dict)

    def use(self, seen: Observation, suspicions: tuple[str, ...]) -> None:
        """Count a request that was allowed."""
        key = (RESOURCES[seen.kind], seen.name)
        for verb in _verbs_of(seen):
            self.uses.setdefault(key, {}).setdefault(verb, Evidence()).add(seen)
        record = self.records.setdefault(key, Record())
        if seen.act not in READS:
            record.add(seen, suspicions)

    def refuse(self, seen: Observation, suspicions: tuple[str, ...]) -> None:
        """Count a request that was refused."""
        why = "the right is missing" if _lacks_the_right(seen) else "; ".join(suspicions) or "it was denied"
        what = f"{seen.verb} of {self._shown(RESOURCES[seen.kind], seen.name)}, refused: {why}"
        if what in self.refused or len(self.refused) < MOST:
            self.refused.setdefault(what, Evidence()).add(seen)

    def lines(self, unseen: list[str]) -> Iterator[str]:
        """The role and its binding, and comments about what they do not grant."""
        granted: Uses = {}
        remarks = []
        attacks = {key: record for key, record in self.records.items() if record.suspicious}
        is_attacker = bool(attacks) and is_stranger(self.user, self.namespace)
        for key in sorted(self.uses):
            shown = self._shown(*key)
            if key in attacks and attacks[key].is_left_out(self.user, self.namespace):
                remarks.append(left_out(self.user, shown, f"looks like an attack: {attacks[key].reasons}"))
            elif is_attacker:
                remarks.append(left_out(self.user, shown, "what else it did in this namespace looks like an attack"))
            elif key[1] and not is_name(key[1]):
                remarks.append(left_out(self.user, shown, "no object can have this name"))
            else:
                granted[key] = self.uses[key]
                if key in attacks:
                    remarks.append(f"look at {shown}, which is granted: {attacks[key].reasons}")
        name = Writer(self.user).name
        remarks += [f"left out: {name}, {what} ({found.text('time')})" for what, found in sorted(self.refused.items())]
        if granted:
            yield from role_lines(self.user, self.namespace, granted)
        yield from map(comment, remarks)
        if granted:
            yield from _unseen_verbs(granted)
            yield from unseen

    def _shown(self, resource: str, name: str) -> str:
        where = f"{self.namespace}/{name}" if name else self.namespace and f"namespace {self.namespace}"
        return f"{resource} {where or 'of all namespaces'}"


def _can_be_granted(seen: Observation) -> bool:
    """Whether an API server serves such a request; others get 404 or 405, and a role for them would have no limit.

    Only lists and watches may be about all namespaces, and a request about one object names it.
    """
    if not seen.namespace and seen.verb not in _OF_ALL_NAMESPACES:
        return False
    return bool(seen.name) or seen.verb in _OF_MANY


def _unseen_verbs(granted: Uses) -> Iterator[str]:
    seen = {verb for verbs in granted.values() for verb in verbs}
    for verb, why in _EXPECTED.items():
        if verb not in seen:
            yield comment(f"not seen: {verb}; {why}")
    if rest := [verb for verb in VERBS if verb not in seen and verb not in _EXPECTED]:
        yield comment(f"not seen: {', '.join(rest)}")


def _verbs_of(seen: Observation) -> Iterator[str]:
    """The rights that a request needs: a patch or an update that creates the object needs create as well."""
    yield seen.verb
    is_created = seen.act is Act.CREATED or (seen.answer is not None and seen.answer.code == 201)
    if is_created and seen.verb != "create":
        yield "create"


def _lacks_the_right(seen: Observation) -> bool:
    answer = seen.answer
    return answer is not None and answer.annotations.get("authorization.k8s.io/decision") == "forbid"


def _was_refused(seen: Observation) -> bool:
    """Whether a request was refused; a conflict and an object that is not there are part of an elector's life."""
    code = seen.answer.code if seen.answer else 200
    return code < 200 or code in {401, 403} or (code >= 400 and bool(annotated(seen.answer)[1].rules))
