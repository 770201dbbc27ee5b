"""The Service of a webhook and its endpoints: what is judged, and what is not."""

from typing import Any

import pytest

from tests.doctor.shipped import NOW, document, entry
from tests.doctor.test_in_force import bound, named
from webhook.api_server.doctor.documents import VALIDATING, Documents
from webhook.api_server.doctor.in_force import find_cause
from webhook.api_server.doctor.service import check_service

PORT = {"name": "webhook", "port": 443}


def service(**spec: Any) -> dict[str, Any]:
    return named("Service", "lease-webhook", spec={"ports": [PORT], **spec})


def slice_of(*conditions: Any, name: str = "lease-webhook", ports: Any = ({"name": "webhook"},)) -> dict[str, Any]:
    """An EndpointSlice with an endpoint for each of the conditions."""
    endpoint_slice = named("EndpointSlice", "x", ports=ports, endpoints=[{"conditions": one} for one in conditions])
    endpoint_slice["metadata"]["labels"] = {"kubernetes.io/service-name": name}
    return endpoint_slice


READY = slice_of({"ready": True})


@pytest.mark.parametrize(
    ("objects", "checks"),
    [
        pytest.param([service(), READY], [], id="ready"),
        pytest.param([service(), slice_of({"ready": False}, None)], [], id="one of which nothing is known"),
        pytest.param([service(), slice_of({})], [], id="conditions without ready"),
        pytest.param(
            [service(ports=[{"port": 443}]), slice_of({"ready": True}, ports=[{"name": None}])], [], id="without a name"
        ),
        pytest.param(
            [service(), slice_of({"ready": False}), slice_of({"ready": True}, name="other")],
            ["no-ready-endpoint"],
            id="of another Service",
        ),
        pytest.param(
            [service(), slice_of({"ready": True}, ports=None)], ["target-port-missing"], id="endpoints without ports"
        ),
        pytest.param(
            [service(ports=[PORT | {"protocol": "UDP"}]), READY], ["service-port-missing"], id="a port of UDP"
        ),
        pytest.param([service(ports=None), READY], ["service-port-missing"], id="no ports"),
        pytest.param([service(type="ExternalName", ports=None)], [], id="another name"),
        pytest.param([service(ports="webhook")], [], id="what no API server returns"),
        pytest.param([named("Service", "other", spec={})], ["service-missing"], id="another Service"),
    ],
)
def test_a_service_of_a_cluster(objects: list[dict[str, Any]], checks: list[str]) -> None:
    assert [one.check for one in check_service(entry(), Documents(objects, ()))] == checks


@pytest.mark.parametrize(
    ("objects", "unread"),
    [
        pytest.param([], None, id="a file without them"),
        pytest.param([service()], None, id="a file without endpoints"),
        pytest.param([], ["Service", "EndpointSlice"], id="neither may be read"),
        pytest.param([service()], ["EndpointSlice"], id="endpoints may not be read"),
    ],
)
def test_what_is_not_known_is_not_judged(objects: list[dict[str, Any]], unread: list[str] | None) -> None:
    assert [*check_service(entry(), Documents(objects, unread))] == []


def test_a_webhook_with_an_address_has_no_service() -> None:
    config = {"url": "https://192.0.2.1/validate", "caBundle": None}
    assert [*check_service(entry(clientConfig=config), Documents([], ()))] == []


@pytest.mark.parametrize(
    ("objects", "unread", "cause"),
    [
        pytest.param([], [], "no webhook is registered for leases", id="nothing is registered"),
        pytest.param([], [VALIDATING], "", id="configurations may not be read"),
        pytest.param(
            bound("ValidatingAdmissionPolicy", "lease-webhook-rules-leases-deny"),
            [],
            "no webhook is registered for leases, and the policies of the API server that have its rules did not"
            " refuse it. `lease-webhook doctor --policy FILE` compares them with the policy file; a change takes the"
            " API server some seconds",
            id="rules are policies",
        ),
        pytest.param([document(), service(), READY], [], "", id="nothing is wrong"),
        pytest.param(
            [document(), service(), slice_of()],
            [],
            "no-ready-endpoint: Service lease-webhook/lease-webhook: it has no endpoints",
            id="no endpoint",
        ),
        pytest.param(
            [document(namespaceSelector={"matchLabels": {"team": "a"}}), named("Namespace", "shop"), service()],
            [],
            "",
            id="an entry that does not select the namespace",
        ),
    ],
)
def test_the_cause_is_that_of_an_entry_which_selects_the_namespace(
    objects: list[dict[str, Any]], unread: list[str], cause: str
) -> None:
    assert find_cause(Documents(objects, unread), None, "shop", (), NOW) == cause


def test_one_entry_that_works_is_enough() -> None:
    whole = document()
    broken = {**whole["webhooks"][0], "clientConfig": {"url": "https://192.0.2.1/other", "caBundle": "%"}}
    whole["webhooks"].append(broken)
    assert find_cause(Documents([whole, service(), READY], ()), None, "shop", (), NOW) == ""
    whole["webhooks"].pop(0)
    assert find_cause(Documents([whole], ()), None, "shop", (), NOW).startswith("ca-bundle-unreadable: ")
