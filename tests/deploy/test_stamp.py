"""The policies of the stamp agree with each other, with the code, and with the page about them."""

import re
from typing import Any

from tests.deploy.sources import DEPLOY, documents
from webhook.rules.change import CLEANUP_CONTROLLERS, NODE_LEASES

STAMP, STAMP_BINDING, GUARD, GUARD_BINDING, BOUNDS, BOUNDS_BINDING = documents(DEPLOY / "stamp" / "policies.yaml")
POLICIES = (STAMP, GUARD, BOUNDS)
PAGE = (DEPLOY.parent / "docs" / "stamp.md").read_text(encoding="utf-8")


def variables(policy: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["expression"] for one in policy["spec"]["variables"]}


def test_an_error_refuses_and_the_stamp_is_made_once() -> None:
    assert [policy["spec"]["failurePolicy"] for policy in POLICIES] == ["Fail"] * 3
    assert STAMP["spec"]["reinvocationPolicy"] == "Never"


def test_all_are_about_the_same_leases_and_never_about_those_of_nodes() -> None:
    places = [policy["spec"]["matchConstraints"]["namespaceSelector"] for policy in POLICIES]
    assert places == [places[0]] * 3
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [NODE_LEASES]}
    assert excluded in places[0]["matchExpressions"]
    rules = [policy["spec"]["matchConstraints"]["resourceRules"] for policy in POLICIES]
    assert [one["operations"] for (one,) in rules] == [
        ["CREATE", "UPDATE"],
        ["CREATE", "UPDATE", "DELETE"],
        ["CREATE", "UPDATE"],
    ]
    assert all(one | {"operations": []} == rules[0][0] | {"operations": []} for (one,) in rules)


def test_each_has_the_suffix_once_and_as_its_first_variable() -> None:
    text = (DEPLOY / "stamp" / "policies.yaml").read_text(encoding="utf-8")
    assert len(re.findall(r"expression: .*SUFFIX", text)) == len(POLICIES)
    assert [policy["spec"]["variables"][0] for policy in POLICIES] == [{"name": "suffix", "expression": "SUFFIX"}] * 3


def test_the_guard_reads_what_the_stamp_writes() -> None:
    stamp, guard = variables(STAMP), variables(GUARD)
    assert stamp["requester"] == guard["requester"]
    assert stamp["pod"] == guard["pod"]
    written = [f"lease-webhook/{name}-" for name in ("writer", "written", "term")]
    assert [stamp[f"{name}Key"] for name in ("writer", "written", "term")] == [
        f"'{name}' + variables.suffix" for name in written
    ]
    assert guard["keys"] == variables(BOUNDS)["keys"] == f"{written}.map(k, k + variables.suffix)"
    (mutation,) = STAMP["spec"]["mutations"]
    manager, time = "lease-webhook-stamp", "2000-01-01T00:00:00Z"
    assert f"{{'manager': dyn('{manager}')" in mutation["jsonPatch"]["expression"]
    assert f"'time': dyn('{time}')" in mutation["jsonPatch"]["expression"]
    assert guard["stamped"].endswith(f"== ['{manager} {time}']")


def test_the_writer_itself_is_not_evaluated() -> None:
    how_it_is_deleted, *rest = GUARD["spec"]["validations"]
    assert "propagationPolicy" in how_it_is_deleted["expression"]
    for validation in rest:
        evaluated = validation["expression"].replace("object == null || ", "")
        evaluated = re.sub(r"^request\.operation != '\w+' \|\| ", "", evaluated)
        assert evaluated.startswith("variables.own || ")


def test_the_collectors_are_those_of_the_rules() -> None:
    _, collectors = GUARD["spec"]["matchConditions"]
    assert set(re.findall(r"'(system:[^']+)'", collectors["expression"])) == CLEANUP_CONTROLLERS


def test_the_bindings_deny_everywhere_that_the_policies_match() -> None:
    assert STAMP_BINDING["spec"] == {"policyName": STAMP["metadata"]["name"]}
    for policy, binding in ((GUARD, GUARD_BINDING), (BOUNDS, BOUNDS_BINDING)):
        assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}


def test_the_page_names_the_bounds_of_the_expressions() -> None:
    expressions = " ".join(one["expression"] for one in BOUNDS["spec"]["validations"])
    assert set(re.findall(r"<= (\d+)", expressions)) == {"64", "8", "253", "1024", "103", "16384", "86400"}
    for bound in ("100 annotations of 16,384", "64 labels", "8 finalizers", "8 owners", "1,024 characters", "a day"):
        assert bound in PAGE
    assert "<= 49152" in variables(STAMP)["fits"]
    assert "49,152 characters" in PAGE
