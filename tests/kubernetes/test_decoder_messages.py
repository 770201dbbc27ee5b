"""msgspec's messages: each form that it has is taken apart and reworded."""

from datetime import date
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from webhook.kubernetes import decoding_errors
from webhook.kubernetes.decoding_errors import PLACE, TRAILING, TRUNCATED, explain_problem, find_error, split_path


class Inner(Struct, forbid_unknown_fields=True):
    word: Literal["a", "b"]


class Outer(Struct):
    inner: Inner | None = None
    rows: list[int] = []
    texts: dict[str, str] = {}


def problem_of(value: object, form: Any) -> tuple[str, str]:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(value, form)
    return split_path(refused.value)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        pytest.param([], "", id="the whole"),
        pytest.param({"rows": 1}, "rows", id="a field"),
        pytest.param({"rows": [1, "x"]}, "rows[1]", id="an item"),
        pytest.param({"inner": {"word": 1}}, "inner.word", id="a field inside"),
        pytest.param({"texts": {"k": 1}}, "texts[...]", id="a value of a mapping"),
        pytest.param({"inner": {"word": "x - at `$.rows`"}}, "inner.word", id="a value that looks like a path"),
    ],
)
def test_the_path(value: object, path: str) -> None:
    assert problem_of(value, Outer)[1] == path


def test_the_path_of_an_item_of_the_whole() -> None:
    assert problem_of(["x"], list[int])[1] == "[0]"


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        pytest.param("7", int, "must be an integer, not a string", id="a string for an integer"),
        pytest.param(1.5, int, "must be an integer, not a floating-point number", id="a float for an integer"),
        pytest.param(True, str, "must be a string, not a boolean", id="a boolean for a string"),
        pytest.param(7, bool, "must be a boolean, not an integer", id="an integer for a boolean"),
        pytest.param({}, list[int], "must be a list, not an object", id="an object for a list"),
        pytest.param([], Outer, "must be an object, not a list", id="a list for an object"),
        pytest.param(None, int, "must be an integer, not null", id="null"),
        pytest.param("7", int | None, "must be an integer, not a string", id="null is as good as absent"),
        pytest.param([], int | str, "must be an integer or a string, not a list", id="one of two types"),
        pytest.param(1, None, "must be null, not an integer", id="null and nothing else"),
        pytest.param(-1, Annotated[int, Meta(ge=0)], "must be at least 0", id="too small"),
        pytest.param(-9, Annotated[int, Meta(ge=-8)], "must be at least -8", id="too small, below zero"),
        pytest.param(8, Annotated[int, Meta(le=7)], "must be at most 7", id="too large"),
        pytest.param([], Annotated[list[int], Meta(min_length=1)], "must have at least 1 entry", id="empty"),
        pytest.param([1] * 3, Annotated[list[int], Meta(max_length=2)], "must have at most 2 entries", id="too many"),
        pytest.param("x", date, "must be a date such as 2027-01-31", id="not a date"),
        pytest.param(1, date, "must be a date such as 2027-01-31, not an integer", id="an integer for a date"),
        pytest.param("x", Annotated[str, Meta(pattern="^y")], "", id="a pattern has a description of its own"),
    ],
)
def test_the_words(value: object, form: Any, words: str) -> None:
    assert explain_problem(problem_of(value, form)[0]) == words


@pytest.mark.parametrize(
    ("value", "pattern", "name"),
    [
        pytest.param({"word": "a", "x": 1}, decoding_errors.UNKNOWN_FIELD, "x", id="unknown"),
        pytest.param({"word": "a", "x\ny": 1}, decoding_errors.UNKNOWN_FIELD, "x\ny", id="unknown, of two lines"),
        pytest.param({}, decoding_errors.MISSING_FIELD, "word", id="missing"),
        pytest.param({"word": "it's `c`"}, decoding_errors.UNKNOWN_VALUE, '"it\'s `c`"', id="a word"),
    ],
)
def test_names_are_found(value: object, pattern: Any, name: str) -> None:
    assert pattern.fullmatch(problem_of(value, Inner)[0])[1] == name


@pytest.mark.parametrize("text", ["1e999", "9" * 5000])
def test_oversized_numbers(text: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.json.decode(text, type=int)
    assert split_path(refused.value)[0] in decoding_errors.OVERSIZED_NUMBERS


@given(st.text())
def test_any_problem_has_words_or_none(problem: str) -> None:
    assert isinstance(explain_problem(problem), str)


@pytest.mark.parametrize(
    ("text", "place"),
    [(b"{} ,", 4), (b'{"a":1}{', 8), (b"[]\n]", 4)],
)
def test_what_follows_a_value_is_found(text: bytes, place: int) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(text, type=msgspec.Raw)
    match = TRAILING.search(str(caught.value))
    assert match is not None
    assert int(match[1]) == place


def test_a_value_that_is_cut_off_says_so() -> None:
    with pytest.raises(msgspec.DecodeError, match=f"^{TRUNCATED}$"):
        msgspec.json.decode(b'{"a":', type=msgspec.Raw)


def test_malformed_json_says_where() -> None:
    with pytest.raises(msgspec.DecodeError, match=PLACE.pattern):
        msgspec.json.decode(b'{"a":]', type=msgspec.Raw)


JSON_TEXTS = [
    pytest.param(b"{}", id="a value"),
    pytest.param(b'  {"a": 1}', id="a value after white space"),
    pytest.param(b"{} ,", id="something after a value"),
    pytest.param(b'{"a":1}{"b":2}', id="a value after a value"),
    pytest.param('{"a":"é"}\n{'.encode(), id="something after characters of two bytes"),
    pytest.param(b"[]\n]", id="a bracket on the next line"),
    pytest.param(b'{"a":', id="cut off before a value"),
    pytest.param(b'{"a":"b', id="cut off in a string"),
    pytest.param(b"[1,2", id="cut off in a list"),
    pytest.param(b"", id="nothing"),
]


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_texts_of_a_release_that_is_not_known_cost_no_answer(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    known = find_error(memoryview(text))

    class Reworded:
        def decode(self, given: memoryview) -> object:
            try:
                return msgspec.json.decode(given, type=msgspec.Raw)
            except msgspec.DecodeError:
                raise msgspec.DecodeError("words of another release") from None

    monkeypatch.setattr(decoding_errors, "_raw", Reworded())
    assert bool(find_error(memoryview(text))) == bool(known)
    assert (find_error(memoryview(text)) == TRUNCATED) == (known == TRUNCATED)
    ends = [TRAILING.search(problem) for problem in (find_error(memoryview(text)), known)]
    assert [end and end[1] for end in ends][:1] == [end and end[1] for end in ends][1:]


@pytest.mark.parametrize("text", [b'{"a":]', b"nonsense", b"{'a'}", b"[1,,2]"])
def test_malformed_json_is_found_by_json_too(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Reworded:
        def decode(self, _given: memoryview) -> object:
            raise msgspec.DecodeError("words of another release")

    monkeypatch.setattr(decoding_errors, "_raw", Reworded())
    problem = find_error(memoryview(text))
    assert PLACE.search(problem)
    assert not TRAILING.search(problem)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * 200_000, id="nested beyond what Python reads"),
        pytest.param(b"[" + b"9" * 5000 + b"]", id="a number beyond what Python reads"),
    ],
)
def test_what_json_cannot_read_keeps_the_words_of_the_decoder(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Reworded:
        def decode(self, _given: memoryview) -> object:
            raise msgspec.DecodeError("words of another release")

    monkeypatch.setattr(decoding_errors, "_raw", Reworded())
    assert find_error(memoryview(text)) == "words of another release"


def test_a_type_that_is_not_known_is_shown_as_it_is() -> None:
    assert explain_problem("Expected `frob`, got `int`") == "must be frob, not an integer"
