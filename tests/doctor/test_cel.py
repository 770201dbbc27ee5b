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
        pytest.param('a.?b[?"c"] == d', "a.?b.?c == d", id="an optional field by index"),
        pytest.param("[a, b].exists(x, p(x) || q(x))", "p(a) || q(a) || p(b) || q(b)", id="exists in a list"),
        pytest.param('["a", "b"].exists(f, o[?f] != p[?f])', "o.?a != p.?a || o.?b != p.?b", id="exists in fields"),
        pytest.param("[a].exists(x, [b].exists(y, x != y))", "a != b", id="a name for one value, twice"),
        pytest.param("[a + b].exists(x, x * c == d)", "(a + b) * c == d", id="a value that needs brackets"),
        pytest.param("[a.?x.f([])].exists(x, x.y)", "a.?x.f([]).y", id="a value that needs none"),
        pytest.param("[a].exists(x, o.x == x && o.?x == o[x])", "o.x == a && o.?x == o[a]", id="a field of that name"),
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
        pytest.param("[a].all(x, p(x))", "p(a)", id="all"),
        pytest.param("![a].exists(x, p(x) || q(x))", "p(a) || q(a)", id="a negated exists"),
        pytest.param("[a].exists(x, p(x)) == false", "p(a)", id="exists that is compared"),
        pytest.param("[a].exists(x, p(x)) && q", "p(a)", id="exists and something else"),
        pytest.param("[[?a], b].exists(x, x == b)", "a == b || b == b", id="a list of a list"),
        pytest.param("[?a].exists(x, p(x))", "p(a)", id="an element that may be absent"),
        pytest.param("[a].exists(x, [b].exists(x, p(x)))", "p(a)", id="a name that is taken again"),
        pytest.param("[m].exists(x, l.exists(m, m == x))", "l.exists(m, m == m)", id="a name that would be captured"),
        pytest.param("[a].exists(x, x(b))", "a(b)", id="a name of a function"),
        pytest.param("[a].exists(x, y, p(x))", "p(a)", id="two names"),
        pytest.param("[a].exists(x.y, p(x))", "p(a)", id="a path as a name"),
        pytest.param('[a].exists(x, [?"b"] == x)', "[].?b == a", id="a list of one optional element"),
        pytest.param("[a].map(x, p(x))", "p(a)", id="another macro"),
    ],
)
def test_another_meaning_is_another_form(one: str, other: str) -> None:
    assert terms(one) != terms(other)


def test_the_question_mark_of_an_optional_field_is_no_ternary() -> None:
    assert len(terms("a.?b == c.?b || a[?k] == c || {?'k': a} == d")) == 3


def test_what_is_too_long_is_one_term() -> None:
    long = "a || " * LONGEST + "b"
    assert terms(long) == {long}


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(
            "[a, b].exists(x0, "
            + "".join(f"[x{n}, c].exists(x{n + 1}, " for n in range(400))
            + "x400 || d"
            + ")" * 401,
            id="lists that double",
        ),
        pytest.param("(a||" * 3000 + "b" + ")" * 3000, id="brackets in brackets"),
    ],
)
def test_what_would_take_too_long_is_one_term(expression: str) -> None:
    assert len(expression) < LONGEST
    assert terms(expression) == {expression}


@pytest.mark.parametrize("elements", ["", "a,"])
def test_a_list_with_an_empty_element_is_not_expanded(elements: str) -> None:
    assert len(terms(f"[{elements}].exists(x, p(x) || q(x))")) == 1


def test_nothing_has_no_terms() -> None:
    assert terms("") == terms("()") == frozenset()


PIECES = ["a", "b", ".", ",", "(", ")", "[", "]", "?", "||", "&&", "==", ".exists(a, ", "[a].exists(b, ", '"b"']


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_macro_is_too_odd(text: str) -> None:
    assert all(isinstance(term, str) for term in terms(text))


@settings(deadline=None)
@given(st.text(alphabet="ab(){}[]|&!?:=<>'\"/\n .,", max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    assert all(isinstance(term, str) for term in terms(text))
