"""Which layer of a policy wins: preset < rules < overrides in order; the cap is a matter of its own."""

from typing import Any

import pytest

from tests.policy.files import CREATE, DELETE, UPDATE, policy
from webhook.admission.rules.limits import DEFAULT_LIMITS
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES
from webhook.kubernetes.request import Operation

RULE = "takeover-before-expiry"


def deny(rule: str = RULE) -> dict[str, Any]:
    return {rule: {"mode": "deny"}}


def test_the_smallest_file_is_standard() -> None:
    compiled = policy()
    assert (compiled.preset, compiled.mode, compiled.enforce_without_stamps) == ("standard", Mode.DENY, False)
    assert compiled.resolve("shop", "checkout", UPDATE).limits == DEFAULT_LIMITS
    assert not compiled.bindings


@pytest.mark.parametrize(
    ("keys", "mode"),
    [
        pytest.param({}, Mode.WARN, id="the preset decides where the file is silent"),
        pytest.param({"preset": "strict"}, Mode.DENY, id="another preset"),
        pytest.param({"rules": deny()}, Mode.DENY, id="rules win over the preset, and may raise a mode"),
        pytest.param({"rules": {RULE: {"mode": "off"}}}, Mode.OFF, id="rules may lower a mode"),
        pytest.param(
            {"rules": {RULE: {"mode": "off"}}, "overrides": [{"rules": deny()}]},
            Mode.DENY,
            id="an override wins over rules",
        ),
        pytest.param(
            {"overrides": [{"rules": deny()}, {"rules": {RULE: {"mode": "audit"}}}]},
            Mode.AUDIT,
            id="a later override wins",
        ),
        pytest.param(
            {
                "overrides": [
                    {"rules": {RULE: {"mode": "audit"}}, "namespaces": ["shop"], "leases": ["checkout"]},
                    {"rules": deny(), "namespaces": ["sh*"]},
                ]
            },
            Mode.DENY,
            id="a later glob wins over an earlier exact name",
        ),
        pytest.param(
            {
                "overrides": [
                    {"rules": deny(), "namespaces": ["sh*"]},
                    {"rules": {RULE: {"mode": "audit"}}, "namespaces": ["shop"], "leases": ["checkout"]},
                ]
            },
            Mode.AUDIT,
            id="a later exact name wins over an earlier glob",
        ),
        pytest.param(
            {"overrides": [{"rules": deny(), "namespaces": ["bank"]}]}, Mode.WARN, id="an override of another namespace"
        ),
        pytest.param(
            {"overrides": [{"rules": deny(), "namespaces": ["shop"], "leases": ["check"]}]},
            Mode.WARN,
            id="a glob covers the whole name",
        ),
        pytest.param(
            {"overrides": [{"rules": deny()}, {"rules": {"duration-too-long": {"deny_above_seconds": 90_000}}}]},
            Mode.DENY,
            id="an override leaves alone what it does not name",
        ),
        pytest.param(
            {"rules": deny(), "mode": "warn"}, Mode.DENY, id="the cap is kept apart, so that would-deny is known"
        ),
    ],
)
def test_mode_of_one_rule(keys: dict[str, Any], mode: Mode) -> None:
    assert policy(**keys).resolve("shop", "checkout", UPDATE).modes[RULE] is mode


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        pytest.param(
            [{"operations": ["UPDATE"], "rules": deny()}],
            {CREATE: Mode.WARN, UPDATE: Mode.DENY, DELETE: Mode.WARN},
            id="an operation",
        ),
        pytest.param(
            [{"operations": ["CREATE", "DELETE"], "rules": deny()}],
            {CREATE: Mode.DENY, UPDATE: Mode.WARN, DELETE: Mode.DENY},
            id="operations are alternatives",
        ),
        pytest.param(
            [{"operations": ["CREATE"], "rules": {RULE: {"mode": "off"}}}, {"rules": deny()}],
            {CREATE: Mode.DENY, UPDATE: Mode.DENY, DELETE: Mode.DENY},
            id="a later one of all operations wins",
        ),
        pytest.param(
            [{"rules": deny()}, {"operations": ["CREATE"], "rules": {RULE: {"mode": "off"}}}],
            {CREATE: Mode.OFF, UPDATE: Mode.DENY, DELETE: Mode.DENY},
            id="a later one of an operation wins there",
        ),
        pytest.param(
            [{"operations": ["CREATE", "CREATE"], "rules": deny()}, {"operations": ["DELETE"], "rules": {}}],
            {CREATE: Mode.DENY, UPDATE: Mode.WARN, DELETE: Mode.WARN},
            id="an operation twice",
        ),
    ],
)
def test_mode_by_operation(overrides: list[dict[str, Any]], expected: dict[Operation, Mode]) -> None:
    compiled = policy(overrides=overrides)
    assert {on: compiled.resolve("shop", "checkout", on).modes[RULE] for on in expected} == expected


def test_numbers_by_operation() -> None:
    jump = {"transitions-jump": {"deny_from": 5000}}
    compiled = policy(overrides=[{"operations": ["UPDATE"], "rules": jump}])
    on_create, on_update = (
        compiled.resolve("shop", "checkout", on).numbers("transitions-jump") for on in (CREATE, UPDATE)
    )
    assert (on_create["deny_from"], on_update["deny_from"]) == (1_000_000_000, 5000)


def test_an_override_of_creations_costs_an_update_nothing() -> None:
    compiled = policy(overrides=[{"operations": ["CREATE"], "rules": deny()}])
    assert compiled.resolve("shop", "checkout", UPDATE) is compiled.default
    assert compiled.resolve("shop", "checkout", CREATE) is not compiled.default


def test_numbers_come_from_the_last_layer_that_names_them() -> None:
    compiled = policy(
        rules={"duration-too-long": {"warn_above_seconds": 100, "deny_above_seconds": 1000}},
        overrides=[{"namespaces": ["shop"], "rules": {"duration-too-long": {"warn_above_seconds": 200}}}],
    )
    shop, bank = (compiled.resolve(namespace, "checkout", UPDATE) for namespace in ("shop", "bank"))
    built_in = RULES["duration-too-long"].default_limits
    assert shop.numbers("duration-too-long") == {**built_in, "warn_above_seconds": 200, "deny_above_seconds": 1000}
    assert bank.numbers("duration-too-long") == {**built_in, "warn_above_seconds": 100, "deny_above_seconds": 1000}
    assert shop.numbers("renew-time-in-future") == compiled.default.numbers("renew-time-in-future")


@pytest.mark.parametrize(
    ("preset", "mode", "cap"),
    [
        pytest.param("standard", "deny", Mode.DENY, id="standard denies"),
        pytest.param("strict", "warn", Mode.WARN, id="a file may cap strict"),
        pytest.param("observe", "deny", Mode.WARN, id="observe never denies"),
        pytest.param("observe", "audit", Mode.AUDIT, id="the lower cap counts"),
        pytest.param("standard", "off", Mode.OFF, id="the kill switch"),
    ],
)
def test_a_mode_of_the_policy_caps_every_rule(preset: str, mode: str, cap: Mode) -> None:
    assert policy(preset=preset, mode=mode).mode is cap


def test_off_is_a_word_and_no_boolean() -> None:
    compiled = policy(without_stamps="enforce", rules={RULE: {"mode": "off"}})
    assert compiled.enforce_without_stamps
    assert compiled.resolve("shop", "checkout", UPDATE).modes[RULE] is Mode.OFF


def test_without_overrides_and_bindings_every_lease_shares_one_answer() -> None:
    compiled = policy(preset="strict")
    assert (
        compiled.resolve("shop", "checkout", UPDATE) is compiled.resolve("bank", "ledger", UPDATE) is compiled.default
    )


def test_a_lease_that_no_entry_names_gets_the_shared_answer() -> None:
    compiled = policy(overrides=[{"namespaces": ["bank"], "rules": deny()}])
    assert compiled.resolve("shop", "checkout", UPDATE) is compiled.default


def test_digest_tells_policies_apart_and_ignores_what_means_nothing() -> None:
    assert policy().digest == policy(mode="deny", rules={}).digest
    assert len({policy().digest, policy(mode="warn").digest, policy(preset="strict").digest}) == 3
    assert len(policy().digest) == 8
    assert int(policy().digest, 16) >= 0
