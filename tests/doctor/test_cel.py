"""Terms are compared by meaning as far as that is certain: layout, comments, order and brackets do not matter."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.doctor.cel import LONGEST, terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("a || b", "b||a", id="order and blanks"),
        pytest.param("a || b // because\n|| c", "a || b || c", id="a comment"),
        pytest.param("((a) || (b || c))", "a || b || c", id="brackets around terms"),
        pytest.param("x != y", "y != x", id="both sides of !="),
        pytest.param("(x) == y", "y == x", id="both sides of ==, one in brackets"),
        pytest.param("x > y", "y < x", id="greater and less"),
        pytest.param("x >= y", "y <= x", id="greater or equal"),
        pytest.param("a && b", "b && (a)", id="order in &&"),
        pytest.param("a == 'x'", 'a == "x"', id="quotes"),
        pytest.param('a == "x // y"', 'a ==  "x // y"', id="two slashes in a string"),
    ],
)
def test_same_meaning_is_the_same_form(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("a || b", "a && b", id="or and and"),
        pytest.param("x < y", "y < x", id="less either way"),
        pytest.param('a == "x y"', 'a == "xy"', id="a blank in a string"),
        pytest.param("""a == 'say "x"'""", 'a == "say x"', id="quotes within quotes"),
        pytest.param("(a || b) && c", "a || b && c", id="brackets that matter"),
        pytest.param("!(a || b)", "!a || b", id="a negated bracket"),
        pytest.param("c ? a : b || d", "(c ? a : b) || d", id="a ternary binds less than or"),
        pytest.param("x == y == z", "x == y", id="a chain of comparisons"),
        pytest.param("24h", "168h", id="numbers"),
    ],
)
def test_another_meaning_is_another_form(one: str, other: str) -> None:
    assert terms(one) != terms(other)


def test_the_question_mark_of_an_optional_field_is_no_ternary() -> None:
    assert len(terms("a.?b == c.?b || a[?k] == c || {?'k': a} == d")) == 3


def test_what_is_too_long_is_one_term() -> None:
    long = "a || " * LONGEST + "b"
    assert terms(long) == {long}


def test_nothing_has_no_terms() -> None:
    assert terms("") == terms("()") == frozenset()


@settings(deadline=None)
@given(st.text(alphabet="ab(){}[]|&!?:=<>'\"/\n .,", max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    assert all(isinstance(term, str) for term in terms(text))
