"""A stream of JSON is cut into its values wherever its pieces begin, and a broken value costs only itself."""

import json
from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.observations import json_values
from webhook.observations.json_values import Broken, Value, values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), JSON, max_size=4).filter(
    lambda one: "items" not in one
)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[place : place + size] for place in range(0, len(data), size))


def decoded(chunks: Iterable[bytes]) -> list[object]:
    return [json.loads(one.data) if isinstance(one, Value) else one for one in values(chunks)]


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


@given(st.binary(max_size=200) | st.text('{}[]",:a\n\\ 1', max_size=60).map(str.encode), st.integers(1, 30))
@settings(max_examples=150, deadline=None)
def test_any_bytes_end_and_give_json_or_an_error(data: bytes, size: int) -> None:
    for one in values(cut(data, size)):
        if isinstance(one, Value):
            msgspec.json.decode(one.data, type=msgspec.Raw)


def test_the_head_of_a_list_is_kept_beside_its_items() -> None:
    (one,) = values([b'{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","items":[{}]}'])
    assert isinstance(one, Value)
    assert one.head == b'{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","items":['


def test_a_byte_order_mark_is_skipped() -> None:
    assert decoded([b"\xef\xbb\xbf{}"]) == [{}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"a":1,,} {"b":2}', [Broken, {"b": 2}], id="a comma too many"),
        pytest.param('{"a":[}\n{"b":2}', [Broken, {"b": 2}], id="a bracket is missing"),
        pytest.param('{"a":"\n{"b":2}', [Broken, {"b": 2}], id="a quote is missing"),
        pytest.param('{"a":\\}{"b":2}', [Broken, {"b": 2}], id="noise with paired brackets"),
        pytest.param('[{"a":1,,},{"b":2}]', [Broken, {"b": 2}], id="a broken item"),
        pytest.param('[1,"]",{"b":2}]{"c":3}', [Broken, Broken, {"b": 2}, {"c": 3}], id="items that are no objects"),
        pytest.param('[{"a":1},', [{"a": 1}, Broken], id="a list that is cut off between items"),
        pytest.param('[{"a":1},{"b"', [{"a": 1}, Broken], id="a list that is cut off in an item"),
        pytest.param(
            '[{"a":1},{"b"\n{"c":3}', [{"a": 1}, Broken, {"c": 3}], id="a list that is cut off, and an object"
        ),
        pytest.param("[{}}\n{}", [{}, Broken, Broken, {}], id="a list that ends with the wrong bracket"),
        pytest.param("[1", [Broken, Broken], id="a number that is cut off"),
        pytest.param('{"items":[{}],"kind":[', [{}], id="a list whose end is cut off"),
        pytest.param("hello", [Broken], id="text"),
        pytest.param('{"a":"\\ud800"}', [Broken], id="a lone surrogate"),
        pytest.param("[" + '{"a":' * 3000 + "1" + "}" * 3000 + ',{"b":2}]', [Broken, {"b": 2}], id="nested too deeply"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_broken_text_costs_only_itself(text: str, expected: list[object], size: int) -> None:
    found = decoded(cut(text.encode(), size))
    assert [Broken if isinstance(one, Broken) else one for one in found] == expected


def test_a_value_larger_than_any_request_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "LARGEST", 5000)
    large = b'{"a":"' + b"x" * 20_000
    assert [type(one) for one in values(cut(large + b'"}\n{"b":2}', 100))] == [Broken, Value]
    assert [type(one) for one in values(cut(large + b'\n{"b":2}', 100))] == [Broken, Value]
    assert {type(one) for one in values(cut(b"[" + b"1" * 20_000, 100))} == {Broken}
    assert [type(one) for one in values(cut(b'{"items":[],"a":"' + b"x" * 20_000, 100))] == [Broken]


def test_brackets_without_an_end_are_not_counted_one_by_one() -> None:
    found = list(values([b"[" * 2_000_000, b"\n{}"]))
    assert isinstance(found[0], Broken)
    assert [one.data for one in found if isinstance(one, Value)] == [b"{}"]


def test_large_values_are_read_in_growing_steps() -> None:
    text = json.dumps({"a": "x" * 300_000}).encode()
    assert decoded(cut(text, 1000)) == [{"a": "x" * 300_000}]


def test_a_stream_of_nothing_but_beginnings_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "MOST_WASTED", 10_000)
    *_, last = values([b"{\n" * 5000])
    assert last == Broken("given up: too much of the input is broken")
