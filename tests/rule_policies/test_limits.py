"""A number of a rule is that of the policy file in its CEL, too: at other values the engine and the policy agree."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.factories import NOW, Document, to_bytes
from tests.rule_policies import compared
from tests.rule_policies.in_process import ExportedPolicies
from tests.rule_policies.test_each_rule import DENYING
from tests.rules.findings import SECOND
from tests.rules.pinned_writes import pinned_writes
from webhook.admission.policy.parse import parse
from webhook.admission.rules.registry import RULES

LOW: Final = 1
HIGH: Final = 2**63 - 1
"""The largest that a policy may set: in CEL, what goes beyond is an error, and the write passes."""


def answers_of(rule: str, limits: dict[str, int]) -> list[tuple[Document, list[str], list[str]]]:
    """Return each write whose wording is pinned, with the modes that the engine and the policy find of it."""
    numbers = "".join(f", {name}: {value}" for name, value in limits.items())
    policy = parse(DENYING.replace(f"  {rule}: {{mode: deny}}\n", f"  {rule}: {{mode: deny{numbers}}}\n"))
    exported = ExportedPolicies(policy)
    modes = []
    for name, review in pinned_writes():
        body, request = to_bytes(review), review["request"]
        if name == rule and compared.is_sent(request, body):
            expected = compared.expected(compared.verdict_of(body, policy, NOW + 4 * SECOND), request)
            engine = sorted(mode for mode, broken in expected if broken == rule)
            modes.append((request, engine, sorted(one.mode for one in exported.broken(request) if one.rule == rule)))
    return modes


def cases() -> Iterator[Any]:
    """Yield each number of each rule that is said in CEL."""
    for rule in RULES.values():
        for name in rule.default_limits if rule.in_cel.is_said else ():
            yield pytest.param(rule.id, name, id=f"{rule.id}, {name}")


@pytest.mark.parametrize(("rule", "name"), [*cases()])
def test_the_policy_and_the_engine_have_the_same_number(rule: str, name: str) -> None:
    low = dict.fromkeys(RULES[rule].default_limits, LOW)
    high = dict.fromkeys(low, HIGH)
    # What only warns may not be above what denies.
    ends = (high, high | {name: LOW}) if name.startswith("warn_") else (low | {name: HIGH}, low)
    answers = [answers_of(rule, limits) for limits in ends]
    differing = [(limits, *one) for limits, each in zip(ends, answers, strict=True) for one in each if one[1] != one[2]]
    assert differing == [], f"`${name}` in `in_cel` and `find_limits` in the check must decide the same"
    hint = (
        f"no pinned write depends on the number alone at {LOW} or {HIGH:,}, with the others at the other end: "
        "add one to WRITES_IT_SPEAKS_OF of the tests of the rule"
    )
    assert answers[0] != answers[1], hint
