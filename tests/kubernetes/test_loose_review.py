"""A review whose uid is all that counts: under the kill switch whatever an API server sends is allowed."""

import json

import pytest

from tests.factories import NOW, UID, drop, make_lease, make_review, put, to_bytes
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.admission.rules.mode import Mode
from webhook.kubernetes.opened_review import ReviewError, read_uid
from webhook.kubernetes.review import decode
from webhook.server.reviewer import respond

REVIEW = to_bytes(make_review(new=make_lease(), old=make_lease()))
DEEP = b'{"f:a":' * 100_000 + b"{}" + b"}" * 100_000


@pytest.fixture(scope="module")
def off(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    file = tmp_path_factory.mktemp("policy") / "policy.yaml"
    file.write_text('apiVersion: lease-webhook/v1\nmode: "off"\n')
    policy = load(str(file))
    assert policy.mode is Mode.OFF
    return policy


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(REVIEW, id="a sound review"),
        pytest.param(REVIEW.replace(b'"managedFields":[', b'"managedFields":[%b,' % DEEP), id="one nested deeply"),
        pytest.param(REVIEW[:-1] + b',"x":[' + b"0," * 10_000_000 + b"0]}", id="one of ten million values"),
        pytest.param(REVIEW.replace(b'"shop"', b"5"), id="wrong types"),
        pytest.param(REVIEW.replace(b'"leaseTransitions":5', b'"leaseTransitions":1e999'), id="a number out of range"),
        pytest.param(REVIEW.replace(b"checkout-6d", b"\\ud800"), id="half a surrogate pair"),
        pytest.param(b" " + REVIEW, id="white space before it"),
        pytest.param(json.dumps(make_review(put("request.kind", 5)), indent=1).encode(), id="indented"),
        pytest.param(to_bytes(make_review(put("request.userInfo", 5))), id="no writer"),
    ],
)
def test_the_kill_switch_allows(body: bytes, off: Policy) -> None:
    reply = respond(body, off, NOW)
    assert reply.status == 200
    assert json.loads(reply.body)["response"]["uid"] == UID
    assert json.loads(reply.body)["response"]["allowed"] is True


def test_the_version_is_echoed(off: Policy) -> None:
    reply = respond(to_bytes(make_review(put("apiVersion", "admission.k8s.io/v1beta1"))), off, NOW)
    assert json.loads(reply.body)["apiVersion"] == "admission.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(b"", "the body is not JSON", id="nothing"),
        pytest.param(b"5", "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1", id="a number"),
        pytest.param(
            to_bytes(make_review(put("kind", "Review"))),
            "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1",
            id="another kind",
        ),
        pytest.param(to_bytes(make_review(drop("request"))), "the review has no request", id="no request"),
        pytest.param(to_bytes(make_review(drop("request.uid"))), "the request has no uid", id="no uid"),
        pytest.param(to_bytes(make_review(put("request.uid", 5))), "the request has no uid", id="uid a number"),
        pytest.param(
            b" " + REVIEW.replace(b"[", b"[" * 100_000, 1), "the body is nested too deeply", id="depth in another form"
        ),
    ],
)
def test_without_a_uid_there_is_no_answer(body: bytes, text: str) -> None:
    for read in (read_uid, decode):
        with pytest.raises(ReviewError) as caught:
            read(body)
        assert (caught.value.status, caught.value.text) == (400, text)


def test_a_uid_with_escapes_is_read_the_general_way() -> None:
    assert read_uid(to_bytes(make_review(put("request.uid", 'a"\n')))).uid == 'a"\n'


def test_a_kind_that_is_not_utf8_is_no_review() -> None:
    with pytest.raises(ReviewError, match="not an AdmissionReview"):
        read_uid(REVIEW.replace(b"AdmissionReview", b"\xff", 1))


def test_of_several_wrong_types_the_first_is_named() -> None:
    review = to_bytes(make_review(put("request.subResource", 5), put("request.operation", [])))
    assert decode(review).contradiction == "request.operation has a type that no API server sends"
