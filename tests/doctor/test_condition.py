"""The renewal condition is compared with the shipped texts, and no other condition narrows what is reviewed."""

from importlib.resources import files

import pytest

from tests.doctor.shipped import condition, entry, verified_expression
from webhook.api_server.doctor.match_condition import MAX_CHARACTERS, check_condition, is_without_renewals
from webhook.findings import ReportFinding

TEXTS = [
    path.read_text()
    for path in sorted(files("webhook.api_server.doctor").joinpath("conditions").iterdir(), key=lambda path: path.name)
]
SHIPPED = verified_expression()


def check_expression(expression: str) -> list[ReportFinding]:
    return list(check_condition(entry(matchConditions=condition(expression))))


def test_the_last_of_the_known_texts_is_the_shipped_one() -> None:
    """A text that is replaced stays, and the new one becomes the next file."""
    assert TEXTS[-1].strip() == SHIPPED
    assert len({text.strip() for text in TEXTS}) == len(TEXTS)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(SHIPPED, id="as shipped"),
        pytest.param(" ".join(SHIPPED.split()), id="on one line"),
        pytest.param(SHIPPED.replace(" || ", "||"), id="without spaces"),
        pytest.param(SHIPPED.replace("\n", "  // why\n"), id="with comments"),
    ],
)
def test_layout_and_comments_do_not_matter(expression: str) -> None:
    assert check_expression(expression) == []
    assert is_without_renewals(entry(matchConditions=condition(expression)).webhook)


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        pytest.param(
            '"holderIdentity", ',
            "",
            'without ["holderIdentity", "acquireTime", "leaseDurationSeconds", "leaseTransitions", "strategy", '
            '"preferredHolder"].exists(f, object.?spec[?f].orValue(null) != oldObject.?spec[?f].orValue(null)); with '
            '["acquireTime", "leaseDurationSeconds", "leaseTransitions", "strategy", "preferredHolder"].exists(f, '
            "object.?spec[?f].orValue(null) != oldObject.?spec[?f].orValue(null)).",
            id="a field of the spec is missing",
        ),
        pytest.param(
            "size(after) > 50", "size(after) > 5000", "without size(after) > 50; with size(after) > 5000.", id="a bound"
        ),
        pytest.param(
            'request.operation != "UPDATE"', "false", 'without request.operation != "UPDATE"; with false.', id="a term"
        ),
        pytest.param(
            'request.resource.resource != "leases" || ',
            "",
            'without request.resource.resource != "leases".',
            id="a term less",
        ),
        pytest.param('!= "UPDATE"', '!= "UPDATE" || object.x', "with object.x.", id="a term more"),
        pytest.param(
            '"2200"',
            '"22 00"',
            'with object.spec.renewTime > "22 00", oldObject.spec.renewTime > "22 00".',
            id="a space in a string",
        ),
        pytest.param(
            'object.spec.renewTime < "1970" || object.spec.renewTime > "2200"',
            'object.spec.renewTime > "2200" || object.spec.renewTime < "1970"',
            "This text is in another order.",
            id="another order",
        ),
    ],
)
def test_a_text_that_differs_is_reported_with_the_difference(old: str, new: str, difference: str) -> None:
    assert old in SHIPPED
    (finding,) = check_expression(SHIPPED.replace(old, new))
    assert finding.check == "condition-changed"
    assert finding.message.endswith(difference)
    assert is_without_renewals(entry(matchConditions=condition(SHIPPED.replace(old, new))).webhook)


@pytest.mark.parametrize("text", TEXTS[:-1], ids=range(1, len(TEXTS)))
def test_an_earlier_text_is_recognized(text: str) -> None:
    (finding,) = check_expression(text)
    assert finding.check == "condition-changed"
    assert "without " in finding.message
    assert is_without_renewals(entry(matchConditions=condition(text)).webhook)


def test_many_differences_are_cut() -> None:
    more = "".join(f" || object.x == {number}" for number in range(9))
    (finding,) = check_expression(SHIPPED + more)
    assert finding.message.endswith("with object.x == 0, object.x == 1, object.x == 2, object.x == 3, 5 more.")


def test_half_of_the_terms_are_a_renewal_condition_and_less_are_not() -> None:
    terms = " ".join(SHIPPED.split()).split(" || ")
    half = (len(terms) + 1) // 2
    assert [one.check for one in check_expression(" || ".join(terms[:half]))] == ["condition-changed"]
    assert [one.check for one in check_expression(" || ".join(terms[: half - 1]))] == ["condition-unknown"]
    assert not is_without_renewals(entry(matchConditions=condition(" || ".join(terms[: half - 1]))).webhook)


def test_what_is_too_long_is_unknown() -> None:
    assert [one.check for one in check_expression(SHIPPED + " " * MAX_CHARACTERS)] == ["condition-unknown"]


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        pytest.param('!request.namespace.startsWith("openshift-")', True, id="a beginning"),
        pytest.param("!request.namespace.startsWith('openshift-')", True, id="a beginning in other quotes"),
        pytest.param('request.namespace != "shop"', False, id="one namespace"),
        pytest.param('!(request.namespace in ["shop", "bar"])', False, id="some namespaces"),
        pytest.param('request.namespace != "a" && request.namespace != "b"', False, id="two namespaces"),
        pytest.param('["a", "b"].all(n, request.namespace != n)', False, id="a form that nobody verified"),
        pytest.param('!request.namespace.startsWith("")', False, id="no beginning: every namespace"),
        pytest.param('request.namespace != "x" && !request.namespace.startsWith("")', False, id="one, and every"),
        pytest.param('!request.namespace.startsWith("a")', False, id="one letter: 36 of them leave out everything"),
        pytest.param('!request.namespace.startsWith("Shop")', False, id="a beginning that no namespace has"),
        pytest.param('request.namespace != ""', False, id="not the empty name: true for each lease"),
        pytest.param("!(request.namespace in [])", False, id="not in an empty list: true for each lease"),
        pytest.param("!(request.namespace in [request.namespace])", False, id="not in a list of itself"),
        pytest.param('request.namespace == "shop"', False, id="nothing but one namespace"),
        pytest.param('!(request.namespace != "shop")', False, id="one namespace, negated twice"),
        pytest.param("request.namespace != request.namespace", False, id="not itself"),
        pytest.param("false", False, id="never"),
        pytest.param("", False, id="an empty text"),
        pytest.param('!request.namespace.startsWith("\\u0061\\u0062")', False, id="a beginning in escapes"),
        pytest.param('!request.namespace.startsWith("ab") && has(object.spec)', False, id="with something else"),
        pytest.param('request.namespace != "a" || request.name != "b"', False, id="or something else"),
        pytest.param("true", True, id="nothing"),
        pytest.param("object.spec.renewTime != null", False, id="a field that may be absent"),
    ],
)
def test_another_condition_may_only_leave_out_namespaces_by_their_beginning(expression: str, known: bool) -> None:
    conditions = [*condition(SHIPPED), {"name": "more", "expression": expression}]
    findings = check_condition(entry(matchConditions=conditions))
    assert [one.check for one in findings] == ([] if known else ["condition-unknown"])
