"""No body costs much more memory than its own size, whatever it is made of."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, UID, Document, changed, make_lease, make_review, put, to_bytes
from webhook.admission.policy.file import load
from webhook.kubernetes import review_size
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import MAX_REQUEST
from webhook.kubernetes.review import decode
from webhook.kubernetes.review_size import (
    MAX_JSON,
    MAX_STORED,
    MAX_STORED_ENTRIES,
    MAX_TOKENS,
    MAX_TOKENS_OF_ENTRIES,
    OPENING,
    is_more_than,
    may_be_a_review,
)
from webhook.kubernetes.utf8 import is_utf8
from webhook.server.reviewer import respond

SIZE: Final = 5 * 1024 * 1024
"""Bytes of each body: more than any form may have, and enough to show what grows."""

MAX_MEMORY: Final = 26 * SIZE
"""Memory that Python itself may take: the worst is an empty owner reference, three bytes that take 75."""

REVIEW = to_bytes(make_review())


def filled(place: str, start: bytes, item: bytes, end: bytes) -> bytes:
    """A review of SIZE bytes, nearly all of it at one place."""
    review = to_bytes(make_review(put(place, "@@"), old=make_lease(), new=make_lease()))
    return review.replace(b'"@@"', start + item * (SIZE // len(item)) + end)


def numbered(place: str, item: str) -> bytes:
    review = to_bytes(make_review(put(place, "@@"), old=make_lease(), new=make_lease()))
    many = ",".join(item % number for number in range(SIZE // (len(item) + 6)))
    return review.replace(b'"@@"', b"{%b}" % many.encode())


BODIES: Final[dict[str, Callable[[], bytes]]] = {
    "escapes without an end": lambda: OPENING + b'","request":{"uid":"' + b"\\n" * (SIZE // 2),
    "halves of pairs without an end": lambda: OPENING + b'","request":{"uid":"' + b"\\ud800" * (SIZE // 6),
    "escapes that are no review": lambda: b'{"kind":"' + b"\\n" * (SIZE // 2),
    "a wrong type and lists": lambda: filled("request.uid", b'5,"x":[', b"[],", b"0]"),
    "a wrong type and objects": lambda: filled("request.uid", b'5,"x":[', b'{"":{}},', b"0]"),
    "labels": lambda: numbered("request.object.metadata.labels", '"l%06d":""'),
    "extra of the writer": lambda: numbered("request.userInfo.extra", '"%06d":[]'),
    "preconditions": lambda: numbered("request.options.preconditions", '"%06d":""'),
    "finalizers": lambda: filled("request.object.metadata.finalizers", b"[", b'"a",', b'"a"]'),
    "a subresource": lambda: filled("request.subResource", '"\U0001f600'.encode(), b"a", b'"'),
    "owners": lambda: filled("request.object.metadata.ownerReferences", b"[", b"{},", b"{}]"),
    "digits before a number out of range": lambda: filled(
        "request.object.x", b'"', b"9" * 4299 + b"a", b'","spec":{"leaseTransitions":1e400}'
    ),
    "a holder of escapes": lambda: filled("request.object.spec.holderIdentity", b'"', b"\\u003c", b'"'),
    "a holder of rare characters": lambda: filled(
        "request.object.spec.holderIdentity", b'"', "\U0001f600".encode(), b'"'
    ),
    "a holder of letters and one rare character": lambda: filled(
        "request.object.spec.holderIdentity", '"\U0001f600'.encode(), b"a", b'"'
    ),
}


@pytest.mark.uncounted
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BODIES.items()])
def test_memory_is_bounded(body: Callable[[], bytes]) -> None:
    data, policy = body(), load("strict")
    tracemalloc.start()
    try:
        reply = respond(data, policy, NOW)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reply.status in {200, 400, 413}
    assert peak < MAX_MEMORY


def test_many_values_get_a_verdict() -> None:
    body = numbered("request.object.metadata.labels", '"%06d":""') + b" " * MAX_REQUEST
    assert decode(body).contradiction == ""
    many = filled("request.object.x", b"[", b"{},", b"{}]")
    assert decode(many).contradiction == "the review holds more than two stored objects can have"
    assert decode(many).uid == UID


@pytest.mark.parametrize("place", ["request.object", "request.oldObject"])
def test_a_large_review_has_no_more_entries_than_an_object_that_is_stored(place: str) -> None:
    for count, contradiction in (
        (MAX_STORED_ENTRIES, ""),
        (MAX_STORED_ENTRIES + 1, "managedFields hold more than a stored object can have"),
    ):
        review = make_review(old=make_lease(), new=make_lease())
        body = to_bytes(changed(review, put(f"{place}.metadata.managedFields", [{}] * count)))
        assert decode(body + b" " * MAX_REQUEST).contradiction == contradiction


@pytest.mark.parametrize(
    ("entry", "contradiction"),
    [
        pytest.param(
            lambda: {"fieldsV1": {f"f:{number}": {} for number in range(MAX_TOKENS_OF_ENTRIES // 3)}},
            "managedFields hold more than a stored object can have",
            id="a quarter of a million fields",
        ),
        pytest.param(lambda: {"manager": "{" * MAX_TOKENS_OF_ENTRIES}, "", id="as many braces in a text"),
    ],
)
def test_a_large_review_has_no_more_fields_of_entries_than_an_object_that_is_stored(
    entry: Callable[[], Document], contradiction: str
) -> None:
    review = make_review(put("request.object.metadata.managedFields", [entry()]), old=make_lease(), new=make_lease())
    assert decode(to_bytes(review) + b" " * MAX_REQUEST).contradiction == contradiction


def test_managed_fields_that_are_not_a_list_have_no_entries() -> None:
    review = make_review(put("request.object.metadata.managedFields", {}), old=make_lease(), new=make_lease())
    assert decode(to_bytes(review) + b" " * MAX_REQUEST).contradiction == ""


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        pytest.param(b"0", True, id="commas"),
        pytest.param(b'""', False, id="strings and commas"),
        pytest.param(b'","', False, id="a comma inside each string"),
        pytest.param(b'"\\\\"', False, id="a backslash at each string's end"),
    ],
)
def test_tokens_are_strings_and_commas(value: bytes, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_size, "MAX_TOKENS", 3000)
    body = b"[" + b",".join([value] * 2000) + b"]"
    assert is_more_than(body, 1) is not fits


@pytest.mark.parametrize(
    "inside", [b",", b'\\"', b",\\u0022,", b"\\\\"], ids=["commas", "quotes", "both", "backslashes"]
)
def test_what_stands_in_a_string_does_not_count(inside: bytes) -> None:
    body = b'["' + inside * (SIZE // len(inside)) + b'"]'
    assert not is_more_than(body, 2)


def test_half_a_string_ends_the_count() -> None:
    assert not is_more_than(b'"a",' * 100 + b'"' + b"," * SIZE, 1)


@pytest.mark.parametrize(
    ("size", "beginning", "may"),
    [
        pytest.param(MAX_REQUEST, b" ", True, id="any form up to the size of a request"),
        pytest.param(MAX_REQUEST + 1, b" ", False, id="white space before a larger one"),
        pytest.param(MAX_REQUEST + 1, b'{"kind":"Adm', True, id="the beginning of an API server's form"),
        pytest.param(MAX_REQUEST + 1, OPENING + b'beta1","request":', True, id="v1beta1"),
        pytest.param(MAX_REQUEST + 1, b'{"apiVersion":"admission.k8s.io/v1"', False, id="keys in another order"),
        pytest.param(MAX_REQUEST + 1, b"", True, id="nothing yet"),
    ],
)
def test_only_an_api_servers_form_may_be_large(size: int, beginning: bytes, may: bool) -> None:
    assert may_be_a_review(size, beginning) is may


def test_a_large_review_of_another_form_is_refused() -> None:
    with pytest.raises(ReviewError) as caught:
        decode(b" " * MAX_REQUEST + REVIEW)
    assert caught.value.status == 413
    assert decode(REVIEW + b" " * MAX_REQUEST).uid == UID
    assert decode(json.dumps(make_review(), indent=2).encode()).uid == UID


@given(st.binary(max_size=50))
def test_utf8_as_python_reads_it(tail: bytes) -> None:
    body = "é".encode() * 600_000 + tail
    try:
        body.decode()
    except UnicodeDecodeError:
        assert not is_utf8(body)
    else:
        assert is_utf8(body)


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        pytest.param(b"\\u003c" * MAX_STORED, 1, id="every byte in etcd is an escape here"),
        pytest.param(b"\\u003c" * (MAX_STORED + 1), 2, id="one more"),
        pytest.param(b"\\\\" * MAX_STORED, 1, id="every byte in etcd is a backslash"),
        pytest.param(b'\\\\\\"' * (MAX_STORED // 2 + 1), 2, id="a backslash and a quote, and one pair more"),
        pytest.param(b'{"apiVersion":"a","kind":"b","name":"c","uid":"d"},' * (MAX_STORED // 14), 1, id="owners"),
        pytest.param(b" " * MAX_JSON, 1, id="as long as one object"),
        pytest.param(b" " * (MAX_JSON + 1), 2, id="longer"),
    ],
)
def test_a_stored_object_has_a_largest_json(text: bytes, objects: int) -> None:
    assert [is_more_than(text, count) for count in (1, 2)] == [objects > 1, False]


@pytest.mark.parametrize("place", ["object", "oldObject", "options"])
def test_no_part_of_a_large_review_is_larger_than_a_stored_object(place: str) -> None:
    body = to_bytes(make_review(put(f"request.{place}.x", "@@"), old=make_lease(), new=make_lease()))
    assert decode(body.replace(b"@@", b"a" * (MAX_JSON - 5000))).contradiction == ""
    contradiction = decode(body.replace(b"@@", b"a" * MAX_JSON)).contradiction
    assert contradiction == "the review holds more than two stored objects can have"


def test_a_tokens_limit_that_stored_objects_do_not_reach() -> None:
    finalizers = 1_500_000 // 3
    assert 2 * finalizers <= MAX_TOKENS
