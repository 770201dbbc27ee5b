"""From the fences of a policy file to fences: defaults, and what is refused."""

from typing import Any

import pytest

from tests.policy.fences.made import FENCE, fence, refusal, stamped
from tests.policy.files import policy
from webhook.admission.policy.fences import Fence, FencedResource, HolderTemplate
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import MAX_FENCES, PolicyError


def test_the_defaults_are_those_of_the_documentation() -> None:
    without_mode = {key: value for key, value in FENCE.items() if key != "mode"}
    assert policy(fences=[without_mode]).fences[0] == Fence(
        name="shop-operator",
        namespace="shop",
        lease="operator",
        writers=(("shop", "operator"),),
        holders=(HolderTemplate("", "pod", "_", is_open=True),),
        resources=(FencedResource("", "configmaps"), FencedResource("apps", "deployments", "scale")),
        operations=("CREATE", "UPDATE", "DELETE"),
        namespaces=(),
        mode="warn",
        when_unheld="allow",
        missing_lease="allow",
    )


def test_a_missing_lease_denies_by_default_what_the_namespaces_or_the_token_bound() -> None:
    assert fence(namespaces=["shop"]).missing_lease == "deny"
    assert fence(namespaces=["shop"], mode="warn").missing_lease == "allow"
    assert stamped(token=True).missing_lease == "deny"
    assert fence(missing_lease="deny").missing_lease == "deny"


def test_a_lease_with_stamps() -> None:
    assert (stamped().suffix, stamped().is_by_stamp) == ("5f3a9c1e", True)
    assert not stamped(holder=["${pod}"]).is_by_stamp


def test_a_token_needs_the_lease() -> None:
    words = r"fences\[0\]\.missing_lease: must be deny beside `token`"
    with pytest.raises(PolicyError, match=words):
        stamped(token=True, missing_lease="allow")


def test_a_policy_without_fences_keeps_its_hash() -> None:
    assert policy().fences == ()
    assert policy().digest != policy(fences=[FENCE]).digest


def test_what_stands_twice_counts_once() -> None:
    assert fence(resources=["secrets", "secrets"]).resources == (FencedResource("", "secrets"),)
    assert fence(operations=["DELETE", "DELETE"]).operations == ("DELETE",)


def test_a_line_is_named() -> None:
    lines = "apiVersion: lease-webhook/v1\nfences:\n- name: a\n  lease: shop/a\n  writers: [shop/a]\n  resources:\n"
    with pytest.raises(PolicyError, match=r'^line 8: fences\[0\]\.resources\[1\]: "deployment" is not a resource of'):
        parse(f"{lines}  - pods\n  - deployment\n")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        pytest.param({"modes": "deny"}, 'modes: unknown key; did you mean "mode"?', id="a key misspelt"),
        pytest.param({"mode": "off"}, 'mode: "off" is not known; known are audit, deny, warn', id="mode off"),
        pytest.param(
            {"operations": ["UPDTE"]}, 'operations[0]: "UPDTE" is not known; did you mean "UPDATE"?', id="an operation"
        ),
        pytest.param(
            {"token": True},
            "token: needs the stamps of the lease: install deploy/stamp, and name the lease's namespace in `stamps`",
            id="a token without stamps",
        ),
        pytest.param(
            {"expired": "warn"},
            "expired: needs the stamps of the lease: install deploy/stamp, and name the lease's namespace in `stamps`",
            id="a clock without stamps",
        ),
        pytest.param({"operations": []}, "operations: must have at least 1 entry", id="no operation"),
        pytest.param({"writers": []}, "writers: must have at least 1 entry", id="no writer"),
        pytest.param({"writers": ["shop/a"] * 33}, "writers: must have at most 32 entries", id="33 writers"),
        pytest.param(
            {"writers": ["user:kim"]},
            "writers[0]: must be a service account as namespace/name, no wildcards; a user has no pod and cannot be "
            "fenced",
            id="a user",
        ),
        pytest.param(
            {"writers": ['shop/a" || true || "']},
            "writers[0]: must be a service account as namespace/name, no wildcards; a user has no pod and cannot be "
            "fenced",
            id="CEL in a writer",
        ),
        pytest.param(
            {"writers": ["shop/a", "other/a"]},
            "writers[1]: must be of the same namespace as the first writer: pods of two namespaces may have one name, "
            "and the holder identity does not contain the namespace",
            id="writers of two namespaces",
        ),
        pytest.param(
            {"lease": "operator"}, "lease: must be a lease as namespace/name, no wildcards", id="no namespace"
        ),
        pytest.param({"lease": "shop/*"}, "lease: must be a lease as namespace/name, no wildcards", id="any lease"),
        pytest.param(
            {"name": "Shop"},
            "name: must be a name of at most 57 lower case letters, digits and -, which begins and ends with a letter "
            "or digit",
            id="upper case",
        ),
        pytest.param(
            {"namespaces": ["a*"]}, "namespaces[0]: must be the exact name of a namespace, no wildcards", id="g"
        ),
    ],
)
def test_what_is_refused(keys: dict[str, Any], words: str) -> None:
    assert refusal(**keys) == words


def test_a_name_stands_once() -> None:
    with pytest.raises(PolicyError, match=r"fences\[1\].name: fences\[0\] already has this name"):
        policy(fences=[FENCE, FENCE])


def test_fences_are_bounded() -> None:
    many = [{**FENCE, "name": f"f{number}"} for number in range(MAX_FENCES + 1)]
    with pytest.raises(PolicyError, match="fences: must have at most 256 entries"):
        policy(fences=many)
