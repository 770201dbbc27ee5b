"""What `policy check` says about a legal file."""

from typing import Any

import pytest

from tests.policy.compiler.test_bindings import BINDING
from tests.policy.files import ENTRY, policy
from webhook.admission.policy.explain import list_oddities

NARROW = {**ENTRY, "users": ["a"], "namespaces": ["shop"], "rules": ["foreign-release"], "until": "2027-12-31"}
TODAY = 1_800_000_000_000_000
"""2027-01-15T08:00:00Z in microseconds since 1970."""


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({}, [], id="nothing odd"),
        pytest.param({"mode": "off", "rules": {"foreign-release": {"mode": "deny"}}}, [], id="what the summary says"),
        pytest.param({"preset": "strict", "rules": {"foreign-release": {"mode": "warn"}}}, [], id="a rule lowered"),
        pytest.param(
            {"without_stamps": "enforce"},
            ["without_stamps: enforce lets a dead holder whose clock was ahead block takeovers for that long"],
            id="enforced without stamps",
        ),
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
            {"exempt": [{**NARROW, "owner": "shop\tteam", "until": "2027-01-15"}]},
            ["exempt[0] (shop\\tteam) expires after 2027-01-15, within two weeks"],
            id="an owner with a tab",
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
        pytest.param({"bindings": [BINDING]}, [], id="a binding"),
        pytest.param({"bindings": [{**BINDING, "require_pod": True}]}, [], id="a binding that requires a pod"),
        pytest.param(
            {"bindings": [BINDING], "rules": {"identity-binding": {"mode": "warn"}}},
            ["bindings[0] denies no CREATE, UPDATE, DELETE: the mode of identity-binding is below deny on this lease"],
            id="a binding without teeth",
        ),
        pytest.param(
            {
                "bindings": [BINDING],
                "overrides": [{"operations": ["DELETE", "CREATE"], "rules": {"identity-binding": {"mode": "audit"}}}],
            },
            ["bindings[0] denies no CREATE, DELETE: the mode of identity-binding is below deny on this lease"],
            id="a binding that refuses nobody on some operations",
        ),
        pytest.param(
            {"bindings": [{**BINDING, "holder": ["*"]}]},
            ["bindings[0].holder: `*` matches every holder, so only the writer is checked"],
            id="a binding of the writer only",
        ),
    ],
)
def test_what_is_odd_about_a_policy(keys: dict[str, Any], expected: list[str]) -> None:
    assert list_oddities(policy(**keys), TODAY) == expected
