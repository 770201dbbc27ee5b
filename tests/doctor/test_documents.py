"""Documents in every form that kubectl and kustomize print, and in some that nobody should."""

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doctor.shipped import entry
from tests.factories import make_lease
from webhook.doctor.documents import Documents

WEBHOOK = entry().webhook


def secret(name: str = "tls", namespace: str = "lease-webhook", chain: str = "chain") -> dict[str, Any]:
    data = {"tls.crt": base64.b64encode(chain.encode()).decode()}
    return {"kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


def config_map(namespace: str = "lease-webhook", **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "policy", "namespace": namespace}, "data": data}


@pytest.mark.parametrize(
    ("found", "chain"),
    [
        pytest.param([secret()], b"chain", id="one Secret"),
        pytest.param([], None, id="none"),
        pytest.param([secret(namespace="other")], None, id="of another namespace"),
        pytest.param([secret("a"), secret("b")], None, id="two: nobody knows which is mounted"),
        pytest.param([{"kind": "Secret", "metadata": {"namespace": "lease-webhook"}}], None, id="without data"),
        pytest.param([{**secret(), "data": {"tls.crt": "%"}}], None, id="no base64"),
        pytest.param([{**secret(), "data": {"tls.crt": 7}}, secret()], b"chain", id="beside an odd one"),
    ],
)
def test_the_certificate_that_will_be_served(found: list[dict[str, Any]], chain: bytes | None) -> None:
    served = Documents(found).served_to(WEBHOOK)
    assert (served and served.chain) == chain


def test_a_url_has_no_secret() -> None:
    assert Documents([secret()]).served_to(entry(clientConfig={"url": "https://127.0.0.1/validate"}).webhook) is None


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param([config_map(**{"policy.yaml": "x"})], "x", id="one ConfigMap"),
        pytest.param([config_map("other", **{"policy.yaml": "x"})], None, id="of another namespace"),
        pytest.param([config_map(**{"other.yaml": "x"})], None, id="without a policy"),
        pytest.param([config_map(**{"policy.yaml": "x"})] * 2, None, id="two"),
    ],
)
def test_the_policy_beside_it(found: list[dict[str, Any]], text: str | None) -> None:
    assert Documents(found).policy_text(["lease-webhook"]) == text


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
    found = Documents(documents)
    assert found.configurations == []
    assert found.served_to(WEBHOOK) is None
    assert found.policy_text(["lease-webhook"]) is None


def test_objects_of_other_kinds_are_passed_over() -> None:
    found = Documents([{"kind": "Deployment", "metadata": {"name": "web"}}, make_lease()])
    assert [one.place for one in found.of("Lease")] == ["shop/checkout"]
