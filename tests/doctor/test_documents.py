"""Documents in every form that kubectl and kustomize print, and in some that nobody should."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import make_lease
from webhook.api_server.doctor.documents import ClientConfig, Documents, ServiceReference


def config_map(namespace: str = "lease-webhook", **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "policy", "namespace": namespace}, "data": data}


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param([config_map(**{"policy.yaml": "x"})], "x", id="one ConfigMap"),
        pytest.param([config_map("other", **{"policy.yaml": "x"})], None, id="of another namespace"),
        pytest.param([config_map(**{"other.yaml": "x"})], None, id="without a policy"),
        pytest.param([config_map(**{"policy.yaml": "x"})] * 2, None, id="two"),
    ],
)
def test_the_policy_beside_it(objects: list[dict[str, Any]], text: str | None) -> None:
    assert Documents(objects).find_policy_text(["lease-webhook"]) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(
    st.lists(
        st.dictionaries(st.text(max_size=8), JSON)
        | st.fixed_dictionaries(
            {"kind": st.sampled_from(["Secret", "ConfigMap"]) | JSON, "data": JSON, "metadata": JSON}
        )
    )
)
def test_no_document_is_too_odd(documents: list[dict[str, Any]]) -> None:
    listing = Documents(documents)
    assert listing.configurations == []
    assert listing.find_policy_text(["lease-webhook"]) is None


def test_objects_of_other_kinds_are_passed_over() -> None:
    documents = Documents([{"kind": "Deployment", "metadata": {"name": "web"}}, make_lease()])
    assert [one.place for one in documents.find_all("Lease")] == ["shop/checkout"]


def test_an_object_that_kubectl_made_without_a_server_is_read() -> None:
    documents = Documents([{"kind": "Namespace", "metadata": {"name": "shop", "creationTimestamp": None}}])
    assert [*documents.find_by_name("Namespace")] == ["shop"]


@pytest.mark.parametrize(
    ("url", "is_broken"),
    [
        pytest.param("https://webhook.example/validate", False, id="a name"),
        pytest.param("https://[2001:db8::1]:8443/validate", False, id="an IPv6 address and a port"),
        pytest.param("https://webhook.example", False, id="no path, which is another finding"),
        pytest.param("https://[192.0.2.1/validate", True, id="a bracket that is not closed"),
        pytest.param("https://webhook.example:port/validate", True, id="a port that is no number"),
        pytest.param("https://webhook.example:0/validate", True, id="no port that can be called"),
        pytest.param("https:///validate", True, id="no host"),
        pytest.param("", True, id="no text"),
        pytest.param(None, False, id="no URL"),
    ],
)
def test_a_url_names_a_host_and_a_port(url: str | None, is_broken: bool) -> None:
    assert ClientConfig(url=url).has_broken_url is is_broken


def test_the_service_is_called_and_no_url() -> None:
    assert not ClientConfig(ServiceReference("lease-webhook", "lease-webhook"), url="").has_broken_url
