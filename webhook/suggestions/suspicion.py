"""Which writes look like an attack: nothing is suggested that would allow more of them."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from msgspec import Struct, field

from webhook.evaluate import evaluate
from webhook.history.cluster_history import ClusterHistory
from webhook.history.tenure import Handover
from webhook.observations.observation import Act, Answer, Observation, Origin
from webhook.policy.model import Policy
from webhook.policy.parse import parse
from webhook.rules.finding import Weakened
from webhook.rules.mode import Mode
from webhook.rules.registry import RULES

READS: Final = frozenset({Act.READ, Act.COLLECTION})
TOOK: Final = "took a lease that its holder still had"

ATTACKS: Final[Mapping[str, str]] = {
    "apiserver-lease-writer": "wrote the identity of an API server",
    "candidate-changed": "changed what decides a coordinated election",
    "duration-shortened": "cut a lease that another held",
    "foreign-release": "released a lease for its holder",
    "foreign-release-across-namespaces": "released a lease for its holder",
    "identity-binding": "wrote a lease that is bound to other writers",
    "lease-without-stamps": "took a lease without a record of its renewal",
    "live-lease-deleted": "deleted a lease that was held",
    "node-lease-holder": "wrote the lease of a node",
    "node-lease-writer": "wrote the lease of a node",
    "owner-reference-added": "gave a held lease an owner with which it is deleted",
    "renewal-stamp-tampered": "forged the record of the last renewal",
    "takeover-across-namespaces": TOOK,
    "takeover-before-expiry": TOOK,
    "takeover-by-node": TOOK,
}
"""What a writer did that breaks these rules, all of which concern the lease of another writer."""

FREEZES: Final[Mapping[str, str]] = {
    "candidate-renew-time-in-future": "dated a candidate far ahead",
    "duration-too-long": "set a duration after which no one else could take the lease",
    "renew-time-in-future": "dated a renewal far ahead, so that no one else could take the lease",
    "transitions-jump": "set a count after which no one else could take the lease",
}
"""What freezes a lease, except values that a rule only warns about."""

BY_UPDATE: Final[Mapping[str, str]] = {
    "ping-time-writer": "wrote what the API server asks candidates with",
    "preferred-holder-writer": "named the next leader",
    "strategy-writer": "moved a lease to the coordinated election",
}
"""What a restored backup may create, and what makes a leader step down if it is written into an object that exists."""


_AT_ANY_MODE: Final = frozenset(id_ for id_ in ATTACKS if RULES[id_].strict is Mode.DENY) - {"identity-binding"}
"""Of these an audit log shows attacks even where a policy only warned; a binding that warns is still being tried."""


class Denied(Struct, frozen=True):
    """Why a policy denies a write, or would without its cap: ids of rules, with the event of the write."""

    rules: tuple[str, ...] = ()
    event: str = ""


NOT_DENIED: Final = Denied()


@cache
def strict() -> Policy:
    """The policy that finds all that looks like an attack."""
    return parse("apiVersion: lease-webhook/v1\npreset: strict\n")


def denied_by(policy: Policy, seen: Observation, clock: int) -> Denied:
    """What a policy denies of a recorded review; nothing of any other observation.

    Args:
        policy: by which it is evaluated.
        seen: the observation.
        clock: microseconds since 1970, used if nothing says when it was made.

    """
    if seen.request is None:
        return NOT_DENIED
    at = next((one for one in (seen.at, seen.latest_stamp) if one is not None), clock)
    verdict = evaluate(seen.request, policy, at)
    found = (one.rule for one in verdict.findings if one.mode is Mode.DENY or one.weakened is Weakened.BY_CAP)
    return Denied(tuple(dict.fromkeys(found)), verdict.event)


def annotated(answer: Answer | None) -> tuple[dict[str, str], Denied]:
    """What the webhook wrote into the audit log: all rules with their modes, and what was or would be denied."""
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
    return modes, Denied(tuple(dict.fromkeys([*denied, *would])), event)


def attack_of(rule: str, event: str) -> str:
    """What a denied write did if it looks like an attack, else ""."""
    if rule in BY_UPDATE:
        return "" if event == "create" else BY_UPDATE[rule]
    return ATTACKS.get(rule) or FREEZES.get(rule, "")


class Suspicions(Struct):
    """Follows every lease, and says of each write whether it looks like an attack.

    Each kind of input is followed by itself: a watch and a log of the same writes must not hide each other.
    """

    clock: int
    histories: dict[Origin, ClusterHistory] = field(default_factory=dict)

    def of(self, seen: Observation) -> tuple[str, ...]:
        """What the write did that looks like an attack, as phrases; observations come in order."""
        return tuple(dict.fromkeys((*self._by_rules(seen), *self._by_history(seen))))

    def _by_rules(self, seen: Observation) -> Iterator[str]:
        found = denied_by(strict(), seen, self.clock)
        modes, annotation = annotated(seen.answer)
        warned = (rule for rule in modes if rule in _AT_ANY_MODE)
        rules = dict.fromkeys((*found.rules, *annotation.rules, *warned))
        for rule in rules:
            if what := attack_of(rule, found.event or annotation.event):
                yield what

    def _by_history(self, seen: Observation) -> Iterator[str]:
        if seen.act in READS or not seen.is_stored:
            return  # a read takes no lease, and anyone may ask for any name
        history = self.histories.setdefault(seen.origin, ClusterHistory())
        key = (seen.namespace, seen.name)
        before = _steals(history, key)
        history.observe(seen)
        if _steals(history, key) > before:
            yield TOOK


def _steals(history: ClusterHistory, key: tuple[str, str]) -> int:
    one = history.leases.get(key)
    return one.handovers.get(Handover.STOLEN, 0) if one else 0
