"""Only the label that nobody can change keeps a namespace out."""

from typing import Any

import msgspec
import pytest

from tests.doctor.shipped import NAME, entry
from webhook.api_server.doctor.checks import check_namespaces
from webhook.api_server.doctor.documents import is_opt_in, may_select
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
