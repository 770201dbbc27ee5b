"""A plain "allowed" is put together from a remembered frame; its bytes are those of the whole document encoded."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from webhook.api.request import AdmissionRequest
from webhook.verdict.encode import encode
from webhook.verdict.model import Verdict

TEXTS = st.one_of(st.sampled_from(['"uid":""', '"', "uid", "", "\\u0022", "é\n\ud7ff"]), st.text(max_size=20))
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=3, unique_by=lambda pair: pair[0]).map(tuple)
VERSIONS = st.sampled_from(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])


@given(uid=TEXTS, annotations=PAIRS, api_version=VERSIONS)
def test_a_plain_answer_is_the_document_encoded(
    uid: str, annotations: tuple[tuple[str, str], ...], api_version: str
) -> None:
    request = AdmissionRequest(uid, api_version=api_version)
    answer = encode(Verdict(uid, allowed=True, audit_annotations=annotations), request)
    response = {"uid": uid, "allowed": True} | ({"auditAnnotations": dict(annotations)} if annotations else {})
    document = {"kind": "AdmissionReview", "apiVersion": api_version, "response": response}
    assert answer == msgspec.json.encode(document)
    assert json.loads(answer) == document


def test_a_plain_answer_as_it_stands_on_the_wire() -> None:
    verdict = Verdict("u-1", allowed=True, audit_annotations=(("event", "renewal"), ("policy", "standard 0123abcd")))
    assert encode(verdict, AdmissionRequest("u-1")) == (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":true,'
        b'"auditAnnotations":{"event":"renewal","policy":"standard 0123abcd"}}}'
    )
