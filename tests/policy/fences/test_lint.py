"""What is valid in a fence and may still not be what its author meant."""

from tests.policy.fences.made import FENCE, STAMPS
from tests.policy.files import policy
from webhook.admission.policy.explain import list_oddities

NODE = {"lease": "shop/other", "holder": ["${node}_*"], "mode": "warn", "name": "other"}
BOUND = {"namespace": "shop", "lease": "operator", "writers": ["shop/operator"], "holder": ["${pod}_*"]}


def test_notes_on_stamps() -> None:
    here = {**FENCE, "namespaces": ["shop"]}
    fences = [{**here, "token": True, "name": "one"}, {**here, "holder": ["${pod}"], "name": "two"}]
    assert list_oddities(policy(fences=fences, stamps=STAMPS), 0) == [
        "fences[0] (one).token: a Scale has no annotations: there the writer is compared, but no term",
    ]


def test_a_status_that_is_not_listed_is_named() -> None:
    resources = ["services", "jobs.batch", "jobs.batch/status", "configmaps", "widgets.example.com"]
    here = {**FENCE, "namespaces": ["shop"], "resources": resources}
    assert list_oddities(policy(fences=[{**here, "token": True}], stamps=STAMPS), 0) == [
        (
            "fences[0] (shop-operator).resources: the content of services/status is not fenced, only the metadata that "
            "it may change; list it unless followers write it"
        ),
    ]
    assert list_oddities(policy(fences=[here], stamps=STAMPS), 0) == []


def test_a_status_that_may_store_no_token_is_named() -> None:
    stored = ["services", "services/status", "ingresses.networking.k8s.io", "ingresses.networking.k8s.io/status"]
    resources = [*stored, "widgets.example.com", "widgets.example.com/status"]
    here = {**FENCE, "namespaces": ["shop"], "resources": resources}
    assert list_oddities(policy(fences=[{**here, "token": True}], stamps=STAMPS), 0) == [
        (
            "fences[0] (shop-operator).token: a write of widgets.example.com/status may store no token: its term is "
            "compared with the token that the leader's last write of the resource itself left"
        ),
    ]
    assert list_oddities(policy(fences=[here], stamps=STAMPS), 0) == []


def test_no_setting_is_suggested_that_a_token_forbids() -> None:
    fence = {**FENCE, "token": True, "missing_lease": "deny"}
    (odd,) = [one for one in list_oddities(policy(fences=[fence], stamps=STAMPS), 0) if "does not exist" in one]
    assert odd.endswith("by anyone, in every namespace; list namespaces")


def test_what_is_odd_about_fences() -> None:
    compiled = policy(fences=[{**FENCE, "missing_lease": "deny"}, {**FENCE, **NODE}], bindings=[BOUND])
    assert list_oddities(compiled, 0) == [
        (
            "fences[0] (shop-operator): while lease shop/operator does not exist, API servers refuse these writes by "
            "anyone, in every namespace; list namespaces, or set missing_lease: allow"
        ),
        (
            "fences[1] (other): lease shop/other has no binding: anyone with write access to it can move the fence; "
            "add it to bindings"
        ),
        "fences[1] (other).holder: ${node} cannot distinguish two pods on the same node",
    ]
