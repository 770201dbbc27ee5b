"""Texts that people read: hidden characters show, values are cut."""

import pytest

from webhook.text.quoting import MAX_VALUE, escape, quote


@pytest.mark.parametrize(
    ("character", "escaped"),
    [
        pytest.param("\x1b", "\\x1b", id="an escape character"),
        pytest.param("\x9b", "\\x9b", id="a control character beyond ASCII"),
        pytest.param("\n", "\\n", id="a line end"),
        pytest.param("\u200b", "\\u200b", id="a blank without width"),
        pytest.param("\u202e", "\\u202e", id="right to left"),
        pytest.param("\u2028", "\\u2028", id="a line separator"),
        pytest.param("\u034f", "\\u034f", id="a grapheme joiner"),
        pytest.param("\u115f", "\\u115f", id="a Hangul filler"),
        pytest.param("\u2800", "\\u2800", id="an empty braille pattern"),
        pytest.param("\u3164", "\\u3164", id="another Hangul filler"),
        pytest.param("\ufe0f", "\\ufe0f", id="a variation selector"),
        pytest.param("\U000e0101", "\\U000e0101", id="a variation selector of another plane"),
        pytest.param("\U000e0041", "\\U000e0041", id="a tag"),
        pytest.param("\u00a0", "\\xa0", id="a space that does not break"),
        pytest.param("\u3000", "\\u3000", id="a wide space"),
    ],
)
def test_a_hidden_character_shows(character: str, escaped: str) -> None:
    assert escape(f"a{character}b") == f"a{escaped}b"
    assert quote(f"a{character}b") == f'"a{escaped}b"'


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        pytest.param("p\u0430yroll-0", "p\\u0430yroll-0", id="a Cyrillic a"),
        pytest.param("shop/\u03bfperator", "shop/\\u03bfperator", id="a Greek o"),
        pytest.param("\uff44b-0", "\\uff44b-0", id="a wide d"),
        pytest.param("\U0001d41db-0", "\\U0001d41db-0", id="a bold d of mathematics"),
    ],
)
def test_a_letter_that_looks_like_another_in_a_word_shows(text: str, escaped: str) -> None:
    assert escape(text) == escaped
    assert quote(text) == f'"{escaped}"'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("checkout_1f0e", id="ASCII"),
        pytest.param("caf\u00e9 \u4e2d\u6587", id="an accent, and Chinese"),
        pytest.param("\u0441\u0435\u0440\u0432\u0435\u0440-1 db", id="a Russian word beside an English one"),
        pytest.param("\u4e2d\u6587pod", id="Chinese and English in one word"),
        pytest.param("\U0001f600", id="a face"),
    ],
)
def test_a_visible_text_stands_as_it_is(text: str) -> None:
    assert escape(text) == text


def test_a_value_is_cut() -> None:
    assert quote("a" * (MAX_VALUE + 1)) == f'"{"a" * MAX_VALUE}..."'
