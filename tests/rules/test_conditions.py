"""A rule with a condition finds nothing in a write that does not meet it, so that its check need not be called."""

import pytest

from tests.rules.known_changes import is_evaluated, known_changes
from webhook.admission.rules.change import Condition
from webhook.admission.rules.registry import CHECKS, RULES_IN_ORDER
from webhook.admission.rules.rule import Rule

CONDITIONAL = [rule for rule in RULES_IN_ORDER if rule.only_if is not None]


@pytest.mark.parametrize("rule", CONDITIONAL, ids=lambda rule: rule.id)
def test_a_rule_finds_nothing_in_a_write_that_does_not_meet_its_condition(rule: Rule) -> None:
    assert rule.only_if is not None
    found_in = [change for change in known_changes() if is_evaluated(rule, change) and rule.check(change)]
    assert found_in
    assert all(change.conditions[rule.only_if] for change in found_in)


@pytest.mark.parametrize("rule", CONDITIONAL, ids=lambda rule: rule.id)
def test_its_check_is_called_for_a_write_that_meets_it(rule: Rule) -> None:
    assert rule.only_if is not None
    conditions = tuple(condition is rule.only_if for condition in Condition)
    (resource, *_), (operation, *_), (event, *_) = rule.resources, rule.operations, rule.events
    assert (rule.check, rule) in CHECKS.find_checks(resource.value, operation, event, conditions)
    unmet = tuple(condition is not rule.only_if for condition in Condition)
    assert (rule.check, rule) not in CHECKS.find_checks(resource.value, operation, event, unmet)
