"""Which layer decided what, and which entries concern a lease."""

from typing import Any

import pytest

from tests.policy.files import ENTRY, UPDATE, policy
from webhook.admission.policy.explain import explain, find_applying
from webhook.admission.policy.model import Policy
from webhook.admission.policy.schema import RULE_IDS
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES

MADE = policy(
    preset="strict",
    rules={"duration-too-long": {"mode": "warn", "warn_above_seconds": 60}, "foreign-release": {"mode": "off"}},
    overrides=[
        {"leases": ["check*"], "rules": {"foreign-release": {"mode": "audit"}}},
        {"namespaces": ["shop"], "rules": {"duration-too-long": {"deny_above_seconds": 90_000}}},
        {"rules": {"strategy-writer": {"mode": "warn"}}},
    ],
    exempt=[
        {**ENTRY, "users": ["ann"], "service_accounts": ["velero/velero"], "groups": ["ops"]},
        {**ENTRY, "namespaces": ["shop", "team-*"], "leases": ["db"]},
    ],
)


def decided(policy: Policy, rule: str, namespace: str = "", name: str = "") -> list[tuple[str, Any, str]]:
    return [(one.name, one.value, one.layer) for one in explain(policy, namespace, name) if one.rule == rule]


@pytest.mark.parametrize(
    ("rule", "lease", "expected"),
    [
        pytest.param("ping-time-writer", ("shop", "checkout"), [("mode", Mode.DENY, "preset")], id="the preset"),
        pytest.param("foreign-release", ("shop", "db"), [("mode", Mode.OFF, "rules")], id="rules"),
        pytest.param("foreign-release", ("shop", "checkout"), [("mode", Mode.AUDIT, "overrides[0]")], id="an override"),
        pytest.param("foreign-release", ("", ""), [("mode", Mode.OFF, "rules")], id="everywhere: not for some leases"),
        pytest.param(
            "strategy-writer", ("", ""), [("mode", Mode.WARN, "overrides[2]")], id="everywhere: for all leases"
        ),
        pytest.param(
            "duration-too-long",
            ("shop", "db"),
            [
                ("mode", Mode.WARN, "rules"),
                ("warn_above_seconds", 60, "rules"),
                ("deny_above_seconds", 90_000, "overrides[1]"),
            ],
            id="each number has its own",
        ),
        pytest.param(
            "transitions-jump",
            ("shop", "db"),
            [
                ("mode", Mode.DENY, "preset"),
                ("warn_jump_above", 1, "built in"),
                ("deny_from", 1_000_000_000, "built in"),
            ],
            id="built-in numbers",
        ),
    ],
)
def test_which_layer_decides_a_mode(rule: str, lease: tuple[str, str], expected: list[tuple[str, Any, str]]) -> None:
    # A rule may have more numbers, which are built in.
    found = decided(MADE, rule, *lease)
    assert [one for one in found if one in expected or one[-1] != "built in"] == expected


BY_OPERATION = policy(
    preset="strict",
    overrides=[
        {"rules": {"identity-binding": {"mode": "warn"}, "takeover-before-expiry": {"mode": "warn"}}},
        {
            "operations": ["DELETE", "CREATE"],
            "rules": {"identity-binding": {"mode": "off"}, "takeover-before-expiry": {"mode": "off"}},
        },
        {"operations": ["UPDATE"], "rules": {"renew-time-in-future": {"deny_above_seconds": 90_000}}},
    ],
)


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        pytest.param(
            "identity-binding",
            "mode",
            [(Mode.OFF, "overrides[1]", "CREATE DELETE"), (Mode.WARN, "overrides[0]", "UPDATE")],
            id="a mode",
        ),
        pytest.param(
            "takeover-before-expiry",
            "mode",
            [(Mode.WARN, "overrides[0]", "")],
            id="a rule that is evaluated on one operation",
        ),
        pytest.param(
            "renew-time-in-future",
            "deny_above_seconds",
            [
                (RULES["renew-time-in-future"].default_limits["deny_above_seconds"], "built in", "CREATE"),
                (90_000, "overrides[2]", "UPDATE"),
            ],
            id="a number",
        ),
    ],
)
def test_layer_by_operation(rule: str, name: str, expected: list[tuple[Any, str, str]]) -> None:
    explained = [one for one in explain(BY_OPERATION, "shop", "db") if (one.rule, one.name) == (rule, name)]
    assert [(one.value, one.layer, " ".join(one.operations)) for one in explained] == expected


def test_every_rule_is_explained_once() -> None:
    modes = [one for one in explain(MADE, "shop", "db") if one.name == "mode"]
    assert sorted(one.rule for one in modes) == sorted(RULE_IDS)
    assert {one.rule: one.value for one in modes} == dict(MADE.resolve("shop", "db", UPDATE).modes)


@pytest.mark.parametrize(
    ("lease", "positions"),
    [
        pytest.param(("", ""), [0, 1], id="all"),
        pytest.param(("shop", ""), [0, 1], id="of a namespace"),
        pytest.param(("team-a", "db"), [0, 1], id="of a lease"),
        pytest.param(("team-a", "checkout"), [0], id="of another lease"),
        pytest.param(("bank", "db"), [0], id="of another namespace"),
    ],
)
def test_exemptions_that_concern_a_lease(lease: tuple[str, str], positions: list[int]) -> None:
    assert [position for position, _ in find_applying(MADE.document.exempt, *lease)] == positions
