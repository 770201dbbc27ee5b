"""Reviews that contradict themselves, and those that only look like it."""

import pytest

from tests.factories import (
    UID,
    Document,
    Tweak,
    changed,
    drop,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.review import decode

UPDATE = make_review(old=make_lease(), new=make_lease())


def contradiction(review: Document) -> str:
    request = decode(to_bytes(review))
    assert request.uid == UID
    return request.contradiction


@pytest.mark.parametrize(
    ("review", "text"),
    [
        pytest.param(
            make_review(put("request.operation", "PATCH")),
            "request.operation must be CREATE, UPDATE, DELETE or CONNECT",
            id="PATCH",
        ),
        pytest.param(
            make_review(drop("request.operation")),
            "request.operation must be CREATE, UPDATE, DELETE or CONNECT",
            id="no operation",
        ),
        pytest.param(
            make_review(put("request.operation", 5)),
            "request.operation has a type that no API server sends",
            id="a number for an operation",
        ),
        pytest.param(
            make_review(drop("request.resource")), "request.resource and request.kind must be set", id="no resource"
        ),
        pytest.param(
            make_review(put("request.kind", {})), "request.resource and request.kind must be set", id="an empty kind"
        ),
        pytest.param(
            make_review(put("request.kind", "Lease")),
            "request.kind has a type that no API server sends",
            id="a text for a kind",
        ),
        pytest.param(
            make_review(put("request.resource.resource", "pods")),
            "request.resource and request.kind must name the same thing",
            id="pods of kind Lease",
        ),
        pytest.param(
            make_review(put("request.kind.kind", "LeaseCandidate")),
            "request.resource and request.kind must name the same thing",
            id="leases of kind LeaseCandidate",
        ),
        pytest.param(
            make_review(put("request.kind.version", "v1beta1")),
            "request.resource and request.kind must name the same thing",
            id="two versions",
        ),
        pytest.param(
            make_review(put("request.object", None)), "CREATE needs request.object", id="CREATE without an object"
        ),
        pytest.param(make_review(put("request.object", "text")), "CREATE needs request.object", id="CREATE of a text"),
        pytest.param(
            make_review(put("request.object", []), put("request.name", None)),
            "CREATE needs request.object",
            id="CREATE of a list",
        ),
        pytest.param(
            changed(UPDATE, put("request.oldObject", None)),
            "UPDATE needs request.oldObject",
            id="UPDATE without an old object",
        ),
        pytest.param(
            changed(UPDATE, put("request.object", None), put("request.oldObject.spec", 5)),
            "UPDATE needs request.object",
            id="UPDATE without an object, and an old one with a wrong type",
        ),
        pytest.param(
            changed(UPDATE, put("request.object", None), put("request.oldObject", None)),
            "UPDATE needs request.object",
            id="UPDATE of nothing",
        ),
        pytest.param(
            changed(make_review(old=make_lease()), put("request.oldObject", None)),
            "DELETE needs request.oldObject",
            id="DELETE of nothing",
        ),
        pytest.param(
            make_review(put("request.object.kind", "Pod")),
            "object.kind must be the kind that the request names",
            id="another kind inside",
        ),
        pytest.param(
            make_review(put("request.object.apiVersion", "v1")),
            "object.apiVersion must be the group and version that the request names",
            id="another version inside",
        ),
        pytest.param(
            changed(UPDATE, put("request.oldObject.kind", "Pod")),
            "oldObject.kind must be the kind that the request names",
            id="another old kind",
        ),
        pytest.param(
            make_review(put("request.object.metadata.namespace", "other")),
            "object.metadata.namespace must be the namespace that the request names",
            id="another namespace inside",
        ),
        pytest.param(
            make_review(put("request.object.metadata.name", "other")),
            "object.metadata.name must be the name that the request names",
            id="another name inside",
        ),
        pytest.param(
            changed(make_review(old=make_lease()), put("request.name", "other")),
            "oldObject.metadata.name must be the name that the request names",
            id="DELETE of another name",
        ),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(review: Document, text: str) -> None:
    assert contradiction(review) == text


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("request.name", ""), id="no name, as with generateName"),
        pytest.param(drop("request.name"), id="name absent, as in a deletecollection"),
        pytest.param(put("request.options", None), id="options null"),
        pytest.param(drop("request.options"), id="options absent"),
        pytest.param(drop("request.object.kind"), id="kind left out of the object"),
        pytest.param(drop("request.object.apiVersion"), id="apiVersion left out of the object"),
        pytest.param(put("request.object.kind", ""), id="kind empty in the object"),
        pytest.param(put("request.object.apiVersion", ""), id="apiVersion empty in the object"),
        pytest.param(put("request.object.apiVersion", "coordination.k8s.io/"), id="apiVersion without a version"),
        pytest.param(drop("request.object.metadata.namespace"), id="namespace left out of the object"),
        pytest.param(put("request.dryRun", "yes"), id="dryRun a text"),
        pytest.param(put("request.userInfo", None), id="no writer"),
        pytest.param(put("request.userInfo.groups", None), id="groups null"),
        pytest.param(put("request.userInfo.extra", None), id="extra null"),
        pytest.param(put("request.userInfo", 5), id="a number for a writer"),
        pytest.param(put("response", {"uid": "x"}), id="a response already there"),
        pytest.param(put("request.surprise", {"a": [1e300]}), id="unknown fields"),
        pytest.param(put("apiVersion", "admission.k8s.io/v1beta1"), id="v1beta1"),
    ],
)
def test_a_request_that_may_be_sent_contradicts_nothing(tweak: Tweak) -> None:
    review = changed(make_review(), tweak)
    request = decode(to_bytes(review))
    assert request.contradiction == ""
    assert request.object_errors == ()
    assert (request.namespace, request.name) == ("shop", "checkout")
    assert isinstance(request.new, Lease)
    assert request.api_version == review["apiVersion"]
