"""What is proposed from RBAC objects and from audit logs, and what is left out."""

from typing import Any

import pytest

from webhook.fence.audited import from_audit, leases_of, written_by
from webhook.fence.rights import from_rights
from webhook.fence.suggestion import Suggestion, policy_text, tally
from webhook.observations.audit_event import AuditEvent
from webhook.policy.fences.resource import FencedResource
from webhook.policy.parse import parse

USER = "system:serviceaccount:shop:operator"
ROLE_REF = {"kind": "Role", "name": "operator"}
SUBJECT = {"kind": "ServiceAccount", "name": "operator", "namespace": "shop"}


def role(*rules: dict[str, Any], kind: str = "Role") -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "operator", "namespace": "shop"}, "rules": rules}


def binding(subject: dict[str, Any] = SUBJECT, role_ref: dict[str, Any] = ROLE_REF) -> dict[str, Any]:
    metadata = {"name": "operator", "namespace": "shop"}
    return {"kind": "RoleBinding", "metadata": metadata, "roleRef": role_ref, "subjects": [subject]}


def rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def rights(*objects: dict[str, Any]) -> Suggestion:
    return from_rights(objects, "shop", "operator")


def test_what_a_role_lets_it_write_is_proposed() -> None:
    found = rights(binding(), role(rule("apps", ["deployments", "deployments/scale"], ["get", "patch", "create"])))
    assert found.evidence == {
        FencedResource("apps", "deployments"): "CREATE, UPDATE by Role operator",
        FencedResource("apps", "deployments", "scale"): "CREATE, UPDATE by Role operator",
    }


def test_what_followers_must_write_is_left_out_and_it_says_why() -> None:
    found = rights(
        binding(),
        role(
            rule("coordination.k8s.io", ["leases"], ["*"]),
            rule("", ["events", "pods/status", "gone"], ["*"]),
            rule("*", ["*"], ["*"]),
            rule("", ["configmaps"], ["get"]),
        ),
    )
    assert found.evidence == {}
    assert set(found.left_out) == {"leases.coordination.k8s.io", "events", "pods/status", "gone", "* of group *"}
    assert found.left_out["pods/status"] == "followers report the conditions of their own pods"


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x1d", "\x85", "\u2028"])
def test_names_of_roles_and_resources_add_no_line_to_the_policy(end: str) -> None:
    """RBAC lets both be any text."""
    added = f"{end}- name: added{end}  lease: other/other{end}  writers: [other/other]{end}  resources: [secrets]"
    named = {**role(rule("", ["configmaps", f"x{added}", f"*{added}"], ["create"])), "metadata": {"name": f"a{added}"}}
    bound = {**binding(role_ref={"kind": "ClusterRole", "name": f"a{added}"})}
    found = rights(bound, {**named, "kind": "ClusterRole"}, binding(role_ref={"kind": "Role", "name": f"b{added}"}))
    assert (len(found.evidence), len(found.left_out), len(found.unseen)) == (1, 2, 1)
    text = policy_text("operator", "shop/operator", "shop/operator", found)
    assert "added" not in "".join(line.partition("#")[0] for line in text.splitlines())
    assert len(parse(f"apiVersion: lease-webhook/v1\n{text}").fences) == 1


def test_roles_of_others_count_for_nothing() -> None:
    written = role(rule("", ["configmaps"], ["create"]))
    assert not rights(binding({**SUBJECT, "name": "other"}), written).evidence
    assert not rights(binding({"kind": "User", "name": "operator"}), written).evidence
    assert not rights({"kind": "RoleBinding", "roleRef": 5}, written).evidence


def test_a_group_gives_rights_too() -> None:
    group = {"kind": "Group", "name": "system:serviceaccounts:shop"}
    assert rights(binding(group), role(rule("", ["configmaps"], ["create"]))).evidence


def test_a_role_that_is_not_there_is_named() -> None:
    found = rights(binding(role_ref={"kind": "ClusterRole", "name": "admin"}))
    assert found.unseen == ["ClusterRole admin, which RoleBinding operator names, is not among the objects"]


def test_a_role_with_a_line_break_in_its_name_stays_in_a_comment() -> None:
    name = "operator\n  namespaces: [other]"
    granted = role(rule("", ["configmaps"], ["update"]))
    found = rights(
        {**granted, "metadata": {"name": name, "namespace": "shop"}}, binding(role_ref={"kind": "Role", "name": name})
    )
    text = policy_text("operator", "shop/operator", "shop/operator", found)
    assert "  - configmaps  # UPDATE by Role operator\\n  namespaces: [other]\n" in text
    assert parse(f"apiVersion: lease-webhook/v1\n{text}").fences[0].namespaces == ()


def event(pod: str, resource: str, **changes: Any) -> dict[str, Any]:
    reference = {"resource": resource, "namespace": "shop", "name": "operator"}
    if resource == "leases":
        reference["apiGroup"] = "coordination.k8s.io"
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": "update",
        "user": {"username": USER, "extra": {"authentication.kubernetes.io/pod-name": [pod]} if pod else None},
        "objectRef": reference,
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        **changes,
    }


def audited(*events: dict[str, Any]) -> Suggestion:
    return from_audit(written_by(events, USER), "shop/operator")


def test_only_stored_writes_of_the_service_account_count() -> None:
    others = [
        event("a", "pods", verb="get"),
        event("a", "pods", user={"username": "kim"}),
        event("a", "pods", responseStatus={"code": 409}),
        event("a", "pods", stage="RequestReceived"),
        event("a", "pods", kind="Lease"),
        event("a", "pods", verb=5, stage=[]),
    ]
    assert written_by(others, USER) == []


def test_what_only_the_leader_wrote_is_proposed() -> None:
    found = audited(
        event("", "configmaps"),
        event("a", "leases"),
        event("a", "configmaps"),
        event("b", "secrets"),
        event("b", "leases"),
        event("b", "configmaps"),
        event("a", "events"),
    )
    assert found.evidence == {FencedResource("", "configmaps"): "UPDATE; 1 by a, 1 by b as the leader"}
    assert found.left_out["secrets"] == ("written without the lease: 1 by b; add it if those writes were mistakes")
    assert "events" in found.left_out
    assert found.unseen == ["who led during the first 1 writes, before the first write of the lease"]


def test_a_resource_that_nobody_wrote_while_somebody_led_is_not_proposed() -> None:
    found = audited(event("a", "configmaps"), event("a", "leases"), event("a", "secrets"))
    assert set(found.evidence) == {FencedResource("", "secrets")}


def test_what_was_written_only_before_anybody_led_is_not_proposed() -> None:
    assert audited(event("a", "configmaps")).evidence == {}


def test_a_token_without_a_pod_is_named() -> None:
    assert AuditEvent().pod == "a token without a pod"


def test_the_lease_that_is_written_most_is_first() -> None:
    events = written_by([event("a", "leases"), event("a", "pods")], USER)
    assert leases_of(events) == ["shop/operator"]


def test_the_proposal_is_a_policy() -> None:
    found = Suggestion({FencedResource("", "configmaps"): "UPDATE"}, {"events": "why"}, ["what"])
    text = policy_text("shop-operator", "shop/operator", "shop/operator", found)
    assert parse(f"apiVersion: lease-webhook/v1\n{text}").fences[0].namespaces == ()
    assert "# left out: events: why\n# not seen: what\n" in text


def test_a_tally_is_short() -> None:
    assert tally({"a": 1, "b": 3}) == "3 by b, 1 by a"
    assert tally(dict.fromkeys("abcdef", 1)) == "1 by a, 1 by b, 1 by c, 1 by d, and 2 more"
