"""The policy against deep managedFields covers what the webhook reviews, and stops no honest write."""

from typing import Any

import pytest
from msgspec import convert

from tests.deploy.sources import DEPLOY, documents, entries
from webhook.kubernetes.request import GROUP, Resource
from webhook.kubernetes.selectors import Selector, is_met, list_requirements

OVERLAYS = ("cert-manager", "openshift", "self-signed")
POLICY, BINDING = documents(DEPLOY / "depth-policy" / "policy.yaml")
LEVELS = 8
NAME = "kubernetes.io/metadata.name"
LABELS = {"lease-webhook/fail": "closed", "lease-webhook/renewals": "reviewed"}
"""The labels by which a namespace opts in to a component."""


def variable(name: str) -> str:
    (expression,) = [one["expression"] for one in POLICY["spec"]["variables"] if one["name"] == name]
    return str(expression)


def is_selected(selector: Any, namespace: str) -> bool:
    """Return whether a selector matches a namespace, with none of our labels or with all of them."""
    requirements = list_requirements(convert(selector, Selector))
    return any(all(is_met(one, {NAME: namespace} | labels) for one in requirements) for labels in ({}, LABELS))


@pytest.mark.parametrize("namespace", ["shop", "kube-system", "kube-node-lease", "kube-public", "lease-webhook"])
def test_it_applies_wherever_a_component_can_have_the_webhook_called(namespace: str) -> None:
    selectors = [entry["namespaceSelector"] for _, entry in entries() if "namespaceSelector" in entry]
    is_reviewed = any(is_selected(selector, namespace) for selector in selectors)
    assert is_selected(POLICY["spec"]["matchConstraints"]["namespaceSelector"], namespace) == is_reviewed


def test_it_is_about_the_kinds_of_the_webhook() -> None:
    (rule,) = POLICY["spec"]["matchConstraints"]["resourceRules"]
    assert rule["apiGroups"] == [GROUP]
    assert set(rule["resources"]) == set(Resource)
    assert rule["operations"] == ["CREATE", "UPDATE"]


def test_an_error_and_a_stored_entry_stop_nobody() -> None:
    assert POLICY["spec"]["failurePolicy"] == "Ignore"
    (validation,) = POLICY["spec"]["validations"]
    assert validation["expression"] == "!variables.deep || variables.stored"
    about_the_new = variable("deep").replace("object.", "oldObject.", 1)
    assert variable("stored") == f"oldObject != null && {about_the_new}"


def test_the_binding_denies_everywhere_that_the_policy_matches() -> None:
    assert BINDING["spec"] == {"policyName": POLICY["metadata"]["name"], "validationActions": ["Deny"]}


def test_the_message_names_the_levels_that_the_expression_counts() -> None:
    assert variable("deep").count(".exists(") == LEVELS
    assert f"more than {LEVELS} levels" in POLICY["spec"]["validations"][0]["message"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_overlay_that_installs_has_it(overlay: str) -> None:
    kustomization: dict[str, Any]
    (kustomization,) = documents(DEPLOY / "overlays" / overlay / "kustomization.yaml")
    assert "../../depth-policy" in kustomization["resources"]
    # The namespace of an overlay would be given to the policy as well.
    assert "namespace" not in kustomization
