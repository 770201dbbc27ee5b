"""Test which webhooks the writes of a lease wait for."""

from tests.doctor.shipped import NAME, document
from webhook.doctor.examine import CalledWebhook, called_webhooks

SHIPPED = CalledWebhook("leases.lease-webhook.svc", "validating", "Ignore", 2, sees_renewals=False)


def test_the_shipped_webhook_is_on_the_path_but_not_of_renewals() -> None:
    assert list(called_webhooks([document()], "shop")) == [SHIPPED]


def test_a_namespace_that_is_not_selected_has_none() -> None:
    assert list(called_webhooks([document()], "kube-system")) == []
    only_shop = {"matchExpressions": [{"key": NAME, "operator": "In", "values": ["shop"]}]}
    assert len(list(called_webhooks([document(namespaceSelector=only_shop)], "shop"))) == 1
    assert list(called_webhooks([document(namespaceSelector=only_shop)], "billing")) == []


def test_without_conditions_it_sees_renewals() -> None:
    (one,) = called_webhooks([document(matchConditions=None)], "shop")
    assert one.sees_renewals


def test_defaults_are_those_of_the_api_server() -> None:
    (one,) = called_webhooks([document(failurePolicy=None, timeoutSeconds=None)], "shop")
    assert (one.failure_policy, one.timeout) == ("Fail", 10)


def test_a_mutating_webhook_is_named_as_such() -> None:
    (one,) = called_webhooks([document() | {"kind": "MutatingWebhookConfiguration"}], "shop")
    assert one.kind == "mutating"


def test_what_does_not_match_updates_of_leases_is_passed_over() -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]}
    assert list(called_webhooks([document(rules=[rule])], "shop")) == []
    assert list(called_webhooks([document(webhooks=3) | {"webhooks": 3}, {"kind": "Pod"}], "shop")) == []
    assert list(called_webhooks([document() | {"webhooks": None}], "shop")) == []
