"""What both readers of YAML share: one key once, one document, bounded depth and expansion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inputs.loaders import LOADERS
from webhook.text import yaml_reader
from webhook.text.yaml_reader import Dialect, YamlError, read

TEXTS = Dialect(plain=str, max_depth=8)
"""Every scalar is a string; nothing may be expanded."""
EXPANDING = Dialect(plain=str, max_depth=8, max_expanded=100)


@pytest.fixture(autouse=True, params=LOADERS)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers, whichever the machine has."""
    monkeypatch.setattr(yaml_reader, "LOADER", request.param)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("{a: [b, {c: d}], e: 'f'}", {"a": ["b", {"c": "d"}], "e": "f"}, id="nested"),
        pytest.param("a\n...\n", "a", id="an end of document"),
        pytest.param("[&a x, *a]", ["x", "x"], id="an alias of a scalar"),
        pytest.param("[&a [x], *a]", [["x"], ["x"]], id="an alias of a list"),
        pytest.param("{<<: {a: x, b: x}, b: y}", {"a": "x", "b": "y"}, id="a merge key"),
        pytest.param("{'<<': {a: x}}", {"<<": {"a": "x"}}, id="a quoted merge key is a key"),
        pytest.param("{<<: [{a: x}, {a: y, b: y}], c: z}", {"a": "x", "b": "y", "c": "z"}, id="merged lists"),
    ],
)
def test_a_value(text: str, value: object) -> None:
    assert read(text, EXPANDING) == value


@pytest.mark.parametrize(
    ("text", "dialect", "words"),
    [
        pytest.param("# a\n", TEXTS, "the file is empty", id="no document"),
        pytest.param("a: b\na: c", TEXTS, 'line 2: key "a" appears twice', id="a key twice"),
        pytest.param("{[a]: b}", TEXTS, "line 1: a key must be a string", id="a list as a key"),
        pytest.param("a\n--- \nb", TEXTS, "line 2: only one document is allowed", id="two documents"),
        pytest.param("&a b", TEXTS, "line 1: anchors are not allowed", id="an anchor"),
        pytest.param("*a", TEXTS, "line 1: aliases are not allowed; repeat the value", id="an alias"),
        pytest.param("!x b", TEXTS, 'line 1: tag "!x" is not allowed', id="a tag"),
        pytest.param("!x [b]", TEXTS, 'line 1: tag "!x" is not allowed', id="a tag of a list"),
        pytest.param("!x {}", EXPANDING, 'line 1: tag "!x" is not allowed', id="an unknown tag of a mapping"),
        pytest.param("[" * 9, TEXTS, "line 1: nested deeper than 8 levels", id="deep"),
        pytest.param("*a", EXPANDING, 'line 1: alias "a" is not defined', id="an unknown alias"),
        pytest.param("&a [*a]", EXPANDING, 'line 1: alias "a" is recursive', id="a recursive alias"),
        pytest.param("{<<: a}", EXPANDING, "line 1: expected a mapping or list of mappings for merging", id="merge"),
        pytest.param("{<<: {a: b}, <<: {c: d}}", EXPANDING, 'line 1: key "<<" appears twice', id="two merge keys"),
        pytest.param(
            "- &a " + "x" * 60 + "\n- *a\n- *a",
            EXPANDING,
            "line 3: aliases and merge keys add more than 100 characters",
            id="expansion",
        ),
    ],
)
def test_what_is_refused(text: str, dialect: Dialect, words: str) -> None:
    with pytest.raises(YamlError) as refused:
        read(text, dialect)
    assert str(refused.value) == words
    assert not refused.value.is_syntax


def test_a_merge_key_without_expansion_is_a_key() -> None:
    assert read("{<<: {a: b}}", TEXTS) == {"<<": {"a": "b"}}


@pytest.mark.parametrize("text", ["a: b: c", "a: [", "\x00", "\ud800"])
def test_a_syntax_error_is_marked_as_a_syntax_error(text: str) -> None:
    with pytest.raises(YamlError) as refused:
        read(text, TEXTS)
    assert refused.value.is_syntax


def test_lines_are_those_of_the_file() -> None:
    with pytest.raises(YamlError, match=r"^line 12: "):
        read("\n&a b", TEXTS, first_line=11)


@given(st.text(st.sampled_from("ab: -[]{}&*!|>%'\"#,?\n\t\x00<\ud800") | st.characters(), max_size=30))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    for dialect in (TEXTS, EXPANDING):
        assert "\n" not in refusal(text, dialect)


def refusal(text: str, dialect: Dialect) -> str:
    try:
        read(text, dialect)
    except YamlError as refused:
        return str(refused)
    return ""
