"""Defects to plant into what is true of random histories, and how often one is noticed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.truth.draw import draw
from tests.truth.facts import Facts
from tests.truth.inputs import Input, Kind, input_of
from tests.truth.play import play
from tests.truth.predicates import Predicate
from tests.truth.records import History
from webhook.kubernetes.times import SECOND, format_micro_time, parse

Claim = dict[str, Any]
"""A claim, or a statement that is shown beside claims."""
Defect = Callable[[Claim, Facts], Claim | None]
"""What makes a false claim of a true one; None where it does not apply."""
_INPUTS = (Kind.LOG, Kind.WATCH, Kind.LIST)


def find_true(
    seeds: Iterable[int],
    find_claims: Callable[[History, Input], Iterator[tuple[Claim, Facts]]],
    predicates: Mapping[str, Predicate],
) -> Mapping[str, list[tuple[Claim, Facts]]]:
    """Return the claims about the leases of a shop in the histories of some seeds that are true, by their kind."""
    true_claims: dict[str, list[tuple[Claim, Facts]]] = {}
    for seed in seeds:
        history = play(draw(seed))
        for kind in _INPUTS:
            given = input_of(history, kind)
            assert given is not None
            for claim, facts in find_claims(history, given):
                predicate = predicates.get(claim["claim"])
                if predicate and facts.namespace == "shop" and predicate(facts, claim):
                    true_claims.setdefault(claim["claim"], []).append((claim, facts))
    return true_claims


def check_noticed(claims: Iterable[tuple[Claim, Facts]], defect: Defect, predicate: Predicate) -> None:
    """Fail unless a defect applies to one of some true claims, and is noticed in nine of ten to which it applies."""
    changed = [(one, facts) for claim, facts in claims if (one := defect(claim, facts))]
    assert changed, "no history has such a claim"
    missed = [f"{facts.history.plan.seed}: {one}" for one, facts in changed if predicate(facts, one)]
    assert len(missed) <= 0.1 * len(changed), missed[0]


def says(**changes: Any) -> Defect:
    """Return a claim with other arguments, whatever happened."""
    return lambda claim, _: claim | changes


def names_another(key: str) -> Defect:
    """Return a claim that names an identity that nobody has."""
    return lambda claim, _: claim | {key: "checkout-zzz"} if claim.get(key) else None


def move_instants(seconds: float, *keys: str) -> Defect:
    """Return a claim whose instants are earlier or later."""

    def change(claim: Claim, _: Facts) -> Claim | None:
        if any(key not in claim for key in keys):
            return None
        return claim | {key: format_micro_time(parse(claim[key]) + int(seconds * SECOND)) for key in keys}

    return change


def swap_value(key: str, **pairs: str) -> Defect:
    """Return a claim that has another value of a closed set."""
    table = {old.replace("_", "-"): new.replace("_", "-") for old, new in pairs.items()}
    return lambda claim, _: claim | {key: table[claim[key]]} if claim.get(key) in table else None


def only(condition: Callable[[Claim, Facts], Any], defect: Defect) -> Defect:
    """Return a defect of the claims alone that meet a condition."""
    return lambda claim, facts: defect(claim, facts) if condition(claim, facts) else None
