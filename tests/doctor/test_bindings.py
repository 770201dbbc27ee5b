"""`doctor` reports a second binding of one of our policies; each test adds one binding."""

import pytest

from tests.factories import Document
from tests.policy.fences.made import fence
from webhook.admission.policy.parse import parse
from webhook.api_server.doctor.bindings import examine_bindings
from webhook.api_server.doctor.documents import Documents
from webhook.api_server.fence.objects import BINDING, MUTATING_BINDING, make_fence_manifests
from webhook.api_server.install.objects import make_stamp_objects
from webhook.api_server.rule_policies import make_shipped_manifests

FENCED = make_fence_manifests(fence())
APPLIED = [
    *make_shipped_manifests(parse("apiVersion: lease-webhook/v1"), 0),
    *make_stamp_objects("5f3a9c1e"),
    *FENCED,
]


def bound(policy: str, name: str = "foo", kind: str = BINDING) -> Document:
    return {"kind": kind, "metadata": {"name": name}, "spec": {"policyName": policy, "validationActions": ["Deny"]}}


def list_findings(*more: Document, applied: list[Document] = APPLIED, has_file: bool = False) -> list[tuple[str, str]]:
    reports = examine_bindings(Documents([*applied, *more]), [fence()] if has_file else [])
    return [(one.check, one.place) for report in reports for one in report.findings]


def test_what_is_printed_has_no_other_binding() -> None:
    assert list_findings() == []


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param(bound("lease-webhook-rules-leases-warn"), id="of rules"),
        pytest.param(
            bound("lease-webhook-rules-leases-warn", "lease-webhook-rules-leases-warn-copy"), id="of our prefix"
        ),
        pytest.param(bound("lease-webhook-rules-old-deny"), id="of rules of an earlier version"),
        pytest.param(bound("lease-webhook-stamp-guard"), id="of the guard of stamps"),
        pytest.param(bound("lease-webhook-stamp", kind=MUTATING_BINDING), id="of what stamps"),
        pytest.param(bound("lease-webhook-depth"), id="of the depth policy"),
        pytest.param(bound("fence-shop-operator"), id="of a fence"),
    ],
)
def test_another_binding_of_ours_is_found(binding: Document) -> None:
    name, policy = binding["metadata"]["name"], binding["spec"]["policyName"]
    assert list_findings(binding) == [("policy-bound-again", f"{binding['kind']} {name}: policyName: {policy}")]


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param(bound("somebody-elses"), id="of a policy of others"),
        pytest.param(
            bound("lease-webhook-rules-old-deny", "lease-webhook-rules-old-deny"), id="a pair that is left over"
        ),
        pytest.param(
            bound("lease-webhook-rules-leases-audit", "lease-webhook-rules-leases-deny"), id="a binding that differs"
        ),
        pytest.param({"kind": BINDING, "metadata": {"name": "foo"}, "spec": {}}, id="of no policy"),
    ],
)
def test_other_bindings_are_none_of_its_business(binding: Document) -> None:
    assert list_findings(binding) == []


def test_a_fence_of_the_file_that_is_not_applied_is_known() -> None:
    assert list_findings(bound("fence-shop-operator"), applied=[]) == []
    assert len(list_findings(bound("fence-shop-operator"), applied=[], has_file=True)) == 1


def test_a_copy_of_a_binding_that_keeps_its_labels_is_found() -> None:
    _, binding = FENCED[:2]
    copied = binding | {"metadata": binding["metadata"] | {"name": "acme-fence-shop-operator"}}
    assert [check for check, _ in list_findings(copied)] == ["policy-bound-again"]
