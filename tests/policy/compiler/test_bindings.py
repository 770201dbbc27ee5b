"""Identity bindings as rules receive them."""

import pytest

from tests.policy.files import UPDATE, policy
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.mode import Mode

BINDING = {
    "namespace": "shop",
    "lease": "checkout",
    "writers": ["shop/checkout", "user:ci", "user:system:node:a"],
    "holder": ["${pod}_*", "ci"],
}


def test_a_binding_reaches_its_lease_and_no_other() -> None:
    compiled = policy(bindings=[BINDING])
    assert compiled.bindings["shop", "checkout"] == Binding(
        service_accounts=frozenset({("shop", "checkout")}),
        users=frozenset({"ci", "system:node:a"}),
        holders=("${pod}_*", "ci"),
    )
    assert compiled.resolve("shop", "checkout", UPDATE).modes == compiled.bound.modes
    assert compiled.resolve("shop", "db", UPDATE) is compiled.default


@pytest.mark.parametrize("preset", ["observe", "standard", "strict"])
def test_an_owner_added_to_a_bound_lease_is_denied_in_every_preset(preset: str) -> None:
    compiled = policy(preset=preset, bindings=[BINDING])
    assert compiled.resolve("shop", "checkout", UPDATE).modes["owner-reference-added"] is Mode.DENY
    assert {**compiled.bound.modes, "owner-reference-added": None} == {
        **compiled.default.modes,
        "owner-reference-added": None,
    }


def test_the_files_own_rules_come_after_what_a_binding_sets() -> None:
    compiled = policy(bindings=[BINDING], rules={"owner-reference-added": {"mode": "audit"}})
    assert compiled.resolve("shop", "checkout", UPDATE).modes["owner-reference-added"] is Mode.AUDIT
    overridden = policy(bindings=[BINDING], overrides=[{"rules": {"owner-reference-added": {"mode": "off"}}}])
    assert overridden.resolve("shop", "checkout", UPDATE).modes["owner-reference-added"] is Mode.OFF


def test_a_pod_may_be_required() -> None:
    binding = policy(bindings=[{**BINDING, "require_pod": True}]).bindings["shop", "checkout"]
    assert binding.require_pod


def test_a_binding_and_an_override_meet() -> None:
    compiled = policy(
        bindings=[BINDING], overrides=[{"namespaces": ["shop"], "rules": {"strategy-writer": {"mode": "off"}}}]
    )
    answer = compiled.resolve("shop", "checkout", UPDATE)
    assert ("shop", "checkout") in compiled.bindings
    assert answer.modes["strategy-writer"].word == "off"
