"""The verified condition is complete, and no term of it can go or change unnoticed."""

import pytest

from tests.doctor.shipped import condition, entry, verified_expression
from webhook.doctor import cel
from webhook.doctor.availability import drops_renewals
from webhook.doctor.renewal_condition import check_condition
from webhook.doctor.renewal_terms import REQUIREMENTS, Requirement

SHORTER = """\
request.resource.resource != "leases" || request.operation != "UPDATE"
|| object.?spec.?renewTime == oldObject.?spec.?renewTime
|| ["holderIdentity", "acquireTime"].exists(f, object.?spec[?f].orValue(null) != oldObject.?spec[?f].orValue(null))
|| ["strategy", "preferredHolder"].exists(
     f, object.?spec[?f].orValue("") != "" && object.?spec[?f] != oldObject.?spec[?f])
|| object.?spec.?leaseTransitions.orValue(0) != oldObject.?spec.?leaseTransitions.orValue(0)
|| object.?spec.?leaseDurationSeconds.orValue(86401) > 86400
   && object.?spec.?leaseDurationSeconds != oldObject.?spec.?leaseDurationSeconds
|| [object, oldObject].exists(
     o, o.?spec.?renewTime.orValue(null) == null || o.spec.renewTime < "1970" || o.spec.renewTime > "2200")
|| timestamp(object.spec.renewTime) - timestamp(oldObject.spec.renewTime) > duration("24h")
|| !has(object.metadata.managedFields) && has(oldObject.metadata.managedFields)
|| object.metadata.?managedFields.orValue([]).exists(m, m.?time.orValue(null) != null && size(m.time) != 20)
"""


def found(expression: str) -> list[tuple[str, str]]:
    """(check, name of the term) of every diagnosis."""
    diagnoses = check_condition(entry(matchConditions=condition(expression)))
    return [(one.check, one.place.rpartition(", ")[2]) for one in diagnoses]


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(verified_expression(), id="as shipped"),
        pytest.param(SHORTER, id="the shorter text, equally strict"),
        pytest.param(" || ".join(reversed([one.forms[0] for one in REQUIREMENTS])), id="in another order"),
    ],
)
def test_verified_texts_are_complete(expression: str) -> None:
    assert found(expression) == []


def test_the_shipped_condition_says_nothing_that_is_not_required() -> None:
    assert cel.terms(verified_expression()) == cel.terms(" || ".join(one.forms[0] for one in REQUIREMENTS))


@pytest.mark.parametrize("missing", REQUIREMENTS, ids=lambda one: one.name)
def test_a_missing_term_is_named(missing: Requirement) -> None:
    expression = " || ".join(one.forms[0] for one in REQUIREMENTS if one is not missing)
    assert found(expression) == [("condition-term-missing", missing.name)]


@pytest.mark.parametrize("changed", REQUIREMENTS, ids=lambda one: one.name)
def test_a_term_that_is_weakened_is_named(changed: Requirement) -> None:
    forms = [f"({one.forms[0]} && false)" if one is changed else one.forms[0] for one in REQUIREMENTS]
    assert found(" || ".join(forms)) == [("condition-term-changed", changed.name)]


def test_a_missing_term_says_what_is_lost_and_how_to_put_it_back() -> None:
    expression = verified_expression().replace('request.resource.resource != "leases" || ', "")
    (diagnosis,) = check_condition(entry(matchConditions=condition(expression)))
    assert "pingTime" in diagnosis.risk
    assert diagnosis.cure.endswith('request.resource.resource != "leases"')


def test_half_a_condition_is_still_taken_for_one() -> None:
    half = " || ".join(one.forms[0] for one in REQUIREMENTS[: len(REQUIREMENTS) // 2])
    assert drops_renewals(entry(matchConditions=condition(half)).webhook)
    less = " || ".join(one.forms[0] for one in REQUIREMENTS[: len(REQUIREMENTS) // 2 - 1])
    assert not drops_renewals(entry(matchConditions=condition(less)).webhook)


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        pytest.param('!request.namespace.startsWith("openshift-")', True, id="a beginning"),
        pytest.param('request.namespace != "shop"', True, id="one namespace"),
        pytest.param('!(request.namespace in ["shop", "bar"])', True, id="some namespaces"),
        pytest.param('request.namespace != "a" && "b" != request.namespace', True, id="two namespaces"),
        pytest.param('!request.namespace.startsWith("a") && has(object.spec)', False, id="with something else"),
        pytest.param('request.namespace != "a" || request.name != "b"', False, id="or something else"),
        pytest.param("object.spec.renewTime != null", False, id="a field that may be absent"),
    ],
)
def test_another_condition_may_only_leave_namespaces_out(expression: str, known: bool) -> None:
    conditions = [*condition(verified_expression()), {"name": "more", "expression": expression}]
    diagnoses = list(check_condition(entry(matchConditions=conditions)))
    assert [one.check for one in diagnoses] == ([] if known else ["condition-unknown"])


def test_a_long_unknown_term_is_cut() -> None:
    expression = f'{verified_expression()} || object.metadata.name == "{"x" * 200}"'
    ((check, place),) = found(expression)
    assert check == "condition-term-unknown"
    assert place.endswith("...")
    assert len(place) == 80
