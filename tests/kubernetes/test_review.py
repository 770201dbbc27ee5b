"""From bytes to a request: what is malformed, and what is decoded."""

import pytest

from tests.factories import (
    UID,
    drop,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.review import decode

REVIEW = to_bytes(make_review())


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
            id="a version that is not a text",
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
def test_a_body_that_is_no_review_is_refused(body: bytes, text: str) -> None:
    assert refused(body) == (400, text)


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


def test_an_escaped_lone_surrogate_contradicts_itself() -> None:
    text = "the review contains an escaped lone surrogate, which no API server sends"
    for escape in (b"\\ud800", b"\\uDFFF", b"\\\\\\ud800"):
        assert decode(REVIEW.replace(b"checkout-6d", escape)).contradiction == text
    pair = decode(REVIEW.replace(b"checkout-6d", b"\\ud83d\\ude00"))
    assert pair.contradiction == ""
    assert isinstance(pair.new, Lease)
    assert (pair.new.spec.holder_identity or "").startswith("😀")
    assert refused(b'{"a": "\\ud800') == (400, "the body is not JSON")


def test_a_wrong_type_is_named_whatever_stands_beside_it() -> None:
    review = to_bytes(make_review(put("request.name", 1)))
    for beside in (b"9" * 5000, b"1e999"):
        request = decode(review.replace(b'"leaseTransitions":5', b'"leaseTransitions":' + beside))
        assert (request.uid, request.contradiction) == (UID, "request.name has a type that no API server sends")


def test_a_wrong_type_in_a_lease_that_is_deleted_is_named() -> None:
    lease = make_lease(put("spec.leaseDurationSeconds", "15"))
    (error,) = decode(to_bytes(make_review(old=lease))).object_errors
    assert error.field == "oldObject.spec.leaseDurationSeconds"


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
