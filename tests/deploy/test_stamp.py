"""The policies of the stamp agree with each other, with the code, and with the page about them."""

import re
from typing import Any

from tests.deploy.sources import DEPLOY, documents
from webhook.admission.rules.change import CLEANUP_CONTROLLERS, NODE_LEASES

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
    labels = [place["matchExpressions"][0] for place in places]
    assert [one["values"] for one in labels] == [["pending", "required"], ["required"], ["required"]]
    assert [place["matchExpressions"][1:] for place in places] == [places[0]["matchExpressions"][1:]] * 3
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [NODE_LEASES]}
    assert excluded in places[0]["matchExpressions"]
    rules = [policy["spec"]["matchConstraints"]["resourceRules"] for policy in POLICIES]
    assert [one["operations"] for (one,) in rules] == [
        ["CREATE", "UPDATE"],
        ["CREATE", "UPDATE", "DELETE"],
        ["CREATE", "UPDATE"],
    ]
    assert all(one | {"operations": []} == rules[0][0] | {"operations": []} for (one,) in rules)


def test_what_an_api_server_adds_is_written_out() -> None:
    """Else an equal apply by another field manager conflicts: matchConstraints is one value, with its defaults."""
    depth, _ = documents(DEPLOY / "depth-policy" / "policy.yaml")
    for policy in (*POLICIES, depth):
        constraints = policy["spec"]["matchConstraints"]
        assert {"matchPolicy", "objectSelector", "namespaceSelector"} <= constraints.keys(), policy["metadata"]
        assert all("scope" in rule for rule in constraints["resourceRules"])


def test_each_has_the_suffix_once_and_as_its_first_variable() -> None:
    text = (DEPLOY / "stamp" / "policies.yaml").read_text(encoding="utf-8")
    assert len(re.findall(r"expression: .*SUFFIX", text)) == len(POLICIES)
    assert [policy["spec"]["variables"][0] for policy in POLICIES] == [{"name": "suffix", "expression": "SUFFIX"}] * 3


def test_the_guard_reads_what_the_stamp_writes() -> None:
    stamp, guard, bounds = variables(STAMP), variables(GUARD), variables(BOUNDS)
    for name in ("requester", "pod", "own", "oldWriter"):
        assert stamp[name] == guard[name] == bounds[name]
    written = [f"lease-webhook/{name}-" for name in ("writer", "written", "term")]
    assert stamp["keys"] == guard["keys"] == bounds["keys"] == f"{written}.map(k, k + variables.suffix)"
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
    _, collectors, _ = GUARD["spec"]["matchConditions"]
    assert set(re.findall(r"'(system:[^']+)'", collectors["expression"])) == CLEANUP_CONTROLLERS


def test_the_exemptions_of_a_file_have_a_place_that_is_always_there() -> None:
    """An apply never removes a condition that another field manager wrote, and always replaces its expression."""
    assert GUARD["spec"]["matchConditions"][-1] == {"name": "not-exempt-by-file", "expression": "true"}


def test_the_bindings_deny_everywhere_that_the_policies_match() -> None:
    assert STAMP_BINDING["spec"] == {"policyName": STAMP["metadata"]["name"]}
    for policy, binding in ((GUARD, GUARD_BINDING), (BOUNDS, BOUNDS_BINDING)):
        assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}


def test_the_page_names_the_bounds_of_the_expressions() -> None:
    expressions = " ".join(one["expression"] for one in BOUNDS["spec"]["validations"])
    assert set(re.findall(r"<= (\d+)", expressions)) == {"64", "8", "253", "1024", "100", "16384", "86400"}
    table = PAGE.partition("### Bounds")[2].partition("\n## ")[0]
    for bound in (
        "100, of 16,384 characters",
        "64",
        "8; 8 of 1,024 characters",
        "253 characters",
        "a day",
        "999,999,999",
    ):
        assert f"| {bound}" in table
    assert "<= 49152" in variables(STAMP)["haveRoom"]
    assert "49,152 characters" in PAGE


def test_the_stamp_drops_what_the_bounds_would_refuse() -> None:
    stamp, bounds = variables(STAMP), " ".join(one["expression"] for one in BOUNDS["spec"]["validations"])
    drops = "".join(text for name, text in stamp.items() if name.startswith("drops"))
    of_others = {"64", "100", "16384", "8", "253"}
    assert set(re.findall(r"> (\d+)", drops)) == of_others | {"1000", "200", "32768"}
    assert of_others <= set(re.findall(r"<= (\d+)", bounds))


def test_a_spared_write_drops_what_would_leave_no_room_for_stamps() -> None:
    stamp = variables(STAMP)
    ends_room = {
        "dropsLabels": "size(variables.labels) > 1000 && size(variables.oldLabels) <= 1000",
        "dropsAnnotations": "!variables.haveRoom[1] && variables.haveRoom[0]",
        "dropsFinalizers": "size(variables.finalizers) > 200 && size(variables.oldFinalizers) <= 200",
        "dropsReferences": "!variables.fewReferences[1] && variables.fewReferences[0]",
    }
    for name, text in ends_room.items():
        assert f"variables.spared && {text}" in stamp[name]
