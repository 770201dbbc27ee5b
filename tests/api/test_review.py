"""From bytes to a request: what is malformed, what contradicts itself, and what is simply read."""

import json
from typing import Any

import pytest

from tests.factories import (
    UID,
    Document,
    Tweak,
    changed,
    drop,
    make_candidate,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from webhook.api.field import ErrorType
from webhook.api.objects import Lease, LeaseCandidate
from webhook.api.request import Operation
from webhook.api.review import ReviewError, decode

REVIEW = to_bytes(make_review())
UPDATE = make_review(old=make_lease(), new=make_lease())


def refused(body: bytes) -> tuple[int, str]:
    with pytest.raises(ReviewError) as caught:
        decode(body)
    return caught.value.status, caught.value.text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(b"", "the body is not JSON", id="empty"),
        pytest.param(b" \n", "the body is not JSON", id="white space"),
        pytest.param(REVIEW[:-20], "the body is not JSON", id="truncated"),
        pytest.param(REVIEW + b"{}", "the body is not JSON", id="two documents"),
        pytest.param(b"{'a': 1}", "the body is not JSON", id="single quotes"),
        pytest.param(b'{"a": NaN}', "the body is not JSON", id="NaN"),
        pytest.param(REVIEW.replace(b"shop", b"sh\xffp"), "the body is not UTF-8", id="bytes that are not UTF-8"),
        pytest.param(b"\xef\xbb\xbf" + REVIEW, "the body is not JSON", id="a byte order mark"),
        pytest.param(
            b"[" * 100_000 + b"]" * 100_000,
            "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1",
            id="lists nested a hundred thousand deep",
        ),
        pytest.param(
            b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "the body is nested too deeply", id="objects nested as deep"
        ),
        pytest.param(
            to_bytes(make_review(put("request.uid", 5), put("extra", [])))[:-2]
            + b',"deep":'
            + b"[" * 9999
            + b"]" * 9999
            + b"}",
            "the body is nested too deeply",
            id="nested too deep beside a wrong type",
        ),
        pytest.param(b"null", "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1", id="null"),
        pytest.param(b"[]", "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1", id="a list"),
        pytest.param(
            b"{}", "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1", id="an empty object"
        ),
        pytest.param(
            to_bytes(make_review(put("kind", "Review"))),
            "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1",
            id="another kind",
        ),
        pytest.param(
            to_bytes(make_review(put("apiVersion", "admission.k8s.io/v2"))),
            "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1",
            id="another version",
        ),
        pytest.param(
            to_bytes(make_review(put("apiVersion", []))),
            "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1",
            id="apiVersion a list",
        ),
        pytest.param(
            to_bytes(make_review(put("apiVersion", 1))),
            "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1",
            id="a version that is no text",
        ),
        pytest.param(to_bytes(make_review(put("request", None))), "the review has no request", id="request null"),
        pytest.param(to_bytes(make_review(put("request", [1]))), "the review has no request", id="request a list"),
        pytest.param(to_bytes(make_review(drop("request.uid"))), "the request has no uid", id="uid missing"),
        pytest.param(to_bytes(make_review(put("request.uid", ""))), "the request has no uid", id="uid empty"),
        pytest.param(to_bytes(make_review(put("request.uid", 7))), "the request has no uid", id="uid a number"),
        pytest.param(
            to_bytes(make_review(put("request.uid", "u" * 257))),
            "the uid of the request is longer than 256 characters",
            id="uid too long",
        ),
        pytest.param(
            REVIEW.replace(b'"leaseTransitions":5', b'"leaseTransitions":' + b"9" * 5000),
            "the body has a number that no API server sends",
            id="5000 digits",
        ),
        pytest.param(
            REVIEW.replace(b'"leaseTransitions":5', b'"leaseTransitions":1e999'),
            "the body has a number that no API server sends",
            id="1e999",
        ),
    ],
)
def test_malformed(body: bytes, text: str) -> None:
    assert refused(body) == (400, text)


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
def test_contradictory(review: Document, text: str) -> None:
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
def test_legal(tweak: Tweak) -> None:
    review = changed(make_review(), tweak)
    request = decode(to_bytes(review))
    assert request.contradiction == ""
    assert request.object_errors == ()
    assert (request.namespace, request.name) == ("shop", "checkout")
    assert isinstance(request.new, Lease)
    assert request.api_version == review["apiVersion"]


def test_the_writer() -> None:
    request = decode(REVIEW)
    assert request.user is not None
    assert request.user.service_account == ("shop", "checkout")
    assert request.user.pod_name == "checkout-6d5f9c-x2x8p"
    partly = decode(
        to_bytes(make_review(put("request.userInfo", {"username": None, "groups": ["a"], "extra": {"k": None}})))
    )
    assert partly.user is not None
    assert (partly.user.username, partly.user.groups, partly.user.extra) == ("", ("a",), {"k": ()})
    assert partly.user.service_account is None
    assert partly.user.pod_name == ""
    assert decode(to_bytes(make_review(put("request.userInfo", 5)))).user is None


def test_a_candidate_and_a_deletion() -> None:
    candidate = decode(to_bytes(make_review(new=make_candidate())))
    assert isinstance(candidate.new, LeaseCandidate)
    deletion = decode(to_bytes(make_review(drop("request.name"), old=make_lease())))
    assert (deletion.operation, deletion.new, deletion.name) == (Operation.DELETE, None, "checkout")


@pytest.mark.parametrize(
    ("version", "foreign"),
    [("v1alpha1", "strategy"), ("v1alpha2", "preferredStrategies"), ("v1beta1", "preferredStrategies")],
)
def test_a_field_of_another_version_is_unknown_whatever_its_type(version: str, foreign: str) -> None:
    candidate = make_candidate(put("apiVersion", f"coordination.k8s.io/{version}"), put(f"spec.{foreign}", 5))
    request = decode(to_bytes(make_review(new=candidate)))
    assert request.object_errors == ()
    assert isinstance(request.new, LeaseCandidate)
    assert request.new.spec.lease_name == "checkout"


def test_what_we_do_not_judge_is_not_decoded() -> None:
    pods = changed(
        make_review(put("request.object", "anything")),
        put("request.kind", {"group": "", "version": "v1", "kind": "Pod"}),
        put("request.resource", {"group": "", "version": "v1", "resource": "pods"}),
    )
    for review in (pods, make_review(put("request.operation", "CONNECT"), put("request.object", None))):
        request = decode(to_bytes(review))
        assert request.contradiction == ""
        assert request.new is None


@pytest.mark.parametrize(
    ("path", "value", "field", "detail"),
    [
        pytest.param(
            "spec.leaseDurationSeconds",
            "15",
            "spec.leaseDurationSeconds",
            "must be an integer, not a string",
            id="a text for a number",
        ),
        pytest.param(
            "spec.leaseDurationSeconds",
            True,
            "spec.leaseDurationSeconds",
            "must be an integer, not a boolean",
            id="a truth for a number",
        ),
        pytest.param(
            "spec.leaseDurationSeconds",
            15.0,
            "spec.leaseDurationSeconds",
            "must be an integer, not a floating-point number",
            id="15.0",
        ),
        pytest.param(
            "spec.leaseDurationSeconds",
            2**31,
            "spec.leaseDurationSeconds",
            "must be at most 2147483647",
            id="2 to the 31st",
        ),
        pytest.param(
            "spec.leaseTransitions",
            2**63,
            "spec.leaseTransitions",
            "must be at most 2147483647",
            id="2 to the 63rd",
        ),
        pytest.param(
            "spec.leaseTransitions",
            10**30,
            "spec.leaseTransitions",
            "must be at most 2147483647",
            id="10 to the 30th",
        ),
        pytest.param(
            "spec.holderIdentity",
            5,
            "spec.holderIdentity",
            "must be a string, not an integer",
            id="a number for a text",
        ),
        pytest.param("spec", [], "spec", "must be an object, not a list", id="a list for spec"),
        pytest.param("metadata", 5, "metadata", "must be an object, not an integer", id="a number for metadata"),
        pytest.param(
            "metadata.labels",
            {"a": 1},
            "metadata.labels[...]",
            "must be a string, not an integer",
            id="a number for a label",
        ),
    ],
)
def test_wrong_types(path: str, value: Any, field: str, detail: str) -> None:
    (error,) = decode(to_bytes(make_review(put(f"request.object.{path}", value)))).object_errors
    assert (error.type, error.field, error.detail) == (ErrorType.TYPE_INVALID, field, detail)


def test_wrong_types_in_the_old_object_and_the_options() -> None:
    request = decode(to_bytes(changed(UPDATE, put("request.oldObject.spec", 5), put("request.options", {"dryRun": 5}))))
    assert [error.field for error in request.object_errors] == ["oldObject.spec", "options.dryRun"]


def test_an_escaped_lone_surrogate_contradicts_itself() -> None:
    text = "the review contains an escaped lone surrogate, which no API server sends"
    for escape in (b"\\ud800", b"\\uDFFF", b"\\\\\\ud800"):
        assert decode(REVIEW.replace(b"checkout-6d", escape)).contradiction == text
    pair = decode(REVIEW.replace(b"checkout-6d", b"\\ud83d\\ude00"))
    assert pair.contradiction == ""
    assert isinstance(pair.new, Lease)
    assert (pair.new.spec.holder_identity or "").startswith("😀")
    assert refused(b'{"a": "\\ud800') == (400, "the body is not JSON")


def test_of_duplicate_keys_the_last_wins() -> None:
    request = decode(REVIEW.replace(b'"leaseTransitions":5', b'"leaseTransitions":5,"leaseTransitions":6'))
    assert isinstance(request.new, Lease)
    assert request.new.spec.lease_transitions == 6
    assert json.loads(REVIEW)["request"]["uid"] == request.uid


def test_a_wrong_type_is_named_whatever_stands_beside_it() -> None:
    review = to_bytes(make_review(put("request.name", 1)))
    for beside in (b"9" * 5000, b"1e999"):
        request = decode(review.replace(b'"leaseTransitions":5', b'"leaseTransitions":' + beside))
        assert (request.uid, request.contradiction) == (UID, "request.name has a type that no API server sends")


def test_a_wrong_type_in_half_a_document_is_no_json() -> None:
    assert refused(to_bytes(make_review(put("request.name", 1)))[:-20]) == (400, "the body is not JSON")


@pytest.mark.parametrize(
    "number",
    [b"1e309", b"-1e400", b"9" * 400 + b".5", b"9" * 4301],
    ids=["1e309", "-1e400", "400 digits", "an integer"],
)
def test_a_number_that_fits_nowhere(number: bytes) -> None:
    body = REVIEW.replace(b'"leaseTransitions":5', b'"leaseTransitions":' + number)
    assert refused(body) == (400, "the body has a number that no API server sends")


def test_the_writer_is_decoded_once() -> None:
    request = decode(REVIEW)
    assert request.user is request.user


def test_another_wrong_type_beside_a_field_of_another_version() -> None:
    candidate = make_candidate(put("spec.preferredStrategies", 5), put("spec.leaseName", 7))
    (error,) = decode(to_bytes(make_review(new=candidate))).object_errors
    assert (error.field, error.detail) == ("spec.leaseName", "must be a string, not an integer")
