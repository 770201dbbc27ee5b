"""The list of rules: complete and explained."""

import pkgutil
import tracemalloc
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from msgspec.structs import replace

from tests.rules.known_changes import is_evaluated, known_changes, known_renewals
from webhook.admission.rules import election, parity
from webhook.admission.rules.change import Condition, Event, LeaseChange
from webhook.admission.rules.checks import Checks
from webhook.admission.rules.election.duration import DurationLimits
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import ALL_RULES, CHECKS, RULES, RULES_IN_ORDER, index_rules
from webhook.admission.rules.rule import Rule
from webhook.kubernetes.request import Operation, Resource

ON_LEASE_UPDATES = [
    rule for rule in RULES_IN_ORDER if Resource.LEASES in rule.resources and Operation.UPDATE in rule.operations
]


def cases_of_ordinary_writes() -> Iterator[Any]:
    for event in (Event.RENEWAL, Event.UNTOUCHED):
        for rule in CHECKS.find_rules("leases", Operation.UPDATE, event):
            if not rule.parity:
                yield pytest.param(rule, event, id=f"{rule.id}, {event}")


@pytest.mark.parametrize("rule", RULES_IN_ORDER, ids=lambda rule: rule.id)
def test_every_rule_is_listed_once_has_a_source_and_is_not_weaker_in_strict(rule: Rule) -> None:
    assert RULES[rule.id] is rule
    assert rule.texts.source
    assert rule.strict >= rule.standard


@pytest.mark.parametrize(("rule", "event"), [*cases_of_ordinary_writes()])
def test_a_rule_that_is_evaluated_on_ordinary_writes_speaks_of_one(rule: Rule, event: Event) -> None:
    """Each of them may cost a healthy leader its lease, and all of them pay for it: no rule is there by mistake."""
    of_event = (change for change in known_changes() if isinstance(change, LeaseChange) and change.event is event)
    assert any(rule.check(change) for change in of_event if change.request.operation is Operation.UPDATE), (
        "leave the event out of the rule, or add such a write to the tests of the rule"
    )


@pytest.mark.parametrize("rule", ON_LEASE_UPDATES, ids=lambda rule: rule.id)
def test_what_a_rule_denies_of_renewals_is_in_the_promises(rule: Rule) -> None:
    denies = rule.strict is Mode.DENY and any(
        finding.tier is Mode.DENY
        for change in known_renewals()
        if is_evaluated(rule, change)
        for finding in rule.check(change)
    )
    # Of the API server's own checks there are more than writes here.
    assert denies == (rule.denied_renewal is not None) or (rule.parity and not denies), (
        "say it in `denied_renewal`, or deny no renewal; what it says needs such a write in the tests of the rule"
    )


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_says_what_must_be(rule: Rule) -> None:
    summary = rule.summary
    assert summary, "write the text of the rule as the docstring of its check"
    assert summary.endswith(".")
    assert any(f" {word} " in summary for word in ("must", "may")), summary
    assert " should " not in summary
    assert len(summary) <= 120


def test_two_rules_cannot_have_one_id() -> None:
    def lease_duration(_change: object) -> tuple[()]:
        return ()

    other = replace(RULES["duration-too-long"], check=lease_duration)
    with pytest.raises(ValueError, match=r"spec\.lease_duration and .*lease_duration would both be lease-duration"):
        index_rules([*RULES_IN_ORDER, other])


def test_two_rules_cannot_have_the_same_numbers() -> None:
    other = replace(RULES["duration-shortened"], limits=DurationLimits)
    with pytest.raises(ValueError, match="duration-too-long and duration-shortened have the same numbers Duration"):
        index_rules([RULES["duration-too-long"], other])


def test_no_rule_of_a_module_is_left_out_of_the_list() -> None:
    found = {
        f"{module.__name__}.{name}"
        for package in (election, parity)
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        for module in [import_module(info.name)]
        for name, value in vars(module).items()
        if isinstance(value, Rule) and not any(value is rule for rule in ALL_RULES.values())
    }
    assert not found, "add them to webhook/admission/rules/registry.py"


def test_line_breaks_in_cel_are_spaces() -> None:
    said = RuleInCel(
        broken="""
        variables.isBound &&
        variables.isJump
        """,
        variables={"isJump": "a\n  > b"},
        phrases={"why": "because\nit is"},
    )
    assert said.broken == "variables.isBound && variables.isJump"
    assert (said.variables, said.phrases) == ({"isJump": "a > b"}, {"why": "because it is"})


def test_exemptions_that_a_name_chooses_take_no_memory() -> None:
    """A policy may have as many sets of exempt rules as subsets of its exemptions; who names a lease chooses one."""
    checks = Checks(RULES_IN_ORDER)
    met = (True,) * len(Condition)
    occasion = "leases", Operation.UPDATE, Event.STEAL
    every = {rule.id for _, rule in checks.find_checks(*occasion, met)}
    tracemalloc.start()
    try:
        for number in range(1000):
            exempt = frozenset({"takeover-before-expiry", f"rule-{number}"})
            assert {rule.id for _, rule in checks.find_checks(*occasion, met, exempt)} == every - exempt
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
