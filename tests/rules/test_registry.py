"""The list of rules: complete and explained."""

import tracemalloc

import pytest

from webhook.admission.rules.change import Condition, Event
from webhook.admission.rules.election.duration import DurationLimits
from webhook.admission.rules.limits import has_limits
from webhook.admission.rules.registry import CHECKS, RULES, RULES_IN_ORDER, Checks
from webhook.admission.rules.rule import Rule, texts
from webhook.kubernetes.request import Operation

ON_RENEWAL = {
    "time-unreadable",
    "renewal-stamp-tampered",
    "lease-too-large",
    "renew-time-in-future",
    "duration-too-long",
    "duration-shortened",
    "foreign-writer",
    "renew-time-backwards",
    "identity-binding",
    "owner-reference-added",
    "owner-reference-removed",
    "apiserver-lease-writer",
}
"""Rules of what a renewal may change, one about the writer, and four about metadata that may ride on one."""
ON_UNTOUCHED = {
    "foreign-writer",
    "identity-binding",
    "time-unreadable",
    "renewal-stamp-tampered",
    "lease-too-large",
    "owner-reference-added",
    "owner-reference-removed",
    "apiserver-lease-writer",
}


@pytest.mark.parametrize("rule", RULES_IN_ORDER, ids=lambda rule: rule.id)
def test_every_rule_is_listed_once_has_a_source_and_is_not_weaker_in_strict(rule: Rule) -> None:
    assert RULES_IN_ORDER.count(rule) == 1
    assert RULES[rule.id] is rule
    assert rule.texts.source
    assert rule.strict >= rule.standard


def test_only_marked_rules_speak_on_a_renewal_and_on_an_untouched_spec() -> None:
    def speaking(event: Event) -> set[str]:
        rules = CHECKS.find_rules("leases", Operation.UPDATE, event)
        return {rule.id for rule in rules if not rule.parity}

    assert speaking(Event.RENEWAL) == ON_RENEWAL
    assert speaking(Event.UNTOUCHED) == ON_UNTOUCHED


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_says_what_must_be(rule: Rule) -> None:
    summary = rule.texts.summary
    assert summary.endswith(".")
    assert any(f" {word} " in summary for word in ("must", "may")), summary
    assert " should " not in summary
    assert len(summary) <= 120


def test_two_checks_of_one_name_cannot_both_be_rules() -> None:
    def lease_duration(_change: object) -> tuple[()]:
        """Spec must be something else."""
        return ()

    with pytest.raises(ValueError, match="two checks are named lease_duration"):
        texts(source="ours", why="It collides.", fix="Choose another name.")(lease_duration)


def test_two_rules_cannot_have_the_same_numbers() -> None:
    with pytest.raises(ValueError, match="two rules have the numbers DurationLimits"):
        has_limits(DurationLimits)(lambda _change: ())


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
