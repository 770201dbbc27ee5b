"""Texts that people read: hidden characters show, values are cut."""

import pytest

from webhook.text.quoting import MAX_VALUE, escape, quote


@pytest.mark.parametrize(
    ("character", "shown"),
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
    ],
)
def test_a_hidden_character_shows(character: str, shown: str) -> None:
    assert escape(f"a{character}b") == f"a{shown}b"
    assert quote(f"a{character}b") == f'"a{shown}b"'


@pytest.mark.parametrize("text", ["checkout_1f0e", "caf\u00e9 \u00a0\u4e2d\u6587", "\U0001f600"])
def test_a_visible_text_stands_as_it_is(text: str) -> None:
    assert escape(text) == text


def test_a_value_is_cut() -> None:
    assert quote("a" * (MAX_VALUE + 1)) == f'"{"a" * MAX_VALUE}..."'
