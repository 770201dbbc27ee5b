"""A stream of JSON is cut into its values wherever its pieces begin, and a broken value costs only itself."""

import json
from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.factories import make_lease, make_review, to_bytes
from webhook.analysis.inputs import documents
from webhook.analysis.inputs.documents import Document
from webhook.analysis.inputs.items import Place, Unreadable
from webhook.kubernetes.review import decode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), JSON, max_size=4).filter(
    lambda value: value.keys().isdisjoint({"items", "kind", "apiVersion", "type", "object", "renewals"})
)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[place : place + size] for place in range(0, len(data), size))


def decoded(chunks: Iterable[bytes]) -> list[object]:
    parts = documents.split_documents("in", chunks, is_json=True)
    return [json.loads(one.text) if isinstance(one, Document) else one for one in parts]


@given(
    st.lists(OBJECTS, max_size=5),
    st.sampled_from([None, 4]),
    st.sampled_from(["", " ", "\n", "\r\n\x1e"]),
    st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_documents_come_back_whatever_pieces_they_come_in(
    documents: list[object], indent: int | None, between: str, size: int
) -> None:
    text = between.join(json.dumps(one, indent=indent, ensure_ascii=False) for one in documents)
    assert decoded(cut(text.encode(), size)) == documents


@given(st.lists(OBJECTS, max_size=5), st.sampled_from([None, 4]), st.integers(1, 40), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_items_of_a_list_come_instead_of_it(
    items: list[object], indent: int | None, size: int, kind_first: bool
) -> None:
    head = {"kind": "LeaseList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}}
    whole = {**head, "items": items} if kind_first else {"apiVersion": "v1", "items": items, **head}
    text = json.dumps(whole, indent=indent) + json.dumps({"after": 1})
    assert decoded(cut(text.encode(), size)) == [*items, {"after": 1}]


@given(st.lists(OBJECTS, max_size=3), st.integers(1, 9))
def test_an_array_is_a_list(items: list[object], size: int) -> None:
    assert decoded(cut(json.dumps(items).encode(), size)) == items


@given(
    st.binary(max_size=200) | st.text('{}[]",:a\n\\ 1-#&*', max_size=60).map(str.encode),
    st.integers(1, 30),
    st.booleans(),
)
@example(b"\t10.", 1, True)
@settings(max_examples=300, deadline=None)
def test_any_bytes_end_and_give_the_same_in_any_pieces(data: bytes, size: int, is_json: bool) -> None:
    parts = list(documents.split_documents("in", cut(data, size), is_json=is_json))
    assert [type(one) for one in parts] == [
        type(one) for one in documents.split_documents("in", [data], is_json=is_json)
    ]
    for part in parts:
        if isinstance(part, Document):
            msgspec.json.decode(part.text, type=msgspec.Raw)


def test_the_items_of_a_list_without_a_kind_have_that_of_the_list() -> None:
    (document,) = documents.split_documents(
        "in", [b'{"items":[{"a":1}],"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1"}']
    )
    assert isinstance(document, Document)
    assert document.value == {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "a": 1}


def test_a_byte_order_mark_is_skipped() -> None:
    assert decoded([b"\xef\xbb\xbf{}"]) == [{}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"a":1,,}\n{"b":2}', [Unreadable, {"b": 2}], id="a comma too many"),
        pytest.param('{"a":[}\n{"b":2}', [Unreadable, {"b": 2}], id="a bracket is missing"),
        pytest.param('{"a":"\n{"b":2}', [Unreadable, {"b": 2}], id="a quote is missing"),
        pytest.param('{"a":1,,} {"b":2}\n{"c":3}', [Unreadable, {"c": 3}], id="up to the next line"),
        pytest.param('[1,{"b":2}]{"c":3}', [Unreadable, {"b": 2}, {"c": 3}], id="an item that is not an object"),
        pytest.param('[{"a":1},', [Unreadable], id="a list that is cut off"),
        pytest.param('{"items":[\n{"a":1},\n{"b":2},\n', [Unreadable, {"a": 1}, {"b": 2}], id="cut lines"),
        pytest.param('[{"a":1},{"b"\n{"c":3}', [Unreadable, {"c": 3}], id="a list that is cut off, and an object"),
        pytest.param("hello", [Unreadable], id="text"),
        pytest.param("hello\nyou\n{}", [Unreadable, {}], id="text before an object"),
        pytest.param('{"a":"\\ud800"}', [{"a": "\ufffd"}], id="a lone surrogate, read as an API server reads it"),
        pytest.param('[{"a":"\\ud800"},{"b":2}]', [{"a": "\ufffd"}, {"b": 2}], id="a lone surrogate in a list"),
        pytest.param('{"kind":7}{"b":2}', [Unreadable, {"b": 2}], id="a kind that is not a text"),
        pytest.param(
            "[" + '{"a":' * 3000 + "1" + "}" * 3000 + ',{"b":2}]\n{}', [Unreadable, {}], id="nested too deeply"
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_broken_text_costs_only_itself(text: str, expected: list[object], size: int) -> None:
    values = decoded(cut(text.encode(), size))
    assert [Unreadable if isinstance(one, Unreadable) else one for one in values] == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": 1,\n "b": ]}', "line 2, column 7: not JSON: invalid character"),
        ('\n\n{"a": 1 "b": 2}', "line 3, column 9: not JSON: expected ',' or '}'"),
        ('{"a": [1', "line 1: not JSON: cut off, or a bracket is missing"),
    ],
)
def test_an_error_says_where_it_is(text: str, error: str) -> None:
    (document,) = documents.split_documents("in", [text.encode()])
    assert isinstance(document, Unreadable)
    assert document.error == error


def test_yaml_with_braces_is_no_broken_json() -> None:
    (document,) = documents.split_documents("in", [b'{"kind": Lease, # of the shop\n "a": [1,],}'])
    assert isinstance(document, Document)
    assert document.value == {"kind": "Lease", "a": [1]}


def test_a_key_twice_is_refused_where_the_value_is_wanted() -> None:
    (document,) = documents.split_documents("in", [b'{"kind": "Lease", "a": {"b": 1, "b": 2}}'])
    assert isinstance(document, Document)
    with pytest.raises(ValueError, match="key 'b' appears twice"):
        _ = document.value


def test_a_line_is_given_before_the_next_is_read() -> None:
    pieces = iter([b'{"type":"ADDED"}\n{"ty', b'pe":"MODIFIED"}\n'])
    parts = documents.split_documents("in", pieces)
    next(parts)
    assert next(pieces) == b'pe":"MODIFIED"}\n'


def test_a_value_larger_than_any_request_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT", 5000)
    large = b'{"a":"' + b"x" * 20_000
    assert [type(one) for one in decoded(cut(large + b'"}\n{"b":2}', 100))] == [Unreadable, dict]
    assert [type(one) for one in decoded(cut(large + b'\n{"b":2}', 100))] == [Unreadable, dict]
    assert [type(one) for one in decoded(cut(b"[" + large + b'"},{"b":2}]', 100))] == [Unreadable, dict]


def test_a_list_larger_than_the_bound_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_LIST", 5000)
    assert [type(one) for one in decoded(cut(b'{"items":[' + b"{}," * 5000 + b"{}]}", 100))] == [Unreadable]


def test_brackets_without_an_end_are_not_counted_one_by_one() -> None:
    values = decoded([b"[" * 2_000_000, b"\n{}"])
    assert isinstance(values[0], Unreadable)
    assert values[1:] == [{}]


def test_large_values_are_read_in_growing_steps() -> None:
    text = json.dumps({"a": "x" * 300_000}).encode()
    assert decoded(cut(text, 1000)) == [{"a": "x" * 300_000}]


def test_a_stream_of_nothing_but_beginnings_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MAX_WASTED", 10_000)
    *_, last = decoded([b'{"a":[\n' * 500])
    assert isinstance(last, Unreadable)
    assert last.error.endswith("the rest is not read")


def test_what_is_read_far_beyond_a_broken_value_counts_as_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MAX_WASTED", 10_000)
    beginnings = b'{"a":[\n' * 50 + b'"' + b"x" * 2000 + b'" @\n' + b"{}" * 100
    last = decoded([beginnings])[-1]
    assert isinstance(last, Unreadable)
    assert last.error.endswith("too much is broken; the rest is not read")
    few = b'{"a":1,,}\n' * 5000
    assert decoded([few, b"{}"])[-1] == {}


def test_values_that_nest_too_deeply_and_do_not_end_count_as_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MAX_WASTED", 100_000)
    last = decoded([b'{"a":[\n' * 3000 + b"@" * 100 + b"\n{}" * 100])[-1]
    assert isinstance(last, Unreadable)
    assert last.error.endswith("too much is broken; the rest is not read")


DEEP = b'{"a":' * 5000 + b'"]\\"}"' + b"}" * 5000


@pytest.mark.parametrize("size", [7, 1000, 1_000_000])
@pytest.mark.parametrize("between", [b"", b"\n"], ids=["one line", "lines"])
def test_an_item_that_nests_too_deeply_costs_only_itself(size: int, between: bytes) -> None:
    items = between + (b"," + between).join([b'{"a":1}', DEEP, b'{"b":[2]}'])
    text = b'{"before":1}\n{"kind":"LeaseList","apiVersion":"v1","items":[' + items + b']}\n{"after":1}'
    found = list(documents.split_documents("in", cut(text, size)))
    assert [one.error if isinstance(one, Unreadable) else one.text.strip() for one in found] == [
        b'{"before":1}',
        b'{"a":1}',
        "nested too deeply",
        b'{"b":[2]}',
        b'{"after":1}',
    ]
    assert isinstance(found[2], Unreadable)
    assert found[2].place == Place("in", 3)
    assert found[2].line == (4 if between else 2)
    assert isinstance(found[3], Document)
    assert (found[3].kind, found[3].source.find_line()) == ("Lease", 5 if between else 2)


def test_brackets_of_a_value_that_nests_too_deeply_are_counted_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MAX_BRACKETS", 5000)
    values = decoded([DEEP, b'\n{"b":2}'])
    assert isinstance(values[0], Unreadable)
    assert values[1:] == [{"b": 2}]


@pytest.mark.parametrize("is_json", [True, False], ids=["JSON lines", "any form"])
@pytest.mark.parametrize("size", [100, 1_000_000])
def test_a_captured_review_of_any_depth_is_kept_as_it_is(size: int, is_json: bool) -> None:
    plain = to_bytes(make_review(old=make_lease(), new=make_lease())).strip()
    deep = plain.replace(b'"managedFields":[', b'"managedFields":[' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b",", 1)
    pieces = documents.split_documents("in", cut(plain + b"\n" + deep + b"\n" + plain, size), is_json=is_json)
    reviews = [one.text.strip() for one in pieces if isinstance(one, Document) and one.kind == "AdmissionReview"]
    assert reviews == [plain, deep, plain]
    assert decode(reviews[1]).uid == decode(plain).uid


def test_a_value_that_no_api_server_accepts_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="nested too deeply"):
        documents.encode(deep)
    monkeypatch.setattr(documents, "MAX_DOCUMENT", 10)
    with pytest.raises(ValueError, match="more than 20 MiB as JSON"):
        documents.encode({"a": "x" * 20})


def test_a_number_goes_on_in_the_next_piece() -> None:
    (document,) = documents.split_documents("in", [b"1234", b"5"], is_json=True)
    assert isinstance(document, Unreadable)
    assert document.error == "not a Kubernetes object"


def test_yaml_that_is_too_large_as_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT", 1000)
    aliases = "kind: Lease\napiVersion: coordination.k8s.io/v1\na: &a " + "x" * 400 + "\nb: [*a, *a, *a]\n"
    (document,) = documents.split_documents("in", [aliases.encode()])
    assert isinstance(document, Unreadable)
    assert document.error == "more than 20 MiB as JSON"


def test_blanks_without_a_line_break_are_not_kept() -> None:
    (document,) = documents.split_documents("in", cut(b" " * 5000 + b'{"a":1}', 100))
    assert isinstance(document, Document)


def test_a_value_that_nests_more_deeply_than_it_can_be_read_is_named() -> None:
    (document,) = documents.split_documents("in", [b'{"a":' + b"[" * 990 + b"]" * 990 + b"}"])
    assert isinstance(document, Document | Unreadable)
    assert documents.describe_problem(RecursionError()) == "nested too deeply"


def test_lines_of_an_audit_log_that_are_no_events_cost_only_themselves() -> None:
    event = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","objectRef":{"resource":"leases"}}\n'
    lines = [event, b"\n", b'{"kind":"Lease","items":"leases"}\n', b'{"leases":,}\n', b"pods\n", event]
    *pieces, last = documents.split_audit_log("in", lines, lambda line: b"leases" in line)
    assert [one.kind if isinstance(one, Document) else one for one in pieces] == [
        "Event",
        "Lease",
        Unreadable(Place("in", 4), "not JSON: JSON is malformed: invalid character (byte 10)"),
        "Event",
    ]
    assert last == documents.LastLine(event)


def test_bytes_that_are_no_text_are_named() -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        b"\xff".decode()
    assert documents.describe_problem(caught.value) == "not UTF-8"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_column_of_what_is_broken_counts_from_the_start_of_its_line(size: int) -> None:
    pieces = [*documents.split_documents("in", cut(b'{"a": 1}\n{"b": 2} truu\n', size), is_json=True)]
    assert isinstance(pieces[-1], Unreadable)
    assert pieces[-1].error == "line 2, column 11: not JSON: invalid character"
