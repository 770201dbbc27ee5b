"""Writes that the API server's field manager made of honest and of forged managedFields, with the truth beside them.

Each line is reviewed under the strict policy, from bytes to verdict, and the verdict is compared with what happened.
"""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

import pytest

from tests.conformance.corpus import cases
from tests.evidence.reviews import Outcome, evaluate, review, text_of

Case = dict[str, Any]

SHOWN = 10
"""Lines that a failure prints; its counts cover all of them."""


@cache
def evaluated() -> list[tuple[Case, Outcome]]:
    """Every line of the corpus with the outcome of its review."""
    return [(case, outcome_of(case)) for case in cases("managed-fields")]


def outcome_of(case: Case) -> Outcome:
    """The outcome at the clock that the line names."""
    body = review(case["operation"], case["user"], text_of(case, "object"), text_of(case, "oldObject"))
    return evaluate(body, round(datetime.fromisoformat(case["now"]).timestamp() * 1_000_000))


def event_is_admissible(case: Case, outcome: Outcome) -> bool:
    return outcome.event in case["expected"]["event"]


def expiry_is_known(case: Case, outcome: Outcome) -> bool:
    """A live lease is seen as live, and an expired one as expired, by the event or by a rule that depends on it."""
    live = case["expected"]["live"]
    if live is None:
        return True
    if outcome.event in {"steal", "takeover"}:
        return (outcome.event == "steal") is live
    if outcome.event == "release" and case["truth"]["actor"] != "attacker":
        return not outcome.live  # a release by the holder is not asked for expiry
    return outcome.live is live


def tampering_is_known(case: Case, outcome: Outcome) -> bool:
    """An attacker's apply entry may also own fields that do not exist, which the definition of the corpus allows."""
    if case["truth"]["actor"] == "attacker" and outcome.tampered:
        return True
    return outcome.tampered is case["expected"]["tampered"]


def denial_stands(case: Case, outcome: Outcome) -> bool:
    """A denial that rests on expiry does not weaken to a warning unless the line admits it."""
    return case["expected"]["may_weaken"] or not outcome.weakened


def review_has_a_verdict(case: Case, outcome: Outcome) -> bool:
    return outcome.status == 200


@pytest.mark.parametrize(
    "holds", [review_has_a_verdict, event_is_admissible, expiry_is_known, tampering_is_known, denial_stands]
)
def test_verdict_agrees_with_what_the_field_manager_made(holds: Callable[[Case, Outcome], bool]) -> None:
    failed = [(case, outcome) for case, outcome in evaluated() if not holds(case, outcome)]
    if failed:
        pytest.fail(report(failed), pytrace=False)


def report(failed: list[tuple[Case, Outcome]]) -> str:
    """Counts of the failed lines for each basis, actor and kind of write, and the first lines themselves."""
    counts = Counter((case["basis"], case["truth"]["actor"], case["truth"]["kind"]) for case, _ in failed)
    lines = [f"{len(failed)} of {len(evaluated())} lines"]
    lines += [f"{count:6d}  {' / '.join(key)}" for key, count in sorted(counts.items())]
    lines += [f"{case['id']}: expected {case['expected']}, got {outcome}" for case, outcome in failed[:SHOWN]]
    return "\n".join(lines)


def test_corpus_is_whole() -> None:
    lines = cases("managed-fields")
    assert len(lines) == 6000
    assert Counter(case["basis"] for case in lines) == {"truth": 3995, "definition": 2005}
    assert sum(case["expected"]["tampered"] for case in lines) > 2000
