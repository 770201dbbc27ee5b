"""The objects of a fence: their texts, their determinism, and that no text of a policy file leaves its quotes."""

import ast
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.policy.fences.made import fence
from webhook.api_server.fence import objects as expressions
from webhook.api_server.fence.objects import BINDING, POLICY, make_fence_manifests
from webhook.text.yaml_writer import write_stream

CEL_STRING = re.compile(r'"([^"\\\n]|\\["\\]|\\[nrt]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*"')


def parts(**keys: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    policy, binding = make_fence_manifests(fence(**keys))
    assert (policy["kind"], binding["kind"]) == (POLICY, BINDING)
    return policy["spec"], binding["spec"]


def variable(name: str, **keys: Any) -> str:
    return str({one["name"]: one["expression"] for one in parts(**keys)[0]["variables"]}[name])


@given(st.text())
def test_every_literal_stays_within_its_quotes(text: str) -> None:
    written = expressions.make_literal(text)
    assert CEL_STRING.fullmatch(written)
    assert written.isascii()
    assert ast.literal_eval(written) == text


def test_hostile_names_are_quoted_even_where_the_policy_would_refuse_them() -> None:
    hostile = replace(fence(), name='x" || true || "', lease="a\nb", writers=(("shop", '"] || true //'),))
    (condition,) = expressions._match_writes(hostile, [])["matchConditions"]
    assert condition["expression"].startswith(
        r'request.userInfo.username in ["system:serviceaccount:shop:\"] || true //"]'
    )
    assert (
        r"shop/a\nb"
        in expressions._write_message_expression(hostile) + dict(expressions._list_variables(hostile))["lease"]
    )
    assert expressions._write_message_expression(hostile).endswith(r'" (fence x\" || true || \")"')


def test_the_same_fence_gives_the_same_text() -> None:
    assert write_stream(make_fence_manifests(fence())) == write_stream(make_fence_manifests(fence()))
    assert list(yaml.safe_load_all(write_stream(make_fence_manifests(fence())))) == make_fence_manifests(fence())


def test_the_pod_comes_from_the_token() -> None:
    assert variable("pod") == (
        'size(request.userInfo.?extra["authentication.kubernetes.io/pod-name"].orValue([])) == 1 '
        '? request.userInfo.?extra["authentication.kubernetes.io/pod-name"].orValue([])[0] : ""'
    )


@pytest.mark.parametrize(
    ("holder", "expression"),
    [
        pytest.param(
            ["${pod}_*"],
            '(variables.pod != "" && (variables.holder.startsWith(variables.pod + "_")'
            ' || variables.holder.startsWith(variables.host + "_")))',
            id="the default",
        ),
        pytest.param(
            ["${pod}"],
            '(variables.pod != "" && (variables.holder == variables.pod || variables.holder == variables.host))',
            id="the pod alone",
        ),
        pytest.param(
            ['x"${node}_*'],
            r'(variables.node != "" && (variables.holder.startsWith("x\"" + variables.node + "_")))',
            id="the node, and a quote",
        ),
    ],
)
def test_whose_the_holder_is(holder: list[str], expression: str) -> None:
    assert variable("leads", holder=holder) == expression


def test_several_templates_are_alternatives() -> None:
    assert variable("leads", holder=["${pod}_*", "${node}_*"]).count("\n|| ") == 1


def test_only_a_template_with_the_node_needs_it() -> None:
    assert "node" not in variable("writer")
    assert "node" in variable("writer", holder=["${node}_*"])


def test_rules_are_grouped_and_name_subresources() -> None:
    rules = parts(resources=["pods", "deployments.apps/scale", "secrets"])[0]["matchConstraints"]["resourceRules"]
    assert [(rule["apiGroups"], rule["resources"]) for rule in rules] == [
        ([""], ["pods", "secrets"]),
        (["apps"], ["deployments/scale"]),
    ]


def test_who_may_not_bind_a_pod_may_not_do_so_by_bindings_either() -> None:
    rules = parts(resources=["pods/binding"])[0]["matchConstraints"]["resourceRules"]
    assert [rule["resources"] for rule in rules] == [["pods/binding", "bindings"]]
    rules = parts(resources=["pods"])[0]["matchConstraints"]["resourceRules"]
    assert [rule["resources"] for rule in rules] == [["pods"]]


def test_namespaces_are_selected_by_the_label_that_nobody_can_change() -> None:
    assert parts()[0]["matchConstraints"]["namespaceSelector"] == {}
    assert parts(namespaces=["shop"])[0]["matchConstraints"]["namespaceSelector"] == {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}]
    }


@pytest.mark.parametrize(
    ("keys", "failure_policy", "not_found", "actions"),
    [
        pytest.param({"missing_lease": "deny"}, "Fail", "Deny", ["Deny", "Audit"], id="a missing lease denies"),
        pytest.param({}, "Fail", "Allow", ["Deny", "Audit"], id="a missing lease is allowed"),
        pytest.param({"mode": "warn"}, "Ignore", "Allow", ["Warn", "Audit"], id="warn never refuses"),
        pytest.param({"mode": "audit"}, "Ignore", "Allow", ["Audit"], id="audit never refuses"),
    ],
)
def test_what_each_setting_makes_of_a_failure_and_of_a_missing_lease(
    keys: dict[str, Any], failure_policy: str, not_found: str, actions: list[str]
) -> None:
    policy, binding = parts(**keys)
    assert policy["failurePolicy"] == failure_policy
    assert binding["paramRef"]["parameterNotFoundAction"] == not_found
    assert binding["validationActions"] == actions


UNHELD = 'params.?spec.?holderIdentity.orValue("") == ""'


def test_an_unheld_lease() -> None:
    assert parts()[0]["validations"][0]["expression"].split("\n|| ")[0] == UNHELD
    assert UNHELD not in parts(when_unheld="deny")[0]["validations"][0]["expression"]


def test_an_allowed_write_is_recognized_without_variables_by_the_match_condition() -> None:
    policy, _ = parts(holder=["${pod}_*", "${node}"])
    [validation], [condition] = policy["validations"], policy["matchConditions"]
    allowed, rest = validation["expression"].split("\n|| variables.leads")
    assert not rest
    assert "variables" not in allowed
    assert allowed.count("size(") == 2, "one term for each template"
    writers, rest = condition["expression"].split("\n&& ")
    assert writers == 'request.userInfo.username in ["system:serviceaccount:shop:operator"]'
    assert rest == f"!(({allowed}))"
