"""The verified condition is complete, and no term of it can go or change unnoticed."""

import pytest

from tests.doctor.shipped import NAME, condition, entry, verified_expression
from webhook.doctor import cel
from webhook.doctor.availability import drops_renewals
from webhook.doctor.renewal_condition import check_condition
from webhook.doctor.renewal_terms import CONDITION_TERMS, ConditionTerm

OLDER = """\
request.resource.resource != "leases" || request.operation != "UPDATE"
|| object.?spec.?holderIdentity.orValue("") != oldObject.?spec.?holderIdentity.orValue("")
|| object.?spec.?acquireTime.orValue(null) != oldObject.?spec.?acquireTime.orValue(null)
|| object.?spec.?leaseTransitions.orValue(0) != oldObject.?spec.?leaseTransitions.orValue(0)
|| (object.?spec.?strategy.orValue("") != "" && object.?spec.?strategy != oldObject.?spec.?strategy)
|| (object.?spec.?preferredHolder.orValue("") != ""
    && object.?spec.?preferredHolder != oldObject.?spec.?preferredHolder)
|| (object.?spec.?leaseDurationSeconds.orValue(86401) > 86400
    && object.?spec.?leaseDurationSeconds != oldObject.?spec.?leaseDurationSeconds)
|| object.?spec.?renewTime == oldObject.?spec.?renewTime
|| object.?spec.?renewTime.orValue(null) == null || oldObject.?spec.?renewTime.orValue(null) == null
|| object.spec.renewTime < "1970" || object.spec.renewTime > "2200"
|| oldObject.spec.renewTime < "1970" || oldObject.spec.renewTime > "2200"
|| timestamp(object.spec.renewTime) - timestamp(oldObject.spec.renewTime) > duration("24h")
|| (!has(object.metadata.managedFields) && has(oldObject.metadata.managedFields))
|| (has(object.metadata.managedFields)
    && object.metadata.managedFields.exists(m, m.?time.orValue(null) != null && size(m.time) != 20))
"""
"""The text that was shipped before."""

TERMS = [one.term for one in CONDITION_TERMS]


def found(expression: str) -> list[tuple[str, str]]:
    """(check, name of the term) of every diagnosis."""
    diagnoses = check_condition(entry(matchConditions=condition(expression)))
    return [(one.check, one.place.rpartition(", ")[2]) for one in diagnoses]


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(verified_expression(), id="as shipped"),
        pytest.param(" || ".join(reversed(TERMS)), id="in another order, each term of its own"),
    ],
)
def test_verified_texts_are_complete(expression: str) -> None:
    assert found(expression) == []


def test_the_shipped_condition_says_nothing_that_is_not_required() -> None:
    assert cel.terms(verified_expression()) == cel.terms(" || ".join(TERMS))
    assert len(cel.terms(verified_expression())) == len(CONDITION_TERMS)


@pytest.mark.parametrize("missing", CONDITION_TERMS, ids=lambda one: one.name)
def test_a_missing_term_is_named(missing: ConditionTerm) -> None:
    expression = " || ".join(one.term for one in CONDITION_TERMS if one is not missing)
    assert found(expression) == [("condition-term-missing", missing.name)]


@pytest.mark.parametrize("changed", CONDITION_TERMS, ids=lambda one: one.name)
def test_a_term_that_is_weakened_is_named(changed: ConditionTerm) -> None:
    forms = [f"({one.term} && false)" if one is changed else one.term for one in CONDITION_TERMS]
    assert found(" || ".join(forms)) == [("condition-term-changed", changed.name)]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        pytest.param('"holderIdentity", ', "", "holderIdentity", id="a field of the spec"),
        pytest.param('"ownerReferences", ', "", "ownerReferences", id="a field of the metadata"),
        pytest.param("size(after) != size(before) || ", "", "managedFields count", id="a term about the entries"),
    ],
)
def test_what_is_taken_out_of_a_list_is_named(old: str, new: str, name: str) -> None:
    assert old in verified_expression()
    assert found(verified_expression().replace(old, new)) == [("condition-term-missing", name)]


def test_a_bound_that_is_raised_is_named() -> None:
    raised = verified_expression().replace("size(after) > 50", "size(after) > 5000")
    assert found(raised) == [("condition-term-changed", "managedFields above 50")]


def test_the_older_text_is_named_once_with_what_it_misses() -> None:
    (diagnosis,) = check_condition(entry(matchConditions=condition(OLDER)))
    assert diagnosis.check == "condition-outdated"
    missed = diagnosis.place.partition(", without ")[2].split(", ")
    assert {"labels", "ownerReferences", "leaseDurationSeconds", "managedFields count", "ancient-changes"} <= {*missed}
    assert not {"acquireTime", "24 hours ahead", "resource"} & {*missed}
    assert "garbage collector" in diagnosis.risk
    assert "deploy/base/90-webhook.yaml" in diagnosis.cure


def test_the_older_text_drops_renewals() -> None:
    assert drops_renewals(entry(matchConditions=condition(OLDER)).webhook)


def test_a_term_that_the_older_text_had_is_named_beside_it() -> None:
    older = OLDER.replace('duration("24h")', 'duration("168h")')
    assert [check for check, _ in found(older)] == ["condition-outdated", "condition-term-changed"]


def test_a_missing_term_says_what_is_lost_and_how_to_put_it_back() -> None:
    expression = verified_expression().replace('request.resource.resource != "leases" || ', "")
    (diagnosis,) = check_condition(entry(matchConditions=condition(expression)))
    assert "pingTime" in diagnosis.risk
    assert diagnosis.cure.endswith('request.resource.resource != "leases"')


def test_half_a_condition_is_still_taken_for_one() -> None:
    half = " || ".join(TERMS[: len(TERMS) // 2])
    assert drops_renewals(entry(matchConditions=condition(half)).webhook)
    less = " || ".join(TERMS[: len(TERMS) // 2 - 1])
    assert not drops_renewals(entry(matchConditions=condition(less)).webhook)


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        pytest.param('!request.namespace.startsWith("openshift-")', True, id="a beginning"),
        pytest.param('request.namespace != "shop"', True, id="one namespace"),
        pytest.param('!(request.namespace in ["shop", "bar"])', True, id="some namespaces"),
        pytest.param('request.namespace != "a" && "b" != request.namespace', True, id="two namespaces"),
        pytest.param('["a", "b"].all(n, request.namespace != n)', False, id="a form that nobody verified"),
        pytest.param('!request.namespace.startsWith("")', False, id="no beginning: every namespace"),
        pytest.param("!request.namespace.startsWith('')", False, id="no beginning, in other quotes"),
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
        pytest.param('!request.namespace.startsWith("a") && has(object.spec)', False, id="with something else"),
        pytest.param('request.namespace != "a" || request.name != "b"', False, id="or something else"),
        pytest.param("true", True, id="nothing"),
        pytest.param("false", False, id="everything"),
        pytest.param("object.spec.renewTime != null", False, id="a field that may be absent"),
    ],
)
def test_another_condition_may_only_leave_namespaces_out(expression: str, known: bool) -> None:
    conditions = [*condition(verified_expression()), {"name": "more", "expression": expression}]
    diagnoses = list(check_condition(entry(matchConditions=conditions)))
    assert [one.check for one in diagnoses] == ([] if known else ["condition-unknown"])


@pytest.mark.parametrize(
    ("excluded", "checks"),
    [
        pytest.param(['request.namespace != "shop"'], [], id="one of the two"),
        pytest.param(
            ['request.namespace != "shop"', '!(request.namespace in ["bar"])'], ["condition-never-true"], id="both"
        ),
        pytest.param(
            ['request.namespace != "shop" && !request.namespace.startsWith("ba")'],
            ["condition-never-true"],
            id="both, in one condition",
        ),
    ],
)
def test_conditions_leave_something_of_what_the_selector_chose(excluded: list[str], checks: list[str]) -> None:
    chosen = {"matchExpressions": [{"key": NAME, "operator": "In", "values": ["shop", "bar"]}]}
    more = [{"name": f"more-{number}", "expression": text} for number, text in enumerate(excluded)]
    conditions = [*condition(verified_expression()), *more]
    diagnoses = check_condition(entry(matchConditions=conditions, namespaceSelector=chosen))
    assert [one.check for one in diagnoses] == checks


def test_a_long_unknown_term_is_cut() -> None:
    expression = f'{verified_expression()} || object.metadata.name == "{"x" * 200}"'
    ((check, place),) = found(expression)
    assert check == "condition-term-unknown"
    assert place.endswith("...")
    assert len(place) == 80
