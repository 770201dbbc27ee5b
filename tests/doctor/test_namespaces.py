"""Only the label that nobody can change keeps a namespace out."""

import copy
from typing import Any

import msgspec
import pytest

from tests.doctor.shipped import NAME, NOW, document, entry
from webhook.admission.policy.file import load
from webhook.api_server.doctor.checks import Report, check_namespaces, examine
from webhook.api_server.doctor.documents import Documents, can_select, is_opt_in, may_select
from webhook.api_server.fence.objects import POLICY
from webhook.api_server.rule_policies import make_shipped_manifests
from webhook.kubernetes.selectors import Selector


def selector(**fields: Any) -> Selector:
    return msgspec.convert(fields, Selector)


def expression(key: str, operator: str, *values: str) -> Selector:
    return selector(matchExpressions=[{"key": key, "operator": operator, "values": list(values)}])


@pytest.mark.parametrize(
    ("given", "selected"),
    [
        pytest.param(None, True, id="no selector"),
        pytest.param(selector(), True, id="an empty selector"),
        pytest.param(expression(NAME, "NotIn", "kube-system"), False, id="name NotIn it"),
        pytest.param(expression(NAME, "NotIn", "shop"), True, id="name NotIn another"),
        pytest.param(expression(NAME, "In", "shop"), False, id="name In another"),
        pytest.param(selector(matchLabels={NAME: "kube-system"}), True, id="name is it"),
        pytest.param(selector(matchLabels={NAME: "shop"}), False, id="name is another"),
        pytest.param(expression(NAME, "DoesNotExist"), False, id="no name, which cannot be"),
        pytest.param(expression(NAME, "Exists"), True, id="any name"),
        pytest.param(expression("team", "NotIn", "x"), True, id="another label NotIn"),
        pytest.param(expression("team", "In", "x"), True, id="another label In: it can be set"),
        pytest.param(expression("control-plane", "DoesNotExist"), True, id="another label absent: it can be removed"),
    ],
)
def test_may_select_kube_system(given: Selector | None, selected: bool) -> None:
    assert may_select(given, "kube-system") is selected


@pytest.mark.parametrize(
    ("given", "opted"),
    [
        pytest.param(None, False, id="no selector"),
        pytest.param(expression(NAME, "NotIn", "kube-system"), False, id="names left out"),
        pytest.param(expression(NAME, "Exists"), False, id="any name"),
        pytest.param(expression(NAME, "In", "shop"), True, id="names taken in"),
        pytest.param(expression("team", "Exists"), True, id="a label"),
        pytest.param(selector(matchLabels={"team": "x"}), True, id="a label with a value"),
        pytest.param(expression("team", "DoesNotExist"), False, id="a label to get out"),
    ],
)
def test_opt_in_means_that_a_new_namespace_is_outside(given: Selector | None, opted: bool) -> None:
    assert is_opt_in(given) is opted


@pytest.mark.parametrize(
    ("given", "possible"),
    [
        pytest.param(None, True, id="no selector"),
        pytest.param(expression(NAME, "In", "shop"), True, id="a name"),
        pytest.param(expression(NAME, "NotIn", "shop"), True, id="any other name"),
        pytest.param(expression(NAME, "Exists"), True, id="any name"),
        pytest.param(expression(NAME, "DoesNotExist"), False, id="no name, which cannot be"),
        pytest.param(expression(NAME, "In"), False, id="none of no names"),
        pytest.param(expression("team", "DoesNotExist"), True, id="no label"),
        pytest.param(
            selector(matchLabels={"team": "a"}, matchExpressions=[{"key": "team", "operator": "DoesNotExist"}]),
            False,
            id="a label and not that label",
        ),
        pytest.param(
            selector(
                matchLabels={"team": "a"}, matchExpressions=[{"key": "team", "operator": "NotIn", "values": ["a"]}]
            ),
            False,
            id="a value and any other",
        ),
        pytest.param(
            selector(
                matchLabels={"tier": "x"}, matchExpressions=[{"key": "team", "operator": "NotIn", "values": ["a"]}]
            ),
            True,
            id="labels that have nothing to do with each other",
        ),
    ],
)
def test_a_selector_that_no_namespace_can_meet(given: Selector | None, possible: bool) -> None:
    assert can_select(given) is possible


def namespaces(**labels: dict[str, str]) -> list[dict[str, Any]]:
    return [{"kind": "Namespace", "metadata": {"name": name, "labels": one}} for name, one in labels.items()]


READ = namespaces(**{"kube-system": {}, "lease-webhook": {}, "kube-public": {}, "pay": {}, "shop": {"team": "a"}})
NOT_SYSTEM = [{"key": NAME, "operator": "NotIn", "values": ["kube-system", "kube-node-lease"]}]
OPT_IN = {"matchLabels": {"team": "a"}, "matchExpressions": NOT_SYSTEM}
NOWHERE = {"matchLabels": {"team": "b"}, "matchExpressions": NOT_SYSTEM}


def reports(*objects: dict[str, Any], is_of_a_cluster: bool = True) -> list[Report]:
    found = Documents([*objects, *READ], () if is_of_a_cluster else None)
    return [one for one in examine(found, None, NOW) if one.about == "configuration"]


def two(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """A configuration in which only the second entry reviews deletions."""
    whole = document(namespaceSelector=first)
    other = document(namespaceSelector=second)["webhooks"][0] | {"name": "second.example"}
    for rule in whole["webhooks"][0]["rules"]:
        rule["operations"] = ["CREATE", "UPDATE"]
    whole["webhooks"].append(other)
    return whole


@pytest.mark.parametrize(
    ("configuration", "is_of_a_cluster", "expected"),
    [
        pytest.param(document(), True, [], id="as shipped"),
        pytest.param(document(namespaceSelector=OPT_IN), True, [], id="a label that one namespace has"),
        pytest.param(document(namespaceSelector=NOWHERE), True, ["selects-no-namespace"], id="a label that none has"),
        pytest.param(document(namespaceSelector=NOWHERE), False, [], id="of a file, which may lack namespaces"),
        pytest.param(
            document(namespaceSelector={"matchExpressions": [{"key": NAME, "operator": "DoesNotExist"}]}),
            False,
            ["selects-no-namespace"],
            id="of a file, what none can meet",
        ),
        pytest.param(two(OPT_IN, OPT_IN), True, [], id="two entries that review everything together"),
        pytest.param(
            two(OPT_IN, NOWHERE), True, ["operation-missing"] * 2, id="what is reviewed in no namespace is missing"
        ),
    ],
)
def test_a_webhook_that_no_namespace_leads_to_is_not_called_safe(
    configuration: dict[str, Any], is_of_a_cluster: bool, expected: list[str]
) -> None:
    found = reports(configuration, is_of_a_cluster=is_of_a_cluster)
    assert [finding.check for one in found for finding in one.findings] == expected


RULES = make_shipped_manifests(load("standard"), 0)


@pytest.mark.parametrize(
    ("objects", "is_of_a_cluster", "expected"),
    [
        pytest.param([document()], True, "", id="as shipped"),
        pytest.param([document(namespaceSelector=OPT_IN)], True, ": pay", id="it selects another"),
        pytest.param([document(namespaceSelector=OPT_IN)], False, "", id="of a file"),
        pytest.param([document(namespaceSelector=OPT_IN), *RULES], True, "", id="policies select the rest"),
        pytest.param(
            [document(namespaceSelector=NOWHERE), *namespaces(**{f"n{at}": {} for at in range(5)})],
            True,
            ": n0, n1, n2, n3, n4 and 2 more",
            id="many",
        ),
        pytest.param([document(namespaceSelector=OPT_IN), document()], True, "", id="another webhook selects the rest"),
    ],
)
def test_namespaces_that_somebody_left_out_are_a_fact(
    objects: list[dict[str, Any]], is_of_a_cluster: bool, expected: str
) -> None:
    notes = [one.note for one in reports(*objects, is_of_a_cluster=is_of_a_cluster) if one.note]
    assert notes == ([f"left out by namespaceSelector, so no rule is in force there{expected}"] if expected else [])


def test_policies_that_select_no_namespace_are_not_in_force() -> None:
    objects = copy.deepcopy(RULES)
    for one in objects:
        if one["kind"] == POLICY:
            one["spec"]["matchConstraints"]["namespaceSelector"] = NOWHERE
    (report,) = reports(*objects)
    assert [one.check for one in report.findings] == ["not-registered"]
    assert report.findings[0].place.endswith("; the policies that have its rules select no namespace")
    (of_a_file,) = reports(*objects, is_of_a_cluster=False)
    assert not of_a_file.findings


@pytest.mark.parametrize("namespace", ["kube-system", "kube-node-lease"])
def test_a_written_choice_is_respected_where_it_is_careful(namespace: str) -> None:
    choice = {"kube-system": "control-plane", "kube-node-lease": "node-leases"}[namespace]
    chosen = entry({f"lease-webhook/{choice}": "reviewed"}, namespaceSelector={"matchLabels": {NAME: namespace}})
    assert list(check_namespaces(chosen)) == []
    unchosen = entry(namespaceSelector={"matchLabels": {NAME: namespace}})
    assert [one.check for one in check_namespaces(unchosen)] == [f"{choice}-in-scope"]


def test_a_webhook_in_kube_system_is_reported_once() -> None:
    client = {"service": {"namespace": "kube-system", "name": "webhook", "path": "/validate"}}
    findings = check_namespaces(entry(clientConfig=client, namespaceSelector=None))
    assert [one.check for one in findings] == ["control-plane-in-scope", "node-leases-in-scope"]
