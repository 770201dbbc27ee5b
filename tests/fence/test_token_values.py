"""What a fence with a token decides, by a CEL library; `make e2e E2E="--only token"` asks an API server."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cel_values import value, variable
from tests.factories import Document
from tests.policy.fences.made import STAMPS, stamped
from tests.stamp_policies import mutated
from webhook.api_server.fence.objects import KEEPING, MUTATING_POLICY, POLICY, STAMPING, make_fence_manifests

RESOURCES: Final = [
    "configmaps",
    "deployments.apps/scale",
    "deployments.apps/status",
    "pods",
    "widgets.example.com/status",
    "ingresses.networking.k8s.io/status",
    "customresourcedefinitions.apiextensions.k8s.io/status",
    "certificatesigningrequests.certificates.k8s.io/approval",
    "certificatesigningrequests.certificates.k8s.io/status",
]
_FOUND: Final = {
    (one["kind"], one["metadata"]["name"].rpartition(".")[2]): one["spec"]
    for one in make_fence_manifests(stamped(token=True))
}
STAMP: Final = _FOUND[MUTATING_POLICY, STAMPING[1:]]
KEEP: Final = _FOUND[MUTATING_POLICY, KEEPING[1:]]
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
    request = {"operation": "UPDATE", "userInfo": info, "name": "log", "namespace": "shop"}
    return {"request": request, "object": after, "oldObject": before, "params": params}


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


ZERO: Final = f"{0:018}"


def by_another(stored: str | None, new: str | None, *groups: str, **others: str) -> dict[str, Any]:
    """An update by a user that is no fenced writer, of an object with these other annotations; None: no token."""
    data = written(stored, lease(5), new=new)
    data["request"]["userInfo"] = {"username": "someone", "groups": list(groups)}
    for document in (data["object"], data["oldObject"]):
        document["metadata"]["annotations"].update(others)
    if new is None:
        del data["object"]["metadata"]["annotations"][KEY]
    return data


def find_kept(data: dict[str, Any]) -> Document:
    """Return the metadata that is stored of an object."""
    is_matched = all(value(KEEP, one["expression"], data) for one in KEEP["matchConditions"])
    metadata: Document = (mutated(KEEP, data) if is_matched else data["object"])["metadata"]
    return metadata


@pytest.mark.parametrize("stored", [None, f"{5:018}"], ids=["no token", "a token"])
@pytest.mark.parametrize("new", [None, f"{9:018}", ZERO, "x"], ids=["removed", "of a later term", "zero", "words"])
def test_a_token_that_another_changes_is_put_back(stored: str | None, new: str | None) -> None:
    kept = {"note": "1"} if stored is None else {"note": "1", KEY: stored}
    assert find_kept(by_another(stored, new, note="1"))["annotations"] == kept


def test_a_token_is_put_back_where_the_annotations_were_removed() -> None:
    data = by_another(f"{5:018}", None)
    del data["object"]["metadata"]["annotations"]
    assert find_kept(data)["annotations"] == {KEY: f"{5:018}"}


@pytest.mark.parametrize(
    ("group", "new", "stored"),
    [
        pytest.param("system:masters", ZERO, ZERO, id="zero by an administrator"),
        pytest.param("system:nodes", ZERO, f"{5:018}", id="zero by a node"),
        pytest.param("system:masters", f"{9:018}", f"{5:018}", id="a later term by an administrator"),
    ],
)
def test_an_administrator_sets_a_token_to_zero_and_to_nothing_else(group: str, new: str, stored: str) -> None:
    assert find_kept(by_another(f"{5:018}", new, group))["annotations"] == {KEY: stored}


@pytest.mark.parametrize(
    ("token", "admitted"),
    [
        pytest.param(f"{5:018}", True, id="with its token"),
        pytest.param(None, False, id="without one"),
        pytest.param(f"{4:018}", False, id="with that of before"),
        pytest.param(f"{6:018}", False, id="with a later one"),
    ],
)
def test_what_the_leader_writes_is_refused_if_nothing_stamped_it(token: str | None, admitted: bool) -> None:
    data = written(f"{4:018}", lease(5), new=token)
    if token is None:
        del data["object"]["metadata"]["annotations"][KEY]
    admission, comparison, stamping = (value(FENCE, one["expression"], data) for one in FENCE["validations"])
    assert (admission, comparison, stamping) == (True, True, admitted)


@pytest.mark.parametrize("stored", [None, f"{4:018}"], ids=["no token", "a token"])
@pytest.mark.parametrize("new", [None, f"{4:018}", f"{9:018}"], ids=["removed", "of an older term", "of a later term"])
def test_the_token_of_what_the_leader_writes_is_that_of_its_term(stored: str | None, new: str | None) -> None:
    data = written(stored, lease(5), new=new)
    if new is None:
        del data["object"]["metadata"]["annotations"]
    assert mutated(STAMP, data)["metadata"]["annotations"] == {KEY: f"{5:018}"}


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


@pytest.mark.parametrize(
    ("stored", "token"),
    [
        pytest.param(f"{3:018}", f"{3:018}", id="of an older term"),
        pytest.param(f"{5:018}", f"{5:018}", id="of the current term"),
        pytest.param(None, "", id="none"),
        pytest.param("soon", "soon", id="words"),
    ],
)
def test_who_does_not_lead_is_given_no_token(stored: str | None, token: str) -> None:
    stale = written(stored, lease(5), uid="uid-b")
    assert variable(STAMP, "token", stale) == token
    assert variable(STAMP, "token", written(stored, lease(5))) == f"{5:018}"


def test_while_nobody_leads_all_are_given_the_term() -> None:
    assert variable(STAMP, "token", written(None, lease(5, holder=""), uid="uid-b")) == f"{5:018}"


METADATA: Final[dict[str, Any]] = {
    "labels": {"a": "b"},
    "annotations": {KEY: f"{5:018}", "a": "b"},
    "finalizers": ["a/b"],
    "ownerReferences": [{"kind": "ConfigMap", "name": "gone"}],
}


def through(subresource: str, uid: str, **metadata: Any) -> dict[str, Any]:
    """A write of a ConfigMap by this pod, whose object has the token of the current term."""
    data = written(f"{5:018}", lease(5), uid=uid)
    data["object"]["metadata"] |= metadata
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    data["request"] |= {"resource": resource, "subResource": subresource}
    return data


def is_evaluated(data: dict[str, Any]) -> bool:
    return all(value(FENCE, one["expression"], data) for one in FENCE["matchConditions"])


@pytest.mark.parametrize("name", METADATA)
def test_metadata_is_fenced_through_whatever_stores_it(name: str) -> None:
    stale = through("status", "uid-b", **{name: METADATA[name]})
    assert is_evaluated(stale)
    assert not value(FENCE, FENCE["validations"][0]["expression"], stale)
    leads = through("status", "uid-a", **{name: METADATA[name]})
    assert not is_evaluated(leads) or value(FENCE, FENCE["validations"][0]["expression"], leads)


def test_the_content_of_what_is_not_listed_is_everyones() -> None:
    assert not is_evaluated(through("status", "uid-b"))
    assert is_evaluated(through("", "uid-b"))
    *listed, more = FENCE["matchConstraints"]["resourceRules"]
    assert (more["operations"], more["resources"]) == (["UPDATE"], ["configmaps/*"])
    assert [one["resources"] for one in listed] == [["configmaps"], ["deployments/scale"]]


# ---- subresources, and Bindings --------------------------------------------------------------------------------------

_OF_MORE: Final = {
    (one["kind"], one["metadata"]["name"].rpartition(".")[2]): one["spec"]
    for one in make_fence_manifests(stamped(token=True, resources=RESOURCES))
}
OF_MORE: Final = next(spec for (kind, _), spec in _OF_MORE.items() if kind == POLICY)
KEEP_MORE: Final = _OF_MORE[MUTATING_POLICY, KEEPING[1:]]


def put_back(place: str, stored: str | None, new: str | None) -> dict[str, Any]:
    """An update by the leader of term 5, of an object with a stored token; `new` is the token after it was stamped."""
    group, resource, subresource = place.split("/")
    data = written(stored, lease(5), new=new)
    if new is None:
        del data["object"]["metadata"]["annotations"]
    data["request"] |= {
        "resource": {"group": group, "version": "v1", "resource": resource},
        "subResource": subresource,
    }
    return data


@pytest.mark.parametrize("stored", [None, f"{4:018}", "soon"], ids=["no token", "of an older term", "words"])
@pytest.mark.parametrize(
    ("place", "admitted"),
    [
        pytest.param("example.com/widgets/status", True, id="status of a custom resource"),
        pytest.param("apps/deployments/status", False, id="status of what stores annotations there"),
        pytest.param("networking.k8s.io/ingresses/status", False, id="status of an Ingress"),
        pytest.param("apiextensions.k8s.io/customresourcedefinitions/status", False, id="status of a definition"),
        pytest.param("certificates.k8s.io/certificatesigningrequests/status", False, id="status of a request"),
        pytest.param("certificates.k8s.io/certificatesigningrequests/approval", False, id="approval of a request"),
        pytest.param("example.com/widgets/", False, id="the object itself"),
    ],
)
def test_the_leader_may_leave_the_old_token_only_where_metadata_may_be_put_back(
    place: str, stored: str | None, admitted: bool
) -> None:
    data = put_back(place, stored, stored)
    assert [value(OF_MORE, one["expression"], data) for one in OF_MORE["validations"]] == [True, True, admitted]


@pytest.mark.parametrize("new", [None, f"{3:018}", f"{9:018}", "soon"], ids=["none", "older", "later", "words"])
def test_where_metadata_may_be_put_back_no_other_token_is_stored(new: str | None) -> None:
    data = put_back("example.com/widgets/status", f"{4:018}", new)
    assert not value(OF_MORE, OF_MORE["validations"][2]["expression"], data)


def test_where_metadata_is_put_back_the_term_is_compared_with_the_token_of_the_object() -> None:
    data = put_back("example.com/widgets/status", f"{6:018}", f"{6:018}")
    assert not value(OF_MORE, OF_MORE["validations"][1]["expression"], data)


@pytest.mark.parametrize("token", [f"{5:018}", None], ids=["stamped", "not stamped"])
def test_a_binding_by_the_leader_is_admitted_whether_or_not_it_is_stamped(token: str | None) -> None:
    found = make_fence_manifests(stamped(token=True, resources=["pods", "pods/binding"]))
    spec = next(one["spec"] for one in found if one["kind"] == POLICY)
    for place in ("/pods/binding", "/bindings/"):
        data = put_back(place, None, token)
        data["oldObject"] = None
        data["request"]["operation"] = "CREATE"
        assert [value(spec, one["expression"], data) for one in spec["validations"]] == [True] * 3


def has_token_and_is_admitted(annotations: dict[str, str]) -> tuple[bool, bool]:
    """Stamp and judge an update by the leader of an object that has these annotations and no token."""
    data = written(None, lease(5))
    data["oldObject"]["metadata"]["annotations"] = {name: text for name, text in annotations.items() if name != KEY}
    data["object"]["metadata"]["annotations"] = annotations
    data["object"] = mutated(STAMP, data)
    return KEY in data["object"]["metadata"]["annotations"], value(FENCE, FENCE["validations"][2]["expression"], data)


@pytest.mark.parametrize("forged", [{}, {KEY: f"{9:018}"}], ids=["", "and a forged token"])
@pytest.mark.parametrize(
    ("annotations", "has_room"),
    [
        pytest.param({f"a{at}": "" for at in range(999)}, True, id="one less than the most"),
        pytest.param({f"a{at}": "" for at in range(1000)}, True, id="the most"),
        pytest.param({f"a{at}": "" for at in range(1001)}, False, id="one more than the most"),
        pytest.param({"fill": "x" * (262_144 - 4 - len(KEY) - 18)}, True, id="the most bytes"),
        pytest.param({"fill": "x" * (262_144 - 4 - len(KEY) - 17)}, False, id="a byte more"),
    ],
)
def test_the_leader_writes_an_object_whether_or_not_a_token_fits(
    annotations: dict[str, str], has_room: bool, forged: dict[str, str]
) -> None:
    assert has_token_and_is_admitted(annotations | forged) == (has_room, True)


def test_a_token_that_fitted_stays_although_a_webhook_filled_the_annotations_later() -> None:
    data = written(None, lease(5))
    data["object"] = mutated(STAMP, data)
    data["object"]["metadata"]["annotations"] |= {f"a{at}": "" for at in range(1001)}
    assert value(FENCE, FENCE["validations"][2]["expression"], data)


@pytest.mark.parametrize("user", [USER, "someone"])
@pytest.mark.parametrize(("resource", "subresource"), [("bindings", ""), ("pods", "binding")])
@pytest.mark.parametrize("token", [f"{9:018}", ZERO, ""], ids=["a later one", "zero", "empty"])
@pytest.mark.parametrize("others", [{}, {"note": "1"}], ids=["alone", "beside another annotation"])
def test_a_binding_carries_no_token_into_a_pod(
    user: str, resource: str, subresource: str, token: str, others: dict[str, str]
) -> None:
    data = written(None, lease(5))
    data |= {"oldObject": None, "object": {"metadata": {"name": "p", "annotations": {KEY: token, **others}}}}
    data["request"] |= {
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": resource},
        "subResource": subresource,
    }
    data["request"]["userInfo"]["username"] = user
    assert all(value(KEEP_MORE, one["expression"], data) for one in KEEP_MORE["matchConditions"])
    assert mutated(KEEP_MORE, data)["metadata"]["annotations"] == others
    assert "bindings" in KEEP_MORE["matchConstraints"]["resourceRules"][0]["resources"]


UNREADABLE: Final = {"manager": "x", "time": "10000-01-01T00:59:59Z"}
READABLE: Final[list[Document]] = [
    {"manager": "y"},
    {"manager": "z", "operation": "Update", "apiVersion": "v1", "time": None, "subresource": "status"},
    {"manager": "z", "time": "9999-12-31T23:59:59Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}},
]


def with_entries(data: dict[str, Any], *entries: Document) -> dict[str, Any]:
    data["object"]["metadata"]["managedFields"] = [*entries]
    return data


@pytest.mark.parametrize("policy", [STAMP, KEEP], ids=["by the leader", "by another"])
@pytest.mark.parametrize(
    ("entries", "left"),
    [
        pytest.param([*READABLE, UNREADABLE], READABLE, id="one of four"),
        pytest.param([UNREADABLE], [], id="the only one"),
        pytest.param([*READABLE * 167, UNREADABLE], [], id="one of more than anyone needs"),
        pytest.param(READABLE * 167, READABLE * 167, id="none"),
    ],
)
def test_an_entry_whose_time_cannot_be_read_is_removed(policy: Document, entries: list[Any], left: list[Any]) -> None:
    """The API server reads what is left from JSON, and would refuse the write in mode warn, too."""
    data = written(f"{4:018}", lease(5)) if policy is STAMP else by_another(f"{4:018}", None, note="1")
    metadata = mutated(policy, with_entries(data, *entries))["metadata"]
    assert metadata["managedFields"] == left
    assert metadata["annotations"][KEY] == f"{5 if policy is STAMP else 4:018}"


def test_an_object_without_entries_gets_none() -> None:
    assert "managedFields" not in mutated(STAMP, written(f"{4:018}", lease(5)))["metadata"]
