"""YAML as a policy file may use it."""

import sys
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.admission.policy.parse import find_line, read
from webhook.admission.policy.schema import PolicyError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("off", "off", id="off is a word"),
        pytest.param("yes", "yes", id="yes is a word"),
        pytest.param("2027-01-31", "2027-01-31", id="a date is a text"),
        pytest.param("true", True, id="true"),
        pytest.param("False", False, id="False"),
        pytest.param("~", None, id="a tilde is nothing"),
        pytest.param("'~'", "~", id="a quoted tilde is a text"),
        pytest.param('"7"', "7", id="a quoted number is a text"),
        pytest.param("-7", -7, id="a number"),
        pytest.param("007", 7, id="zeros in front do not make it octal"),
        pytest.param("0x10", "0x10", id="no hexadecimal numbers"),
        pytest.param("1_000", "1_000", id="no underscores in numbers"),
        pytest.param("1.5", 1.5, id="a fraction"),
        pytest.param("1:30", "1:30", id="no numbers to the base of 60"),
        pytest.param("7" * 5000, "7" * 5000, id="thousands of digits"),
        pytest.param("|\n 7\n", "7\n", id="a block is a text"),
        pytest.param("{a: , b: ''}", {"a": None, "b": ""}, id="an empty value"),
        pytest.param("{7: a, true: b}", {"7": "a", "true": "b"}, id="keys are texts"),
        pytest.param("[a, [b], {c: [d]}]", ["a", ["b"], {"c": ["d"]}], id="nested"),
        pytest.param("%YAML 1.2\n---\na", "a", id="a directive"),
        pytest.param("a\n...\n", "a", id="an end of document"),
    ],
)
def test_the_value_of_a_text(text: str, value: Any) -> None:
    assert read(text) == value


def test_lines_are_those_of_keys_and_items() -> None:
    text = "a:\n  b:\n  - x\n  - c: y\n"
    lines = {path: find_line(text, path) for path in ("a", "a.b", "a.b[0]", "a.b[1]", "a.b[1].c")}
    assert lines == {"a": 1, "a.b": 2, "a.b[0]": 3, "a.b[1]": 4, "a.b[1].c": 4}


def test_what_is_not_there_has_the_line_of_what_is_around_it() -> None:
    text = "\n\na:\n  b: [x]\n"
    assert (find_line(text, "a.b[3].c"), find_line(text, "nowhere.at.all"), find_line(text, "")) == (4, 3, 3)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner) | st.dictionaries(st.from_regex(r"[A-Za-z0-9_-]+", fullmatch=True), inner),
        max_leaves=10,
    )
)
def test_whatever_is_written_in_the_json_way_reads_back(value: Any) -> None:
    assert read(_quoted(value)) == value


def _quoted(value: Any) -> str:
    return yaml.dump(value, Dumper=_QuotedKeysAndTexts, allow_unicode=False)


class _QuotedKeysAndTexts(yaml.SafeDumper):
    def ignore_aliases(self, _: Any) -> bool:
        return True


_QuotedKeysAndTexts.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def test_a_million_brackets_are_refused_at_the_seventeenth() -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(PolicyError, match="nested deeper than 16 levels"):
        read("[" * 1_000_000)
    assert sys.getrecursionlimit() == limit
