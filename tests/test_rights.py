"""Who may write a lease, from RBAC objects: one valid role and binding, and one thing changed."""

from typing import Any

import pytest

from webhook.analysis.rights import Grant, RightsError, read_access_control

VERBS = ["get", "create", "update"]
ROLE: dict[str, Any] = {
    "kind": "Role",
    "metadata": {"name": "elector", "namespace": "shop"},
    "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": VERBS}],
}
BINDING: dict[str, Any] = {
    "kind": "RoleBinding",
    "metadata": {"name": "elector", "namespace": "shop"},
    "roleRef": {"kind": "Role", "name": "elector"},
    "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": "checkout"}],
}
THROUGH = "RoleBinding shop/elector (Role elector)"
GRANT = Grant("ServiceAccount", "shop/checkout", ("create", "update"), THROUGH)


def rule(**keys: Any) -> dict[str, Any]:
    return {**ROLE, "rules": [{**ROLE["rules"][0], **keys}]}


def grants(*objects: dict[str, Any]) -> list[Grant]:
    return list(read_access_control(objects).find_rights("shop", "checkout").grants)


def test_a_role_of_the_namespace_grants_its_writing_verbs() -> None:
    assert grants(ROLE, BINDING) == [GRANT]


@pytest.mark.parametrize(
    ("role", "verbs", "is_named"),
    [
        pytest.param(
            rule(verbs=["*"]), ("create", "update", "patch", "delete", "deletecollection"), False, id="all verbs"
        ),
        pytest.param(rule(apiGroups=["*"]), ("create", "update"), False, id="all groups"),
        pytest.param(rule(resources=["*"]), ("create", "update"), False, id="all resources"),
        pytest.param(rule(resourceNames=["checkout"]), ("update",), True, id="by name: create is not granted"),
        pytest.param(rule(resourceNames=[]), ("create", "update"), False, id="an empty list of names is none"),
    ],
)
def test_what_a_rule_covers(role: dict[str, Any], verbs: tuple[str, ...], is_named: bool) -> None:
    assert [(grant.verbs, grant.is_named) for grant in grants(role, BINDING)] == [(verbs, is_named)]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([rule(verbs=["get", "list"]), BINDING], id="a role that reads"),
        pytest.param([rule(apiGroups=[""]), BINDING], id="another group"),
        pytest.param([rule(resources=["leasecandidates"]), BINDING], id="another resource"),
        pytest.param([rule(resourceNames=["other"]), BINDING], id="another lease"),
        pytest.param([ROLE], id="a role that is not bound"),
        pytest.param([ROLE, {**BINDING, "subjects": None}], id="a binding of no one"),
        pytest.param([ROLE, {**BINDING, "metadata": {"name": "elector", "namespace": "x"}}], id="another namespace"),
        pytest.param([{**ROLE, "rules": None}, BINDING], id="a role without rules"),
    ],
)
def test_what_grants_nothing(objects: list[dict[str, Any]]) -> None:
    assert grants(*objects) == []


def cluster_wide(thing: dict[str, Any], kind: str, **keys: Any) -> dict[str, Any]:
    return {**thing, "kind": kind, "metadata": {"name": "edit"}, **keys}


def test_a_cluster_role_that_is_bound_in_the_whole_cluster() -> None:
    role = cluster_wide(ROLE, "ClusterRole")
    group = {"kind": "Group", "name": "system:authenticated"}
    binding = cluster_wide(
        BINDING, "ClusterRoleBinding", roleRef={"kind": "ClusterRole", "name": "edit"}, subjects=[group]
    )
    through = "ClusterRoleBinding edit (ClusterRole edit)"
    assert grants(role, binding) == [Grant("Group", "system:authenticated", ("create", "update"), through)]


def test_a_cluster_role_that_is_bound_in_the_namespace() -> None:
    role = cluster_wide(ROLE, "ClusterRole")
    binding = {**BINDING, "roleRef": {"kind": "ClusterRole", "name": "edit"}}
    assert [grant.through for grant in grants(role, binding)] == ["RoleBinding shop/elector (ClusterRole edit)"]


def test_an_aggregated_role_in_a_file_has_the_rules_of_the_roles_that_it_selects() -> None:
    part = cluster_wide(ROLE, "ClusterRole")
    part["metadata"] = {"name": "part", "labels": {"to": "edit"}}
    whole = cluster_wide(
        ROLE, "ClusterRole", rules=None, aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"to": "edit"}}]}
    )
    binding = {**BINDING, "roleRef": {"kind": "ClusterRole", "name": "edit"}}
    assert [grant.verbs for grant in grants(part, whole, binding)] == [("create", "update")]
    part["metadata"]["labels"] = {"to": "view"}
    assert grants(part, whole, binding) == []


def test_a_binding_whose_role_is_missing_is_named() -> None:
    assert read_access_control([BINDING]).find_rights("shop", "checkout").unresolved == (THROUGH,)


def test_two_bindings_of_one_subject_are_two_grants() -> None:
    second = {**BINDING, "metadata": {"name": "again", "namespace": "shop"}}
    assert [grant.through for grant in grants(ROLE, BINDING, second)] == [
        "RoleBinding shop/again (Role elector)",
        THROUGH,
    ]


def test_objects_of_other_kinds_are_skipped() -> None:
    assert grants({"kind": "Pod", "metadata": 7}, ROLE, BINDING) == [GRANT]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"kind": "Role"}, id="no metadata"),
        pytest.param(rule(verbs="*"), id="verbs that are a text"),
        pytest.param({**BINDING, "subjects": [7]}, id="a subject that is a number"),
    ],
)
def test_a_broken_object_is_an_error(broken: dict[str, Any]) -> None:
    with pytest.raises(RightsError, match=broken["kind"]):
        grants(broken)
