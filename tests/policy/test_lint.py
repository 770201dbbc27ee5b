"""What `policy check` says about a legal file."""

from typing import Any

import pytest

from tests.policy.compiler.test_bindings import BINDING
from tests.policy.files import ENTRY, policy
from webhook.policy.explain import notes

NARROW = {**ENTRY, "users": ["a"], "namespaces": ["shop"], "rules": ["foreign-release"], "until": "2027-12-31"}
TODAY = 1_800_000_000_000_000
"""2027-01-15T08:00:00Z in microseconds since 1970."""


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({}, [], id="nothing odd"),
        pytest.param({"preset": "strict", "rules": {"foreign-release": {"mode": "warn"}}}, [], id="a rule lowered"),
        pytest.param(
            {"mode": "off"},
            ["mode: off is the kill switch: every write is allowed and nothing is evaluated"],
            id="the kill switch",
        ),
        pytest.param(
            {"mode": "off", "rules": {"foreign-release": {"mode": "deny"}}},
            ["mode: off is the kill switch: every write is allowed and nothing is evaluated"],
            id="the kill switch says it all",
        ),
        pytest.param(
            {"preset": "strict", "mode": "warn"},
            ["mode: warn denies nothing; would-deny in the audit log lists what this file would deny"],
            id="strict, capped",
        ),
        pytest.param(
            {"preset": "observe"},
            ["preset: observe denies nothing; would-deny in the audit log lists what standard or strict would deny"],
            id="observe",
        ),
        pytest.param(
            {"without_stamps": "enforce"},
            ["without_stamps: enforce lets a dead holder whose clock was ahead block takeovers for that long"],
            id="enforced without stamps",
        ),
        pytest.param(
            {"mode": "audit", "rules": {"foreign-release": {"mode": "warn"}}},
            [
                "mode: audit denies nothing; would-deny in the audit log lists what this file would deny",
                "rules.foreign-release: warn is lowered to audit, the cap of this policy",
            ],
            id="a rule above the cap",
        ),
        pytest.param({"overrides": [{"rules": {}}]}, ["overrides[0].rules sets nothing"], id="an empty override"),
        pytest.param({"exempt": [{**NARROW, "until": "2027-01-30"}]}, [], id="an exemption for long"),
        pytest.param(
            {"exempt": [{**NARROW, "until": "2027-01-28"}]},
            ["exempt[0] (shop team) expires after 2027-01-28, within two weeks"],
            id="an exemption that ends soon",
        ),
        pytest.param(
            {"exempt": [{**NARROW, "until": "2027-01-15"}]},
            ["exempt[0] (shop team) expires after 2027-01-15, within two weeks"],
            id="an exemption on its last day",
        ),
        pytest.param(
            {"exempt": [{**ENTRY, "users": ["a"], "until": "2027-01-14"}]},
            [("exempt[0] (shop team) expired after 2027-01-14; remove it, or extend it with a new reason")],
            id="an exemption that has ended",
        ),
        pytest.param(
            {"exempt": [{**ENTRY, "namespaces": ["*"]}]},
            ["exempt[0] (shop team) exempts everyone everywhere; set `mode: warn` instead"],
            id="an exemption for all",
        ),
        pytest.param(
            {"exempt": [{**ENTRY, "rules": ["foreign-release"], "leases": ["*"]}]},
            ["exempt[0] (shop team) exempts everyone everywhere; set the modes of these rules under `rules` instead"],
            id="an exemption for all from one rule",
        ),
        pytest.param({"exempt": [NARROW]}, [], id="an exemption that is narrow"),
        pytest.param(
            {"exempt": [{**NARROW, "rules": ["foreign-release", "ping-time-writer"], "operations": ["CREATE"]}]},
            ["exempt[0] (shop team): rule foreign-release is never evaluated on CREATE, so naming it has no effect"],
            id="an exemption from a rule that does not run on its operations",
        ),
        pytest.param(
            {"exempt": [{**NARROW, "operations": ["CREATE", "UPDATE"]}]},
            [],
            id="an exemption from a rule that runs on one of its operations",
        ),
        pytest.param(
            {
                "overrides": [
                    {
                        "operations": ["CREATE", "DELETE"],
                        "rules": {
                            "duration-shortened": {"mode": "deny"},
                        },
                    }
                ]
            },
            [
                (
                    "overrides[0]: rule duration-shortened is never evaluated on CREATE, DELETE, "
                    "so naming it has no effect"
                )
            ],
            id="an override of a rule that does not run on its operations",
        ),
        pytest.param({"bindings": [BINDING]}, [], id="a binding"),
        pytest.param({"bindings": [{**BINDING, "require_pod": True}]}, [], id="a binding that requires a pod"),
        pytest.param(
            {"bindings": [BINDING], "rules": {"identity-binding": {"mode": "warn"}}},
            ["bindings[0] denies nothing: rule identity-binding is warn on this lease"],
            id="a binding without teeth",
        ),
        pytest.param(
            {
                "bindings": [BINDING],
                "overrides": [{"operations": ["DELETE", "CREATE"], "rules": {"identity-binding": {"mode": "audit"}}}],
            },
            ["bindings[0] denies nothing on CREATE, DELETE: rule identity-binding is audit on this lease"],
            id="a binding that refuses nobody on some operations",
        ),
        pytest.param(
            {"bindings": [{**BINDING, "holder": ["*"]}]},
            ["bindings[0].holder: `*` matches every holder, so only the writer is checked"],
            id="a binding of the writer only",
        ),
        pytest.param(
            {"bindings": [{**BINDING, "holder": ["db-0"], "require_pod": True}]},
            ["bindings[0].require_pod: no holder has ${pod}, so it has no effect"],
            id="a pod required for nothing",
        ),
    ],
)
def test_notes(keys: dict[str, Any], expected: list[str]) -> None:
    assert notes(policy(**keys), TODAY) == expected
