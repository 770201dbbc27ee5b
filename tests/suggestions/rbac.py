"""What RBAC allows by some roles, as an API server evaluates it: a request is allowed if one rule covers all of it."""

from typing import Any

import yaml

from tests.factories import Document


def documents(text: str) -> list[Document]:
    """The objects of a suggestion."""
    return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def allows(objects: list[Document], account: str, verb: str, resource: str, namespace: str, name: str) -> bool:
    """Whether a service account may do this; the namespace is "" for all of them, the name for a collection."""
    for binding in objects:
        if not binding["kind"].endswith("RoleBinding") or account not in map(_subject, binding["subjects"]):
            continue
        if binding["kind"] == "RoleBinding" and binding["metadata"]["namespace"] != namespace:
            continue
        for role in objects:
            if (role["kind"], role["metadata"]["name"]) != (binding["roleRef"]["kind"], binding["roleRef"]["name"]):
                continue
            if role["metadata"].get("namespace") != binding["metadata"].get("namespace"):
                continue
            if any(_covers(rule, verb, resource, name) for rule in role["rules"]):
                return True
    return False


def _subject(subject: Document) -> str:
    return f"{subject['namespace']}/{subject['name']}"


def _covers(rule: dict[str, Any], verb: str, resource: str, name: str) -> bool:
    return (
        rule["apiGroups"] == ["coordination.k8s.io"]
        and resource in rule["resources"]
        and verb in rule["verbs"]
        and ("resourceNames" not in rule or name in rule["resourceNames"])
    )
