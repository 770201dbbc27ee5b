"""The policy against deep managedFields covers what the webhook reviews, and stops no honest write."""

from typing import Any

import pytest

from tests.deploy.sources import DEPLOY, base_object, documents
from webhook.kubernetes.request import GROUP, Resource

OVERLAYS = ("cert-manager", "openshift", "self-signed")
POLICY, BINDING = documents(DEPLOY / "depth-policy" / "policy.yaml")
LEVELS = 8


def variable(name: str) -> str:
    (expression,) = [one["expression"] for one in POLICY["spec"]["variables"] if one["name"] == name]
    return str(expression)


def test_it_is_about_the_namespaces_and_kinds_of_the_webhook() -> None:
    constraints = POLICY["spec"]["matchConstraints"]
    (webhook,) = base_object("ValidatingWebhookConfiguration")["webhooks"]
    assert constraints["namespaceSelector"] == webhook["namespaceSelector"]
    (rule,) = constraints["resourceRules"]
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
