"""The objects of a token and of a clock, and a holder that is the stamped writer."""

import re
from typing import Any

import pytest
import yaml

from tests.policy.fences.made import FENCE, STAMPS, stamped
from tests.policy.files import policy
from webhook.api_server.fence.objects import (
    BINDING,
    CLOCK,
    KEEPING,
    MUTATING_BINDING,
    MUTATING_POLICY,
    POLICY,
    STAMPING,
    make_fence_manifests,
    name_policy,
)
from webhook.text.yaml_writer import write_stream

NAME = "fence-shop-operator"


def specs(**keys: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """By kind, and by what the name ends with."""
    return {
        (one["kind"], one["metadata"]["name"].removeprefix(NAME)): one["spec"]
        for one in make_fence_manifests(stamped(**keys))
    }


def test_what_stamps_comes_before_what_asks_for_it() -> None:
    assert [*specs(token=True, expired="warn")] == [
        (MUTATING_POLICY, STAMPING),
        (MUTATING_BINDING, STAMPING),
        (MUTATING_POLICY, KEEPING),
        (MUTATING_BINDING, KEEPING),
        (POLICY, ""),
        (BINDING, ""),
        (POLICY, CLOCK),
        (BINDING, CLOCK),
    ]


def test_each_binding_names_its_policy() -> None:
    manifests = specs(token=True, expired="deny")
    assert {spec["policyName"].removeprefix(NAME) for (kind, end), spec in manifests.items() if "Binding" in kind} == {
        *("", STAMPING, KEEPING, CLOCK)
    }


def test_the_texts_are_those_of_the_fence() -> None:
    text = write_stream(make_fence_manifests(stamped(token=True, expired="deny")))
    assert {*re.findall(r"\b[A-Z]{3,}\b", text)} == {"API", "CREATE", "UPDATE", "DELETE"}
    assert '"shop-operator.lease-webhook/token-5f3a9c1e"' in text
    assert "lease-webhook/term-5f3a9c1e" in text
    assert "lease-webhook/written-5f3a9c1e" in text
    assert [*yaml.safe_load_all(text)] == make_fence_manifests(stamped(token=True, expired="deny"))


def test_every_write_that_stores_annotations_is_stamped() -> None:
    manifests = specs(token=True, resources=["deployments.apps/scale", "pods", "pods/resize"])
    paths = {
        end: [
            path
            for rule in manifests[MUTATING_POLICY, end]["matchConstraints"]["resourceRules"]
            for path in rule["resources"]
        ]
        for end in (STAMPING, KEEPING)
    }
    assert paths[STAMPING] == [
        *("deployments", "deployments/resize", "deployments/status"),
        *("pods", "pods/resize", "pods/status"),
    ]
    assert paths[KEEPING] == ["deployments", "deployments/*", "pods", "pods/*", "bindings", "bindings/*"]
    [judged, *_] = manifests[POLICY, ""]["matchConstraints"]["resourceRules"]
    assert judged["resources"] == ["deployments/scale"]
    conditions = manifests[MUTATING_POLICY, KEEPING]["matchConditions"]
    assert '["", "resize", "status"]' in conditions[0]["expression"]
    assert "paramKind" not in manifests[MUTATING_POLICY, KEEPING]


@pytest.mark.parametrize(
    ("keys", "actions"),
    [
        pytest.param({"expired": "deny"}, ["Deny", "Audit"], id="deny"),
        pytest.param({"expired": "warn"}, ["Warn", "Audit"], id="warn"),
        pytest.param({"expired": "deny", "mode": "warn"}, ["Warn", "Audit"], id="never more than the fence: warn"),
        pytest.param({"expired": "warn", "mode": "audit"}, ["Audit"], id="never more than the fence: audit"),
    ],
)
def test_the_clock_fails_open(keys: dict[str, str], actions: list[str]) -> None:
    manifests = specs(**keys)
    assert manifests[POLICY, CLOCK]["failurePolicy"] == "Ignore"
    assert manifests[BINDING, CLOCK]["paramRef"]["parameterNotFoundAction"] == "Allow"
    assert manifests[BINDING, CLOCK]["validationActions"] == actions


@pytest.mark.parametrize(("mode", "failure"), [("deny", "Fail"), ("warn", "Ignore"), ("audit", "Ignore")])
def test_the_token_fails_as_the_fence_does(mode: str, failure: str) -> None:
    manifests = specs(token=True, mode=mode)
    assert {manifests[MUTATING_POLICY, end]["failurePolicy"] for end in (STAMPING, KEEPING)} == {failure}
    assert manifests[MUTATING_BINDING, STAMPING]["paramRef"]["parameterNotFoundAction"] == "Allow"


def test_the_holder_is_the_stamped_writer() -> None:
    spec = specs()[POLICY, ""]
    [validation] = spec["validations"]
    assert validation["expression"].endswith(
        'params.?metadata.?annotations[?"lease-webhook/writer-5f3a9c1e"].orValue("") == request.userInfo.?extra'
        '["authentication.kubernetes.io/pod-uid"].orValue([])[0] + " " + request.userInfo.username)'
    )
    assert [one["name"] for one in spec["variables"]] == ["pod", "holder", "stamp", "lease", "writer"]


def test_templates_are_compared_where_a_file_has_them() -> None:
    assert "variables.leads" in specs(holder=["${pod}_*"])[POLICY, ""]["validations"][0]["expression"]


def test_a_lease_of_another_namespace_is_not_stamped() -> None:
    [fence] = policy(fences=[{**FENCE, "lease": "other/operator"}], stamps=STAMPS).fences
    assert (fence.suffix, fence.is_by_stamp) == ("", False)
    assert name_policy(fence) == NAME
