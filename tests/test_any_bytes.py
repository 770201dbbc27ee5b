"""Whatever comes in, a verdict or a 4xx goes out: never an exception, the uid echoed, equal input with equal bytes."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.acceptance import accept
from tests.factories import make_candidate, make_lease, make_review, put, to_bytes
from tests.fuzz.reviews import POLICIES, assert_answered
from tests.recordings import recordings
from tests.review_rows import WHEN
from webhook.admission.policy.model import Policy
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import AdmissionRequest
from webhook.kubernetes.review import _decode_parts, decode
from webhook.server.reviewer import respond

BODIES = [one.body for one in recordings() if len(one.body) < 20_000]
FACES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        2**31,
        2**63,
        2**64,
        10**30,
        -(10**30),
        1e300,
        "",
        "x",
        "2025-11-20T12:00:00.000000Z",
        "10000-01-01T00:00:00.000000Z",
        [],
        {},
    ]
)
JSON = st.recursive(FACES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    assert_answered(body)


@given(JSON)
def test_any_json(document: object) -> None:
    assert_answered(json.dumps(document).encode())


@given(st.data())
@settings(max_examples=150)
def test_any_byte_of_a_recording_changed(data: st.DataObject) -> None:
    body = bytearray(data.draw(st.sampled_from(BODIES)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert_answered(bytes(body))


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value in a document."""
    inner: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


REVIEWS = [
    make_review(new=make_lease()),
    make_review(new=make_lease(), old=make_lease()),
    make_review(old=make_lease()),
    make_review(new=make_candidate(), old=make_candidate()),
]


@st.composite
def with_a_value_replaced(draw: st.DrawFn) -> bytes:
    """A review with any value of it removed or replaced."""
    document = json.loads(to_bytes(draw(st.sampled_from(REVIEWS))))
    path = draw(st.sampled_from([place for place in places(document) if place]))
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    if draw(st.booleans()):
        parent[path[-1]] = draw(JSON)
    else:
        del parent[path[-1]]
    return to_bytes(document)


@given(with_a_value_replaced())
@settings(max_examples=150)
def test_any_value_of_a_review_replaced(body: bytes) -> None:
    assert_answered(body)


def outcome(read: Callable[[bytes], AdmissionRequest], body: bytes) -> AdmissionRequest | tuple[int, str]:
    try:
        return read(body)
    except ReviewError as error:
        return error.status, error.text


@given(with_a_value_replaced())
@settings(max_examples=150)
def test_a_review_reads_the_same_at_once_and_part_by_part(body: bytes) -> None:
    assert outcome(_decode_parts, body) == outcome(decode, body)


@pytest.mark.parametrize("body", BODIES[::7])
def test_a_recorded_review_reads_the_same_at_once_and_part_by_part(body: bytes) -> None:
    assert _decode_parts(body) == decode(body)


HIDDEN = ["\x00", "\x1f", "\n", "\x7f", "\u202e", "\u2028", "\ufeff", "\ud800", "\U000e0101", '"', "x" * 5000]
"""Names and values that may not reach a terminal as they are."""


@given(st.sampled_from(REVIEWS), st.data())
@settings(max_examples=150)
def test_any_name_and_any_text_replaced_by_one_with_hidden_characters(
    review: dict[str, Any], data: st.DataObject
) -> None:
    document = json.loads(to_bytes(review))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from([place for place in places(document["request"]) if place]))
        parent = document["request"]
        for step in path[:-1]:
            parent = parent[step]
        character = data.draw(st.sampled_from(HIDDEN))
        if isinstance(parent, dict) and data.draw(st.booleans()):
            parent[data.draw(st.sampled_from(["", "f:"])) + character] = parent.pop(path[-1])
        else:
            parent[path[-1]] = data.draw(
                st.sampled_from([character, [character], {character: {}}, {f"f:{character}": {"f:x": {}}}])
            )
    assert_answered(json.dumps(document).encode())


@pytest.mark.parametrize("text", ["Le\u202e\u2028ase\x9b", "A" * 1_000_000, "\U000e0101" * 5000])
@pytest.mark.parametrize(
    "place", ["kind.kind", "kind.group", "resource.resource", "resource.group", "name", "namespace"]
)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.preset)
def test_any_name_in_a_request_is_answered_with_plain_and_short_text(text: str, place: str, policy: Policy) -> None:
    for spec in (put("spec.leaseDurationSeconds", -1), put("spec.holderIdentity", text)):
        review = make_review(put(f"request.{place}", text), new=make_lease(spec))
        reply = respond(to_bytes(review), policy, WHEN)
        assert reply.status == 200
        accept(reply.body, review["request"]["uid"])


@given(st.text(min_size=1, max_size=256))
def test_any_uid_is_echoed(uid: str) -> None:
    review = make_review()
    review["request"]["uid"] = uid
    body = json.dumps(review).encode()
    accept(respond(body, POLICIES[1], WHEN).body, uid)
