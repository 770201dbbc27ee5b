"""Identity bindings as rules receive them."""

from tests.policy.files import policy
from webhook.rules.binding import Binding

BINDING = {
    "namespace": "shop",
    "lease": "checkout",
    "writers": ["shop/checkout", "user:ci", "user:system:node:a"],
    "holder": ["${pod}_*", "ci"],
}


def test_a_binding_reaches_its_lease_and_no_other() -> None:
    made = policy(bindings=[BINDING])
    assert made.for_lease("shop", "checkout").binding == Binding(
        service_accounts=frozenset({("shop", "checkout")}),
        users=frozenset({"ci", "system:node:a"}),
        holders=("${pod}_*", "ci"),
    )
    assert made.for_lease("shop", "checkout").modes == made.default.modes
    assert made.for_lease("shop", "db") is made.default


def test_a_pod_may_be_required() -> None:
    binding = policy(bindings=[{**BINDING, "require_pod": True}]).for_lease("shop", "checkout").binding
    assert binding
    assert binding.require_pod


def test_a_binding_and_an_override_meet() -> None:
    made = policy(
        bindings=[BINDING], overrides=[{"namespaces": ["shop"], "rules": {"strategy-writer": {"mode": "off"}}}]
    )
    answer = made.for_lease("shop", "checkout")
    assert answer.binding
    assert answer.modes["strategy-writer"].word == "off"
