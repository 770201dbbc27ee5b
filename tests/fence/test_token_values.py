"""What a fence with a token decides, by a CEL library; `make e2e E2E="--only token"` asks an API server."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cel_values import value, variable
from tests.factories import Document
from tests.policy.fences.made import STAMPS, stamped
from webhook.fence import KEPT, MUTATING_POLICY, POLICY, STAMPING, manifests

_FOUND: Final = {
    (one["kind"], one["metadata"]["name"].rpartition(".")[2]): one["spec"] for one in manifests(stamped(token=True))
}
STAMP: Final = _FOUND[MUTATING_POLICY, STAMPING[1:]]
KEEP: Final = _FOUND[MUTATING_POLICY, KEPT[1:]]
FENCE: Final = next(spec for (kind, _), spec in _FOUND.items() if kind == POLICY)
SUFFIX: Final = STAMPS[0]["suffix"]
KEY: Final = f"shop-operator.lease-webhook/token-{SUFFIX}"
USER: Final = "system:serviceaccount:shop:operator"
TERMS: Final = st.integers(1, 2**40)


def lease(term: int | str = "", writer: str = "uid-a", holder: str = "op-a", revision: int = 90) -> Document:
    """The lease, as an API server knows it, of a pod with this uid."""
    names = {"term": str(term), "writer": f"{writer} {USER}"}
    annotations = {f"lease-webhook/{name}-{SUFFIX}": text for name, text in names.items()}
    return {
        "metadata": {"annotations": annotations, "resourceVersion": str(revision)},
        "spec": {"holderIdentity": holder},
    }


def written(token: str | None, params: Document, uid: str = "uid-a", new: str | None = "") -> dict[str, Any]:
    """An update of an object with a stored token by a pod; `new` is the token that the write contains."""
    extra = {"authentication.kubernetes.io/pod-uid": [uid], "authentication.kubernetes.io/pod-name": ["op-a"]}
    before: Document = {"metadata": {"annotations": {} if token is None else {KEY: token}}}
    after: Document = {"metadata": {"annotations": {KEY: token if new == "" else new}}}
    info = {"username": USER, "groups": [], "extra": extra}
    found = {"operation": "UPDATE", "userInfo": info, "name": "log", "namespace": "shop"}
    return {"request": found, "object": after, "oldObject": before, "params": params}


@settings(max_examples=20)
@given(TERMS, TERMS)
def test_a_token_never_falls(stored: int, term: int) -> None:
    data = written(f"{stored:018}", lease(term))
    assert int(variable(STAMP, "token", data)) == max(stored, term)


@settings(max_examples=20)
@given(TERMS, TERMS)
def test_an_older_term_is_refused(stored: int, term: int) -> None:
    data = written(f"{stored:018}", lease(term), new=f"{max(stored, term):018}")
    assert value(FENCE, FENCE["validations"][1]["expression"], data) == (stored <= term)


def test_a_lease_that_was_created_has_the_term_that_its_first_renewal_gets() -> None:
    assert variable(STAMP, "token", written(None, lease(revision=90))) == f"{89:018}"


@pytest.mark.parametrize("new", [None, "000000000000000009", "x"])
def test_a_token_that_another_changes_is_put_back(new: str | None) -> None:
    data = written("000000000000000005", lease(5), new=new)
    if new is None:
        del data["object"]["metadata"]["annotations"][KEY]
    data["request"]["userInfo"]["username"] = "someone"
    assert all(value(KEEP, one["expression"], data) for one in KEEP["matchConditions"])


@pytest.mark.parametrize(
    ("uid", "holder", "admitted"),
    [
        pytest.param("uid-a", "op-a", True, id="the stamped writer"),
        pytest.param("uid-b", "op-a", False, id="another pod of the same user"),
    ],
)
def test_only_the_stamped_writer_is_admitted(uid: str, holder: str, admitted: bool) -> None:
    data = written(None, lease(5, holder=holder), uid)
    assert value(FENCE, FENCE["validations"][0]["expression"], data) == admitted
