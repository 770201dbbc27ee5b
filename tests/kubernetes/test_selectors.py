"""Label selectors as kubectl takes them."""

from collections.abc import Mapping

import pytest

from webhook.kubernetes.selectors import Selector, SelectorRequirement, is_met, list_requirements, parse_selector

LABELS: Mapping[str, str] = {"app.kubernetes.io/name": "checkout", "tier": "front", "empty": ""}


@pytest.mark.parametrize(
    ("text", "is_selected"),
    [
        pytest.param("tier=front", True, id="equal"),
        pytest.param("tier==front", True, id="equal, the other way to write it"),
        pytest.param("tier = back", False, id="another value"),
        pytest.param("tier!=back", True, id="not equal"),
        pytest.param("tier!=front", False, id="not equal, but it is"),
        pytest.param("color!=red", True, id="not equal, and not there"),
        pytest.param("empty=", True, id="an empty value"),
        pytest.param("app.kubernetes.io/name", True, id="is there"),
        pytest.param("color", False, id="is not there"),
        pytest.param("!color", True, id="must not be there"),
        pytest.param("!tier", False, id="must not be there, and is"),
        pytest.param("tier in (back, front)", True, id="one of several"),
        pytest.param("tier in (back,middle)", False, id="none of several"),
        pytest.param("tier notin (back,middle)", True, id="not one of several"),
        pytest.param("tier notin (front)", False, id="one that is excluded"),
        pytest.param("tier in (back,front), !color, empty=", True, id="all of several"),
        pytest.param("tier=front,color", False, id="not all of several"),
    ],
)
def test_a_selector_selects(text: str, is_selected: bool) -> None:
    assert all(is_met(one, LABELS) for one in parse_selector(text)) is is_selected


@pytest.mark.parametrize("text", ["", "a=b,", "a in b", "a in (b", "-a=b", "a=b c", "a in (b) c", "=b", "!"])
def test_what_is_not_a_selector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a label selector"):
        parse_selector(text)


@pytest.mark.parametrize("text", ["tier in (front)", "tier notin (a, b)", "tier", "!tier"])
def test_a_requirement_is_written_as_it_is_read(text: str) -> None:
    (requirement,) = parse_selector(text)
    assert str(requirement) == text


def test_an_object_has_the_same_requirements_as_its_text() -> None:
    expression = SelectorRequirement("color", "NotIn", ("red",))
    assert list_requirements(Selector({"tier": "front"}, (expression,))) == parse_selector("tier=front,color!=red")
    assert list_requirements(None) == ()
