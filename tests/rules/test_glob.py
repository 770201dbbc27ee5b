"""What a glob covers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import HOLDER
from webhook.admission.rules.holders import holder_matches, is_literal, matches


@pytest.mark.parametrize(
    ("pattern", "text", "covered"),
    [
        pytest.param("db", "db", True, id="itself"),
        pytest.param("db", "DB", False, id="upper case differs"),
        pytest.param("db", "db-1", False, id="not the beginning only"),
        pytest.param("db", "my-db", False, id="not the end only"),
        pytest.param("*", "", True, id="* covers nothing at all"),
        pytest.param("*", "a/b\n_c", True, id="* covers every character"),
        pytest.param("db-*", "db-", True, id="* may be empty"),
        pytest.param("?", "a", True, id="? is one character"),
        pytest.param("?", "", False, id="? is not none"),
        pytest.param("?", "ab", False, id="? is not two"),
        pytest.param("db-?", "db-\n", True, id="? is any character"),
        pytest.param("[ab]", "[ab]", True, id="brackets are themselves"),
        pytest.param("[ab]", "a", False, id="brackets are not a character class"),
        pytest.param("[!a]*", "[!a]x", True, id="nor the opposite of one"),
        pytest.param("a.b", "axb", False, id="a dot is a dot"),
        pytest.param("a\\*", "a\\b", True, id="a backslash escapes nothing"),
        pytest.param("db", "db\n", False, id="a newline at the end counts"),
    ],
)
def test_which_texts_a_pattern_covers(pattern: str, text: str, covered: bool) -> None:
    assert matches(pattern, text) is covered


@given(st.text("ab[]!*?.\\-", max_size=8), st.text("ab[]!.\\-\n", max_size=8))
def test_as_the_plain_definition(pattern: str, text: str) -> None:
    plain = "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    assert matches(pattern, text) is bool(re.fullmatch(plain, text, re.DOTALL))
    assert is_literal(pattern) is not bool({"*", "?"} & set(pattern))


def test_many_wildcards_against_a_long_holder_end_soon() -> None:
    assert not matches("*a" * 30 + "b", "a" * 5000)


@pytest.mark.parametrize(
    ("template", "holder", "pod", "covered"),
    [
        pytest.param("${pod}_*", "db-0_1f0e", "db-0", True, id="the pod's name and a suffix"),
        pytest.param("${pod}_*", "db-1_1f0e", "db-0", False, id="another pod"),
        pytest.param("${pod}_*", "db-0", "db-0", False, id="the suffix is missing"),
        pytest.param("${pod}", "db-0", "db-0", True, id="the pod's name alone"),
        pytest.param("${pod}/${pod}", "a/a", "a", True, id="twice"),
        pytest.param("${pod}_*", "_1f0e", "", False, id="no pod is known"),
        pytest.param("ci", "ci", "", True, id="no variable, no pod needed"),
        pytest.param("${pod}*", "a" * 254, "a" * 254, False, id="a name that is too long for a pod"),
        pytest.param("${pod}*", "a" * 253, "a" * 253, True, id="the longest name of a pod"),
        pytest.param("${pod}_*", "a" * 60 + "_1", "a" * 60 + "-.-bcd", True, id="the host name of a long name"),
        pytest.param("${pod}_*", "a" * 63 + "_1", "a" * 70, True, id="the host name, cut to 63 characters"),
        pytest.param("${pod}_*", "a" * 62 + "_1", "a" * 70, False, id="less than the host name"),
        pytest.param("${pod}*", "\0a", "\0a", False, id="a character that no name has"),
        pytest.param("a?${pod}", "a\0b", "b", True, id="in a holder it is one character"),
        pytest.param("${pod}*", "a" * 4_000_000, "a", False, id="a holder that no write can have"),
        pytest.param("${pod}", "db-0", "*", False, id="wildcards in a pod's name are themselves"),
        pytest.param("${pod}", "[a]?*", "[a]?*", True, id="and cover themselves"),
        pytest.param("${pod}", "a", "[a]", False, id="brackets in a pod's name too"),
    ],
)
def test_which_holders_a_template_covers(template: str, holder: str, pod: str, covered: bool) -> None:
    assert holder_matches(template, holder, pod) is covered


@pytest.mark.parametrize("pod", ["a*", "a?", "a[b]", "a!b", HOLDER])
def test_a_pods_name_stands_for_itself(pod: str) -> None:
    assert holder_matches("${pod}_*", f"{pod}_1", pod)
    assert not holder_matches("${pod}_*", "ab_1", pod)
