"""YAML becomes the JSON that kubectl would send."""

import tracemalloc
from typing import Any

import pytest
import yaml

from tests.inputs.loaders import LOADERS
from webhook.analysis.inputs import documents
from webhook.analysis.inputs.documents import Document
from webhook.analysis.inputs.items import Place, Unreadable
from webhook.text import yaml_reader
from webhook.text.yaml_reader import YamlError, read


@pytest.fixture(autouse=True, params=LOADERS)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers, whichever the machine has."""
    monkeypatch.setattr(yaml_reader, "LOADER", request.param)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("2026-01-31T12:00:00.000000Z", "2026-01-31T12:00:00.000000Z", id="a time stays text"),
        pytest.param("2026-01-31", "2026-01-31", id="a day stays text"),
        pytest.param("12:30:45", "12:30:45", id="base 60 does not exist"),
        pytest.param("yes", True, id="yes"),
        pytest.param("Off", False, id="Off"),
        pytest.param("y", True, id="y"),
        pytest.param("yEs", "yEs", id="yEs is text"),
        pytest.param("'yes'", "yes", id="quoted yes"),
        pytest.param("15", 15, id="an integer"),
        pytest.param("-1_000", -1000, id="underscores"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("017", 15, id="octal as in YAML 1.1"),
        pytest.param("0o17", 15, id="octal as in YAML 1.2"),
        pytest.param("0b101", 5, id="binary"),
        pytest.param("08", 8, id="eight with a zero is a float, and whole"),
        pytest.param("15.0", 15, id="a whole float is an integer"),
        pytest.param("1e3", 1000, id="an exponent"),
        pytest.param("1.5", 1.5, id="a float"),
        pytest.param("0X1F", 31, id="hexadecimal, X"),
        pytest.param("-_1", -1, id="an underscore after a sign"),
        pytest.param("._5", "._5", id="an underscore after a point"),
        pytest.param("0o", "0o", id="a prefix alone is text"),
        pytest.param("0o8", "0o8", id="no octal digit"),
        pytest.param("18446744073709551615", 2**64 - 1, id="the largest integer"),
        pytest.param("99999999999999999999", 10**20, id="a larger one is a float"),
        pytest.param("0x1FFFFFFFFFFFFFFFFFF", "0x1FFFFFFFFFFFFFFFFFF", id="a larger one, hexadecimal, is text"),
        pytest.param("1e311", "1e311", id="what no float can be is text"),
        pytest.param("1e21", 1e21, id="a whole float of 22 digits"),
        pytest.param("~", None, id="a tilde"),
        pytest.param("[]", [], id="nothing"),
        pytest.param("{on: 1, 2: x}", {"true": 1, "2": "x"}, id="keys are text"),
        pytest.param("{<<: {a: 1, b: 1}, b: 2}", {"a": 1, "b": 2}, id="a merge key"),
        pytest.param("[&a x, *a]", ["x", "x"], id="an alias"),
    ],
)
def test_a_value(text: str, value: object) -> None:
    parts = read(text)
    assert (parts, type(parts)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("a: 1\na: 2", 'line 2: key "a" appears twice', id="a key twice"),
        pytest.param(".nan", "line 1: JSON has no .nan", id="not a number"),
        pytest.param("-.inf", "line 1: JSON has no -.inf", id="infinity"),
        pytest.param("? [a]\n: 1", "line 1: a key must be a string", id="a list as a key"),
        pytest.param("a: b: c", "line 1, column 5: mapping values are not allowed", id="broken"),
        pytest.param("!!binary aGk=", "is not allowed", id="bytes"),
        pytest.param("9" * 5000, "line 1: a number of more than 4300 characters", id="a number of many digits"),
        pytest.param("\x00", "control characters", id="a control character"),
    ],
)
def test_what_is_refused(text: str, error: str) -> None:
    with pytest.raises(YamlError) as refused:
        read(text)
    assert error in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: x/v1\nitems:\n- {a: 1}\nkind: LeaseList\n",
        "kind: 'LeaseList'\nitems: [{a: 1}]\napiVersion: x/v1\n",
        "{kind: LeaseList, items: [{a: 1}], apiVersion: x/v1}",
        "apiVersion: x/v1\nitems: &all [{a: 1}]\nkind: LeaseList\n",
        "&all {\nkind: LeaseList\n, items: [{a: 1}], apiVersion: x/v1}",
    ],
    ids=["sorted", "kind first", "in braces", "items with an anchor", "with an anchor"],
)
def test_the_items_of_a_typed_list_get_its_type(text: str) -> None:
    (only,) = cut(text)
    assert isinstance(only, Document)
    assert only.value == {"apiVersion": "x/v1", "kind": "Lease", "a": 1}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("{<<: 1}", "line 1: expected a mapping or list of mappings for merging", id="a number"),
        pytest.param("{<<: {a: 1}, <<: {b: 1}}", 'line 1: key "<<" appears twice', id="twice"),
    ],
)
def test_a_bad_merge_key(text: str, error: str) -> None:
    with pytest.raises(YamlError, match=f"^{error}"):
        read(text)


def test_the_first_of_merged_mappings_counts() -> None:
    assert read("{<<: [{a: 1}, {a: 2, b: 3}], c: 4}") == {"a": 1, "b": 3, "c": 4}


@pytest.mark.uncounted
def test_many_small_merges_into_a_large_mapping_end() -> None:
    large = ", ".join(f"k{number}: 1" for number in range(10_000))
    text = f"a: &a {{}}\nb: {{<<: [{', '.join(['*a'] * 10_000)}], {large}}}\n"
    assert len(read(text)["b"]) == 10_000


def cut(text: str, size: int = 100) -> list[Document | Unreadable]:
    data = text.encode()
    pieces = documents.split_documents("in", (data[place : place + size] for place in range(0, len(data), size)))
    return [one for one in pieces if not isinstance(one, documents.LastLine)]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_documents_keep_their_numbers(size: int) -> None:
    text = "\ufeff%YAML 1.1\n--- # first\na: 1\n---\n# nothing\n---\r\n\nb: 2\n--- {c: 3}\n---\nd: [\n"
    *good, broken = cut(text, size)
    assert [one.place.document for one in good] == [1, 2, 3]
    assert [one.value for one in good if isinstance(one, Document)] == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert isinstance(broken, Unreadable)
    assert broken.place == Place("in", 4)
    assert broken.error.startswith("line 12")


def test_dashes_inside_a_value_do_not_cut() -> None:
    (only,) = cut("a: |\n  x\n  ---\n  y\nb: --- c\n")
    assert isinstance(only, Document)
    assert only.value == {"a": "x\n---\ny\n", "b": "--- c"}


def test_the_first_line_may_be_indented() -> None:
    (only,) = cut("\n \n  a: 1\n  b: 2\n", 2)
    assert isinstance(only, Document)
    assert only.value == {"a": 1, "b": 2}


@pytest.mark.parametrize("text", ["", "\n \n", "# a\n  # b\n", "%YAML 1.1\n", "--- \n...\n", "\t...\n"])
def test_what_says_nothing_is_not_a_document(text: str) -> None:
    assert cut(text) == []


def test_a_document_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_LIST", 100)
    first, last = cut("a: 1\n---\n" + "x" * 1000 + "\n---\nb: 1")
    assert isinstance(first, Document)
    assert isinstance(last, Unreadable)


def test_an_object_that_aliases_make_larger_than_a_request_is_refused() -> None:
    text = "a: &a " + "x" * 1000 + "".join(f"\nk{number}: *a" for number in range(30_000))
    (only,) = cut(text, 10**6)
    assert isinstance(only, Unreadable)
    assert "aliases and merge keys add more than" in only.error


@pytest.mark.parametrize("count", [10, 300])
def test_each_character_is_parsed_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work for a document must not depend on how many stood before it."""
    parsed: list[int] = []
    parse_events = yaml.parse

    def counted(text: str, **settings: Any) -> Any:
        parsed.append(len(text))
        return parse_events(text, **settings)

    monkeypatch.setattr(yaml, "parse", counted)
    text = "---\napiVersion: v1\nkind: Pod\n" * count
    assert len(cut(text)) == count
    assert sum(parsed) <= len(text)


def test_the_lines_before_a_document_cost_nothing() -> None:
    """Counting by empty lines before each document would make a file cost the square of its documents."""
    tracemalloc.start()
    try:
        with pytest.raises(YamlError, match="line 2000000"):
            read("a: [", first_line=20_000_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
