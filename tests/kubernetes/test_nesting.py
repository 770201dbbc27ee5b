"""Depth never decides: whatever nests too deeply inside managedFields is cut before it is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, Document, changed, make_entry, make_lease, make_review, put, to_bytes
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.kubernetes import managed_fields
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import AdmissionRequest
from webhook.kubernetes.review import decode
from webhook.server.reviewer import respond

STRICT: Policy = load("strict")


def deep_entry(levels: int, around: bytes = b"") -> bytes:
    """An entry whose fieldsV1 makes the list nest this deeply."""
    inner = b'{"f:a":' * (levels - 3) + b"{" + around + b"}" + b"}" * (levels - 3)
    return (
        b'{"manager":"x","operation":"Update","apiVersion":"v1","time":"2020-01-01T00:00:00Z","fieldsV1":'
        + inner
        + b"}"
    )


def with_entry(review: Document, entry: bytes, where: str = "object") -> bytes:
    """The bytes of a review with one more entry at the beginning of a list."""
    document = changed(review, lambda it: it["request"][where]["metadata"]["managedFields"].insert(0, "@@"))
    return to_bytes(document).replace(b'"@@"', entry, 1)


def steal() -> Document:
    old = make_lease()
    return make_review(old=old, new=changed(old, put("spec.holderIdentity", "rival")))


def label_owned(lease: Document) -> None:
    fields: Document = {"f:metadata": {"f:labels": {"f:a": {}}}}
    lease["metadata"]["managedFields"].append(make_entry(manager="labeler") | {"fieldsV1": fields})


def verdict(body: bytes) -> tuple[bool, set[str]]:
    reply = respond(body, STRICT, NOW + 4_000_000)
    assert reply.verdict, reply.body
    return reply.verdict.allowed, {finding.rule for finding in reply.verdict.findings}


@pytest.mark.parametrize("levels", [34, 400, 900, 985, 1200, 5000, 9990, 10_000])
def test_the_same_verdict_at_any_depth(levels: int) -> None:
    assert verdict(with_entry(steal(), deep_entry(levels))) == verdict(with_entry(steal(), deep_entry(33)))
    stored = verdict(with_entry(steal(), deep_entry(levels), "oldObject"))
    assert stored == verdict(with_entry(steal(), deep_entry(33), "oldObject"))


@pytest.mark.parametrize("where", ["object", "oldObject"])
def test_no_depth_near_the_limit_of_python_is_without_a_verdict(where: str) -> None:
    review = changed(steal(), put("request.object.spec.unknown", 1))
    for levels in range(860, 1000):
        assert verdict(with_entry(review, deep_entry(levels), where)), levels


def test_a_deep_entry_is_tampering_if_this_write_brings_it_and_ignored_if_it_was_stored() -> None:
    label = make_review(old=make_lease(), new=make_lease(put("metadata.labels.a", "b")))
    allowed, rules = verdict(with_entry(label, deep_entry(9990)))
    assert not allowed
    assert rules == {"renewal-stamp-tampered"}
    marked = make_lease(lambda lease: lease["metadata"]["managedFields"].insert(0, "@@"))
    stored = make_review(old=marked, new=changed(marked, put("metadata.labels.a", "b"), label_owned))
    assert verdict(to_bytes(stored).replace(b'"@@"', deep_entry(9990))) == (True, set())


@pytest.mark.parametrize("place", ["request.object.spec", "request.object.metadata.labels", "request.x"])
def test_a_body_that_nests_too_deeply_elsewhere_is_malformed_and_names_its_user(place: str) -> None:
    body = to_bytes(changed(steal(), put(place, "@@"))).replace(b'"@@"', b"[" * 20_000 + b"]" * 20_000)
    with pytest.raises(ReviewError, match="nested too deeply") as caught:
        decode(body)
    assert caught.value.status == 400
    assert caught.value.user == "system:serviceaccount:shop:checkout"
    nameless = body.replace(b'"userInfo"', b'"someInfo"')
    with pytest.raises(ReviewError) as caught:
        decode(nameless)
    assert caught.value.user == ""


def test_a_review_of_wrong_types_may_nest_deeply_as_well() -> None:
    body = with_entry(changed(steal(), put("request.name", 5)), deep_entry(5000))
    assert "request.name has a type" in decode(body).contradiction


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * 60_000, id="lists without an end"),
        pytest.param(
            b"[" * (managed_fields.MAX_REVIEW_LEVELS + 1) + b"]" * (managed_fields.MAX_REVIEW_LEVELS + 1),
            id="more levels than Go reads",
        ),
        pytest.param(b"[[]],", id="more brackets than two objects have"),
    ],
)
def test_what_no_api_server_sends_is_not_cut(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_fields, "MAX_REVIEW_TOKENS", 30_000)
    filler = (text * (60_000 // len(text) + 1))[:60_000]
    body = with_entry(steal(), deep_entry(2000)).replace(b'"request":{', b'"request":{"x":[%b0],' % filler)
    assert managed_fields.truncate_review(body) == body
    with pytest.raises(ReviewError, match="nested too deeply"):
        decode(body)


# ---- the cut --------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('ab"\\{}[]:, \n\x00\u00e9', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\{}[]', max_size=3), inner, max_size=3),
    max_leaves=8,
)


def nested(levels: int, document: object) -> object:
    for level in range(levels):
        document = [document] if level % 2 else {'f:"': document, "z": 1}
    return document


def cut(document: object, levels: int) -> object:
    """The document as it is after the cut, for a list that is on level 1."""
    if isinstance(document, dict | list) and levels == 0:
        return {}
    if isinstance(document, dict):
        return {key: cut(value, levels - 1) for key, value in document.items()}
    return [cut(item, levels - 1) for item in document] if isinstance(document, list) else document


@given(document=JSON, levels=st.integers(0, 40), separators=st.sampled_from([(",", ":"), (", ", " : ")]))
def test_a_list_is_cut_at_the_deepest_level_and_otherwise_kept(
    document: object, levels: int, separators: tuple[str, str]
) -> None:
    text = json.dumps([nested(levels, document)], separators=separators).encode()
    after = managed_fields.truncate_list(text)
    assert json.loads(after) == cut(json.loads(text), managed_fields.MAX_LEVELS)


@given(document=JSON, levels=st.integers(0, 40))
def test_only_the_two_lists_of_a_review_are_cut(document: object, levels: int) -> None:
    deep = nested(levels, document)
    metadata = {"labels": deep, "managedFields": [deep], "x": [{"managedFields": [deep]}]}
    body = {
        "metadata": metadata,
        "request": {"object": {"metadata": metadata, "spec": deep}, "old": {"metadata": metadata}},
    }
    after = json.loads(managed_fields.truncate_review(json.dumps(body).encode()))
    expected = json.loads(json.dumps(body))
    expected["request"]["object"]["metadata"]["managedFields"] = cut([deep], managed_fields.MAX_LEVELS)
    assert after == expected


@given(st.binary(max_size=60) | st.text('"\\{}[]a', max_size=60).map(str.encode))
def test_anything_else_stays_or_stays_broken(text: bytes) -> None:
    assert managed_fields.truncate_list(text) == text or text.count(b"{") + text.count(b"[") > managed_fields.MAX_LEVELS


def test_a_text_without_an_end_is_looked_at_once() -> None:
    """A string that does not end, or many that could begin at each quote, must not be searched from each position."""
    for text in (b'"' + b'\\"' * 500_000, b'"' + b"a" * 1_000_000, b'\\"' * 500_000, b"{" * 200_000):
        assert len(managed_fields.truncate_list(text)) <= len(text)


def test_a_body_that_was_not_cut_is_cut_before_its_objects_are_measured() -> None:
    """The decoder counts the levels of the stack too, so what could be decoded once may be too deep later."""
    body = with_entry(steal(), deep_entry(9990))
    new, old = AdmissionRequest("uid", body=body).sizes
    assert (new, old) == decode(body).sizes
    assert 0 < old < new < 10_000
