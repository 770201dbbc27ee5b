"""The presets: every rule, and the modes that people rely on."""

import pytest

from tests.policy.files import policy
from webhook.policy.presets import preset
from webhook.policy.schema_types import OFFLINE, PRESETS, RULE_IDS
from webhook.rules.limits import DEFAULT_LIMITS
from webhook.rules.mode import Mode
from webhook.rules.registry import RULES

STANDARD_THEN_STRICT = {
    "takeover-before-expiry": (Mode.WARN, Mode.DENY),
    "lease-without-stamps": (Mode.AUDIT, Mode.WARN),
    "duration-shortened": (Mode.WARN, Mode.DENY),
    "transitions-decrease": (Mode.AUDIT, Mode.WARN),
    "transitions-mismatch": (Mode.OFF, Mode.AUDIT),
    "acquire-time-changed": (Mode.OFF, Mode.AUDIT),
    "renew-time-backwards": (Mode.AUDIT, Mode.WARN),
    "foreign-release": (Mode.AUDIT, Mode.DENY),
    "foreign-release-across-namespaces": (Mode.WARN, Mode.DENY),
    "holder-identity-mismatch": (Mode.AUDIT, Mode.WARN),
    "node-lease-writer": (Mode.OFF, Mode.WARN),
    "live-lease-deleted": (Mode.AUDIT, Mode.DENY),
    "owner-reference-added": (Mode.WARN, Mode.DENY),
    "candidate-renew-time-backwards": (Mode.OFF, Mode.AUDIT),
    "candidate-changed": (Mode.WARN, Mode.DENY),
    "candidate-strategy-conflict": (Mode.AUDIT, Mode.AUDIT),
}
"""The rules that do not deny in both; all others do."""


def modes(name: str) -> dict[str, Mode]:
    return dict(policy(preset=name).default.modes)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_names_every_rule_and_no_other(name: str) -> None:
    assert set(modes(name)) == {*RULES, "candidate-strategy-conflict"}
    assert len(RULE_IDS) == len(RULES) + len(OFFLINE)


@pytest.mark.parametrize("rule", RULE_IDS)
def test_standard_and_strict(rule: str) -> None:
    expected = STANDARD_THEN_STRICT.get(rule, (Mode.DENY, Mode.DENY))
    assert (modes("standard")[rule], modes("strict")[rule]) == expected


@pytest.mark.parametrize("rule", RULE_IDS)
def test_observe_would_deny_what_standard_or_strict_deny_and_is_else_standard(rule: str) -> None:
    either = Mode.DENY in (modes("standard")[rule], modes("strict")[rule])
    assert modes("observe")[rule] is (Mode.DENY if either else modes("standard")[rule])


def test_rules_that_repeat_the_api_server_deny_in_standard_and_strict() -> None:
    parity = [rule.id for rule in RULES.values() if rule.parity]
    assert parity
    assert {modes(name)[rule] for name in ("standard", "strict") for rule in parity} == {Mode.DENY}


def test_caps() -> None:
    assert [policy(preset=name).mode for name in ("observe", "standard", "strict")] == [Mode.WARN, Mode.DENY, Mode.DENY]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_knows_its_name_and_leaves_numbers_and_leases_alone(name: str) -> None:
    document = preset(name)
    assert document.preset == name
    assert (document.exempt, document.overrides, document.bindings) == ([], [], [])
    assert policy(preset=name).default.limits == DEFAULT_LIMITS
