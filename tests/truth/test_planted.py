"""Planted defects of claims: each takes claims that are true and says something else, and must be noticed.

They are the ways in which claims were false before: the wrong process, the wrong time, the wrong way in which the
lease changed hands, what is over called ongoing, a cause that was not.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from tests.truth.draw import draw
from tests.truth.evaluation import claims_in
from tests.truth.facts import Facts
from tests.truth.inputs import Kind, input_of
from tests.truth.play import play
from tests.truth.predicates import PREDICATES
from tests.truth.records import Process
from webhook.kubernetes.times import SECOND, canonical, parse

Claim = dict[str, Any]
Defect = Callable[[Claim, Facts], Claim | None]
INPUTS = (Kind.LOG, Kind.WATCH, Kind.LIST)
HISTORIES = 60
WRITES = ("earliest", "latest")


@cache
def true_claims() -> Mapping[str, list[tuple[Claim, Facts]]]:
    """What `why` says that is true, by the kind of claim."""
    found: dict[str, list[tuple[Claim, Facts]]] = {}
    for seed in range(HISTORIES):
        history = play(draw(seed))
        for kind in INPUTS:
            given = input_of(history, kind)
            assert given is not None
            for claim, facts in claims_in(history, given):
                predicate = PREDICATES.get(claim["claim"])
                if predicate and facts.namespace == "shop" and predicate(facts, claim):
                    found.setdefault(claim["claim"], []).append((claim, facts))
    return found


# ---- defects --------------------------------------------------------------------------------------------------------


def says(**changes: Any) -> Defect:
    """A claim with other arguments, whatever happened."""
    return lambda claim, _: claim | changes


def names_another(key: str) -> Defect:
    """A claim that names an identity that nobody has."""
    return lambda claim, _: claim | {key: "checkout-zzz"} if claim.get(key) else None


def move_instants(seconds: float, *keys: str) -> Defect:
    """A claim whose instants are earlier or later."""

    def change(claim: Claim, _: Facts) -> Claim | None:
        if any(key not in claim for key in keys):
            return None
        return claim | {key: canonical(parse(claim[key]) + int(seconds * SECOND)) for key in keys}

    return change


def blames(role_of: Callable[[Process], bool]) -> Defect:
    """A claim about a process that names another one, of which nothing of the kind is true."""

    def change(claim: Claim, facts: Facts) -> Claim | None:
        by = claim.get("by") or {}
        others = [one for one in facts.history.processes if one.uid and role_of(one) and not _is(by, one)]
        if not by.get("uid") or not others:
            return None
        other = others[0]
        named = {"user": other.user.name, "pod": other.pod, "uid": other.uid, "manager": "", "known": "process"}
        return claim | {"by": named}

    return change


def _is(by: Mapping[str, Any], process: Process) -> bool:
    return by.get("uid") == process.uid


def bystander(process: Process) -> bool:
    """Whether it is a process of another lease."""
    return process.lease not in ("", "shop/checkout")


def only(condition: Callable[[Claim, Facts], Any], defect: Defect) -> Defect:
    """A defect of some claims alone."""
    return lambda claim, facts: defect(claim, facts) if condition(claim, facts) else None


def expired_long_before(claim: Claim, facts: Facts) -> bool:
    at = facts.earliest(claim, "earliest")
    return not facts.may_be_live(at - 3 * SECOND)


def renewed_before(claim: Claim, facts: Facts) -> bool:
    """Whether the one who was lost had renewed in the half minute before."""
    at = facts.earliest(claim, "from")
    own = (one for one in facts.writes if one.is_renewal and facts.is_own(one, claim["previous"]))
    return len([one for one in own if at - 20 * SECOND < one.at < at - 2 * SECOND]) > 2


def swap_value(key: str, **pairs: str) -> Defect:
    """A claim that has another value of a closed set."""
    table = {old.replace("_", "-"): new.replace("_", "-") for old, new in pairs.items()}
    return lambda claim, _: claim | {key: table[claim[key]]} if claim.get(key) in table else None


PLANTED: dict[str, tuple[str, Defect]] = {
    "the holder is somebody else": ("holder", names_another("identity")),
    "the holder has it since before it had": ("held-since", move_instants(-40, *WRITES)),
    "who wrote the holder in is a bystander": ("held-since", blames(bystander)),
    "the last renewal is in the future": ("last-renewed", move_instants(25, *WRITES)),
    "the last renewal is an earlier one": ("last-renewed", move_instants(-30, *WRITES)),
    "the last renewal is a bystander's": ("last-renewed", blames(bystander)),
    "the lease expires before it does": ("expires", move_instants(-12, "from")),
    "the lease was taken after a release, which it was not": (
        "taken",
        swap_value("how", after_expiry="after-release", while_live="after-release"),
    ),
    "a lease that had been released was stolen": ("taken", swap_value("how", after_release="while-live")),
    "a stolen lease had expired": ("taken", swap_value("how", while_live="after-expiry")),
    "an expired lease was stolen": (
        "taken",
        only(expired_long_before, swap_value("how", after_expiry="while-live")),
    ),
    "the lease was taken at another time": ("taken", move_instants(600, *WRITES)),
    "the lease was taken by a bystander": ("taken", blames(bystander)),
    "somebody else was written in": ("written-in", names_another("identity")),
    "a bystander wrote the holder in": ("written-in", blames(bystander)),
    "the holder released the lease, which another one did": ("released", swap_value("how", foreign="own")),
    "another one released the lease, which the holder did": ("released", swap_value("how", own="foreign")),
    "somebody else was removed": ("released", names_another("identity")),
    "the lease was stolen from somebody else": ("lease-stolen", names_another("previous")),
    "the lease was stolen at another time": ("lease-stolen", move_instants(600, *WRITES)),
    "a bystander's writes were refused": ("write-refused", blames(bystander)),
    "more writes were refused than were made": ("write-refused", says(count=1000)),
    "writes were refused for another reason": ("write-refused", says(code=418)),
    "the lost leader is somebody else": ("leader-lost", names_another("identity")),
    "the leader was lost while it renewed": ("leader-lost", only(renewed_before, move_instants(-25, "from"))),
    "a leader was lost because it renews too seldom": ("leader-lost", says(cause="interval", causes=None)),
    "a leader was late while it renewed": ("renewal-late", move_instants(-25, "from")),
    "a bystander is a second writer": ("second-writer", blames(bystander)),
    "a second writer wrote more often": ("second-writer", says(count=1000)),
    "somebody else was removed by another one": ("foreign-release", names_another("previous")),
    "somebody else held the deleted lease": ("lease-deleted", names_another("previous")),
    "the API server chose somebody else": ("chosen", names_another("identity")),
    "the API server chose at another time": ("chosen", move_instants(600, *WRITES)),
    "the lease expired while it was renewed": ("expired", move_instants(-30, "from")),
}


@pytest.mark.parametrize(("kind", "defect"), PLANTED.values(), ids=PLANTED)
def test_a_planted_defect_is_noticed(kind: str, defect: Defect) -> None:
    changed = [(one, facts) for claim, facts in true_claims().get(kind, []) if (one := defect(claim, facts))]
    assert changed, "no history has such a claim"
    noticed = [one for one, facts in changed if not PREDICATES[kind](facts, one)]
    assert len(noticed) >= 0.9 * len(changed), next(_find_missed(changed, kind))


def _find_missed(changed: list[tuple[Claim, Facts]], kind: str) -> Iterator[str]:
    yield from (f"{facts.history.plan.seed}: {one}" for one, facts in changed if PREDICATES[kind](facts, one))
