"""The list of rules: complete, explained, and refused if it contradicts itself."""

import pytest
from msgspec.structs import replace

from webhook.api.request import Operation
from webhook.rules.change import Event
from webhook.rules.registry import OFFLINE_RULES, RULES, RULES_BY_OCCASION, BadRegistryError, by_occasion, checked
from webhook.rules.rule import Mode

SAMPLE = next(iter(RULES.values()))
ON_RENEWAL = {
    "time-unreadable",
    "renewal-stamp-tampered",
    "lease-too-large",
    "renew-time-in-future",
    "duration-too-long",
    "duration-shortened",
    "renew-time-backwards",
    "identity-binding",
    "owner-reference-added",
    "apiserver-lease-writer",
}
"""The rules marked R, and three about metadata that may ride on a renewal: only they may speak on one."""
ON_UNTOUCHED = {
    "time-unreadable",
    "renewal-stamp-tampered",
    "lease-too-large",
    "owner-reference-added",
    "apiserver-lease-writer",
}


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(BadRegistryError, match=f"two rules are called {SAMPLE.id}"):
        checked((SAMPLE, SAMPLE))


def test_a_rule_without_a_text_or_a_source_is_refused() -> None:
    for bad in (replace(SAMPLE, source=""), replace(SAMPLE, check=lambda _: ())):
        with pytest.raises(BadRegistryError, match="no summary or no source"):
            checked((bad,))


def test_a_rule_that_is_weaker_in_strict_than_in_standard_is_refused() -> None:
    with pytest.raises(BadRegistryError, match=f"rule {SAMPLE.id} is weaker in strict than in standard"):
        checked((replace(SAMPLE, standard=Mode.WARN, strict=Mode.AUDIT),))


def test_only_marked_rules_speak_on_a_renewal_and_on_an_untouched_spec() -> None:
    def speaking(event: Event) -> set[str]:
        rules = RULES_BY_OCCASION["leases", Operation.UPDATE, event]
        return {rule.id for rule in rules if not rule.parity}

    assert speaking(Event.RENEWAL) == ON_RENEWAL
    assert speaking(Event.UNTOUCHED) == ON_UNTOUCHED


@pytest.mark.parametrize("rule", [*RULES.values(), *OFFLINE_RULES.values()], ids=[*RULES, *OFFLINE_RULES])
def test_every_rule_says_what_must_be(rule: object) -> None:
    summary = getattr(rule, "summary", "")
    assert summary.endswith(".")
    assert any(f" {word} " in summary for word in ("must", "may")), summary
    assert " should " not in summary
    assert len(summary) <= 120


def test_every_rule_is_asked_on_its_occasions_and_no_other() -> None:
    assert by_occasion(checked(RULES.values()).values()) == RULES_BY_OCCASION
    assert checked(RULES.values()) == RULES
