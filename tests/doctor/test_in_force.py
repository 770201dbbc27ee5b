"""What `status` concludes from the answer of an API server, from objects and from metrics."""

import datetime as dt
from typing import Any

import pytest

from tests.doctor.shipped import document
from webhook.admission.policy.file import load
from webhook.api_server.doctor.documents import VALIDATING, Documents
from webhook.api_server.doctor.in_force import Fact, describe_exclusion, find_facts, interpret_proof, parse_samples

NOW = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
STANDARD = "apiVersion: lease-webhook/v1\npreset: standard\n"
DIGEST = load("standard").digest


@pytest.mark.parametrize(
    ("is_created", "message", "expected"),
    [
        pytest.param(
            False, "denied: (lease webhook, rule time-unreadable)", (True, "the webhook refused"), id="refused"
        ),
        pytest.param(True, "Warning: time-unreadable: ...", (True, "the webhook warned of"), id="observed"),
        pytest.param(True, "", (False, "would store"), id="not reviewed"),
        pytest.param(
            False, "x\nfailed calling webhook: refused", (False, "failed calling webhook: refused"), id="down"
        ),
        pytest.param(False, "Unauthorized", (None, "Unauthorized"), id="no credentials"),
        pytest.param(
            False,
            'leases.coordination.k8s.io is forbidden: User "ann" cannot create resource "leases" in API group'
            ' "coordination.k8s.io" in the namespace "default"',
            (None, "the dry run needs the right to create leases: try -n NAMESPACE"),
            id="no right to create leases",
        ),
        pytest.param(
            False,
            'Internal error occurred: parsing time "10000-01-01T00:59:59.999999Z" as "2006-01-02T15:04:05.000000"',
            (None, "status -n NAMESPACE tries another one, without stamps"),
            id="a namespace with stamps",
        ),
        pytest.param(
            False,
            "ValidatingAdmissionPolicy 'lease-webhook-rules-leases-deny' denied: (lease webhook, rule time-unreadable",
            (True, "a policy of the API server refused"),
            id="policies only",
        ),
    ],
)
def test_the_answer_to_a_write_that_only_we_refuse(
    is_created: bool, message: str, expected: tuple[bool | None, str]
) -> None:
    known, reason = interpret_proof(is_created=is_created, said=message)
    assert known is expected[0]
    assert expected[1] in reason


def named(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "lease-webhook"}, **fields}


def deployed(ready: int = 2) -> list[dict[str, Any]]:
    return [
        document(),
        named("ConfigMap", "lease-webhook-policy", data={"policy.yaml": STANDARD}),
        named("Deployment", "somebody-elses", spec={}),
        named("Deployment", "lease-webhook", spec={"replicas": 2}, status={"readyReplicas": ready}),
    ]


def test_the_recorder_is_a_stateful_set() -> None:
    recorder = named("StatefulSet", "lease-recorder", spec={"replicas": 1}, status={})
    assert Fact("recorder", "0 of 1 ready", is_wrong=True) in seen([*deployed(), recorder], metrics())


def metrics(digest: str = DIGEST, mode: str = "", ends: dt.datetime = NOW + dt.timedelta(days=80)) -> str:
    return (
        "# HELP lease_webhook_policy_info 1 for the policy in force.\n"
        f'lease_webhook_policy_info{{hash="{digest}",mode="{mode}",preset="standard"}} 1.0\n'
        f'lease_webhook_certificate_not_after_seconds{{certificate="serving"}} {ends.timestamp()}\n'
        'lease_webhook_reviews_total{event="steal",operation="UPDATE",resource="leases",verdict="denied"} 3.0\n'
        'lease_webhook_reviews_total{event="create",operation="CREATE",resource="leases",verdict="allowed"} 1204.0\n'
        'lease_webhook_findings_total{mode="deny",rule="takeover-across-namespaces"} 3.0\n'
        'lease_webhook_findings_total{mode="deny",rule="never-found"} 0.0\n'
        "lease_webhook_in_flight 0.0\n"
    )


def seen(documents: list[dict[str, Any]], *texts: str) -> list[Fact]:
    inventory = Documents(documents)
    pods = [sample for number, text in enumerate(texts) for sample in parse_samples(f"pod-{number}", text)]
    return list(find_facts(inventory, pods, NOW))


def test_a_whole_installation_has_nothing_wrong() -> None:
    facts = seen(deployed(), metrics(), metrics())
    assert not [one for one in facts if one.is_wrong]
    texts = [f"{one.subject}: {one.text}" for one in facts]
    assert texts[0].startswith(
        "configuration: lease-webhook: leases.lease-webhook.svc, failurePolicy Ignore, 2 s, CA until"
    )
    assert texts[1:] == [
        "pods: 2 of 2 ready",
        "certificate: until 2027-02-11 12:00Z",
        f"policy: standard {DIGEST} in pod-0, as in the ConfigMap",
        f"policy: standard {DIGEST} in pod-1, as in the ConfigMap",
        "verdicts: 2,408 allowed, 0 warned, 6 denied since the pods started; takeover-across-namespaces 6",
    ]


def wrong(documents: list[dict[str, Any]], *texts: str) -> list[str]:
    return [one.text for one in seen(documents, *texts) if one.is_wrong]


def test_a_pod_that_has_another_policy_is_wrong() -> None:
    (text,) = wrong(deployed(), metrics(), metrics(digest="0" * 8))
    assert text.startswith(f"standard 00000000 in pod-1; the ConfigMap has standard {DIGEST}: ")


def test_the_kill_switch_is_wrong() -> None:
    (text,) = wrong(deployed(), metrics(mode="off"))
    assert "every write is allowed" in text


def test_a_policy_that_is_refused_is_wrong_and_what_pods_have_is_not_compared() -> None:
    objects = deployed()
    objects[1]["data"]["policy.yaml"] = "preset: lax"
    assert [text.partition(":")[0] for text in wrong(objects, metrics())] == ["the ConfigMap is refused"]
    assert f"standard {DIGEST} in pod-0; what the ConfigMap has is not known" in [
        one.text for one in seen(objects, metrics())
    ]


def test_missing_pods_and_a_certificate_that_ends_soon_are_wrong() -> None:
    soon = metrics(ends=NOW + dt.timedelta(days=13))
    assert wrong(deployed(ready=1), soon) == ["1 of 2 ready", "until 2026-12-06 12:00Z"]


def test_one_pod_more_than_wanted_is_an_update_and_not_wrong() -> None:
    facts = seen(deployed(ready=3), metrics())
    assert Fact("pods", "3 of 2 ready") in facts


def test_a_finding_of_doctor_about_ours_is_wrong_and_one_about_another_is_not_ours() -> None:
    objects = deployed()
    objects[0]["webhooks"][0]["timeoutSeconds"] = 10
    other = document()
    other["metadata"]["name"] = "other"
    other["webhooks"][0] |= {"name": "other.example", "failurePolicy": "Fail"}
    other["webhooks"][0]["rules"][0]["apiGroups"] = ["*"]
    del other["webhooks"][0]["rules"][1]
    assert [text.partition(":")[0] for text in wrong([*objects, other])] == ["timeout-too-long"]


def test_without_a_configuration_nothing_is_registered() -> None:
    (text,) = wrong([])
    assert text.startswith("not-registered")


def bound(kind: str, name: str, **spec: Any) -> list[dict[str, Any]]:
    """A policy and its binding."""
    return [named(kind, name, spec={}), named(f"{kind}Binding", name, spec={"policyName": name, **spec})]


def test_policies_of_the_api_server_need_no_webhook() -> None:
    rules = bound("ValidatingAdmissionPolicy", "lease-webhook-rules-leases-deny", validationActions=["Deny"])
    assert seen(rules) == [Fact("API server's policy", "lease-webhook-rules-leases-deny: Deny")]


def test_a_policy_that_is_never_evaluated_is_not_in_force() -> None:
    policy, binding = bound("ValidatingAdmissionPolicy", "lease-webhook-rules-leases-deny", validationActions=["Deny"])
    policy["spec"] = {"matchConstraints": {"resourceRules": [{"operations": ["CONNECT"]}]}}
    assert [text.partition(":")[0] for text in wrong([policy, binding])] == ["not-registered"]


def test_a_binding_of_rules_without_its_policy_puts_no_rule_in_force() -> None:
    _, binding = bound("ValidatingAdmissionPolicy", "lease-webhook-rules-leases-deny", validationActions=["Deny"])
    assert [text.partition(":")[0] for text in wrong([binding])] == [
        "not-registered",
        "lease-webhook-rules-leases-deny",
    ]


def stamping(action: str = "Deny") -> list[dict[str, Any]]:
    shop = named("Namespace", "shop") | {"metadata": {"name": "shop", "labels": {"lease-webhook/stamp": "required"}}}
    return [
        shop,
        named("Namespace", "other"),
        *bound("MutatingAdmissionPolicy", "lease-webhook-stamp"),
        *bound("ValidatingAdmissionPolicy", "lease-webhook-stamp-guard", validationActions=[action]),
        *bound("ValidatingAdmissionPolicy", "lease-webhook-stamp-bounds", validationActions=["Deny"]),
    ]


def test_stamps_are_in_force_without_a_webhook() -> None:
    assert seen(stamping())[-1] == Fact("stamps", "shop: in force; they need no webhook")


def test_a_webhook_whose_policy_is_not_known_must_list_the_namespaces_with_stamps() -> None:
    expected = "shop: in force; the webhook's policy file must list these namespaces under `stamps`: docs/stamp.md"
    assert seen([*stamping(), document()])[-1] == Fact("stamps", expected)


def test_a_webhook_whose_policy_lists_no_stamps_is_wrong_where_writers_are_stamped() -> None:
    (text,) = wrong([*deployed(), *stamping()])
    assert text.startswith("shop: not listed under `stamps` in the webhook's policy")


def test_a_webhook_whose_policy_lists_the_stamps_is_in_order() -> None:
    objects = [*deployed(), *stamping()]
    objects[1]["data"]["policy.yaml"] += "stamps: [{suffix: 5f3a9c1e, namespaces: [shop]}]\n"
    assert not wrong(objects)
    assert Fact("stamps", "shop: in force") in seen(objects)


def test_a_namespace_that_is_not_labeled_has_no_stamps() -> None:
    assert "stamps" not in {one.subject for one in seen(stamping()[1:])}


def test_a_binding_without_its_policy_is_wrong() -> None:
    objects = stamping()
    del objects[2]
    assert wrong(objects)[1:] == [
        "lease-webhook-stamp: its policy does not exist",
        "shop: not in force: lease-webhook-stamp",
    ]


@pytest.mark.parametrize("objects", [stamping("Audit"), stamping()[:4] + stamping()[6:]], ids=["audit", "deleted"])
def test_a_guard_that_refuses_nothing_is_wrong(objects: list[dict[str, Any]]) -> None:
    assert wrong(objects)[1:] == ["shop: not in force: lease-webhook-stamp-guard"]


def test_a_configuration_that_could_not_be_read_is_not_called_missing() -> None:
    assert not [*find_facts(Documents([], [VALIDATING]), [], NOW)]


def test_a_configuration_without_a_ca_says_so() -> None:
    objects = deployed()
    objects[0]["webhooks"][0]["clientConfig"].pop("caBundle")
    assert "no CA" in seen(objects)[0].text


def test_bindings_of_fences_stamps_and_policies_are_shown() -> None:
    policy, fence = bound("ValidatingAdmissionPolicy", "fence-shop", validationActions=["Warn", "Audit"])
    fence["metadata"]["labels"] = {
        "app.kubernetes.io/component": "fence",
        "app.kubernetes.io/managed-by": "lease-webhook",
    }
    stamp = bound("MutatingAdmissionPolicy", "lease-webhook-stamp")
    others = named("ValidatingAdmissionPolicyBinding", "somebody-elses", spec={})
    facts = seen([policy, fence, *stamp, others])[1:]
    assert [(one.subject, one.text) for one in facts] == [
        ("fence", "fence-shop: Warn, Audit"),
        ("API server's policy", "lease-webhook-stamp: mutates"),
    ]


def test_another_binding_of_a_policy_is_wrong() -> None:
    rules = bound("ValidatingAdmissionPolicy", "lease-webhook-rules-leases-warn", validationActions=["Warn"])
    again = named("ValidatingAdmissionPolicyBinding", "foo", spec=rules[1]["spec"])
    (text,) = wrong([*rules, again])
    assert text.startswith("policy-bound-again: ValidatingAdmissionPolicyBinding foo: ")


ABOUT_LEASES = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "operations": ["CREATE"]}]


def rule_policies(selector: Any, rules: Any = ABOUT_LEASES, said: str = "time-unreadable") -> list[dict[str, Any]]:
    """Two policies with their bindings, and one that has none."""
    objects = [
        one
        for mode in ("deny", "warn")
        for one in bound("ValidatingAdmissionPolicy", f"lease-webhook-rules-leases-{mode}", validationActions=["Deny"])
    ]
    objects.append(named("ValidatingAdmissionPolicy", "lease-webhook-rules-leases-audit", spec={}))
    for policy in objects[::2]:
        policy["spec"]["matchConstraints"] = {"namespaceSelector": selector, "resourceRules": rules}
        policy["spec"]["validations"] = [{"expression": "true", "message": f"(lease webhook, rule {said})"}]
    return objects


def renamed(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same policies and bindings under other names."""
    for one in objects:
        one["metadata"]["name"] += "-2"
        if "policyName" in one["spec"]:
            one["spec"]["policyName"] += "-2"
    return objects


NOT_SYSTEM = {
    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]
}


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize(
    ("objects", "name", "expected"),
    [
        pytest.param([document()], "shop", "", id="selected"),
        pytest.param([document(), namespace("shop")], "shop", "", id="selected, with its labels known"),
        pytest.param([], "kube-system", "", id="no webhook"),
        pytest.param([document()], "kube-system", "kubernetes.io/metadata.name notin (", id="left out by its name"),
        pytest.param(
            [document(), namespace("kube-system", team="a")],
            "kube-system",
            "leases.lease-webhook.svc selects namespaces with kubernetes.io/metadata.name notin (",
            id="left out, with its labels known",
        ),
        pytest.param(rule_policies(NOT_SYSTEM), "shop", "", id="selected by policies"),
        pytest.param(
            rule_policies(NOT_SYSTEM),
            "kube-system",
            ": lease-webhook-rules-leases-deny and 1 more select namespaces with kubernetes.io/metadata.name notin (",
            id="left out by policies",
        ),
        pytest.param([document(), *rule_policies(None)], "kube-system", "", id="selected by policies alone"),
        pytest.param(rule_policies(5), "kube-system", "", id="a policy whose selector cannot be read"),
        pytest.param(rule_policies(NOT_SYSTEM, 5), "shop", "", id="a policy whose resources cannot be read"),
        pytest.param(
            [*rule_policies(NOT_SYSTEM), *renamed(rule_policies(None, [{"apiGroups": ["*"], "resources": ["pods"]}]))],
            "kube-system",
            "is out of scope: lease-webhook-rules-leases-deny and 1 more select ",
            id="selected by policies that are not about leases",
        ),
        pytest.param(
            [*rule_policies(NOT_SYSTEM), *renamed(rule_policies(None, said="duration-too-long"))],
            "kube-system",
            "is out of scope: lease-webhook-rules-leases-deny and 1 more select ",
            id="selected by policies without the rule",
        ),
        pytest.param(rule_policies(NOT_SYSTEM, said="other"), "kube-system", "", id="no policy has the rule"),
        pytest.param(rule_policies(NOT_SYSTEM)[::2], "kube-system", "", id="policies without a binding"),
    ],
)
def test_a_namespace_is_out_of_scope(objects: list[dict[str, Any]], name: str, expected: str) -> None:
    exclusion = describe_exclusion(Documents(objects, ()), name)
    assert bool(exclusion) is bool(expected)
    assert expected in exclusion
