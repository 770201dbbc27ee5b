"""A suggestion from the RBAC objects that grant a service account its permissions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from webhook.fence.suggestion import OPERATION_OF_VERB, Suggestion, operations_in_words, reason_to_leave_out
from webhook.policy.fences.resource import FencedResource

T = TypeVar("T", bound=Struct)
BINDINGS: Final = ("RoleBinding", "ClusterRoleBinding")
ROLES: Final = ("Role", "ClusterRole")


class Metadata(Struct, frozen=True):
    """Name and namespace of an object."""

    name: str = ""
    namespace: str = ""


class PolicyRule(Struct, frozen=True, rename="camel"):
    """What a role permits."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None


class Role(Struct, frozen=True):
    """A Role or ClusterRole."""

    kind: str
    metadata: Metadata = Metadata()
    rules: tuple[PolicyRule, ...] | None = None


class Subject(Struct, frozen=True):
    """To whom a role is granted."""

    kind: str
    name: str
    namespace: str = ""


class RoleReference(Struct, frozen=True):
    """Which role is granted."""

    kind: str
    name: str


class RoleBinding(Struct, frozen=True, rename="camel"):
    """A RoleBinding or ClusterRoleBinding."""

    kind: str
    role_ref: RoleReference
    metadata: Metadata = Metadata()
    subjects: tuple[Subject, ...] | None = None


def from_rights(objects: Iterable[Mapping[str, object]], namespace: str, name: str) -> Suggestion:
    """What the service account may write, by the roles among the objects that are bound to it."""
    objects = list(objects)
    roles = {
        (role.kind, role.metadata.namespace if role.kind == "Role" else "", role.metadata.name): role
        for role in _typed(objects, ROLES, Role)
    }
    found = Suggestion()
    verbs: dict[FencedResource, dict[str, set[str]]] = {}
    for binding in _typed(objects, BINDINGS, RoleBinding):
        if not any(_grants(subject, binding, namespace, name) for subject in binding.subjects or ()):
            continue
        place = binding.metadata.namespace if binding.role_ref.kind == "Role" else ""
        role = roles.get((binding.role_ref.kind, place, binding.role_ref.name))
        title = f"{binding.role_ref.kind} {binding.role_ref.name}"
        if role is None:
            found.unseen.append(
                f"{title}, which {binding.kind} {binding.metadata.name} names, is not among the objects"
            )
            continue
        for rule in role.rules or ():
            _collect(rule, title, verbs, found)
    for resource, by_role in verbs.items():
        reason = reason_to_leave_out(resource)
        if reason:
            found.left_out[str(resource)] = reason
        else:
            written = operations_in_words(verb for granted in by_role.values() for verb in granted)
            found.evidence[resource] = f"{written} by {', '.join(sorted(by_role))}"
    return found


def _typed(objects: Iterable[Mapping[str, object]], kinds: tuple[str, ...], to: type[T]) -> Iterator[T]:
    for one in objects:
        if one.get("kind") in kinds:
            try:
                yield msgspec.convert(one, to)
            except msgspec.ValidationError:
                # An API server rejects it as well, so it grants nothing.
                continue


def _grants(subject: Subject, binding: RoleBinding, namespace: str, name: str) -> bool:
    if subject.kind == "ServiceAccount":
        place = subject.namespace or binding.metadata.namespace
        return (place, subject.name) == (namespace, name)
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return subject.kind == "Group" and subject.name in groups


def _collect(rule: PolicyRule, title: str, verbs: dict[FencedResource, dict[str, set[str]]], found: Suggestion) -> None:
    granted = set(OPERATION_OF_VERB) if "*" in rule.verbs else {*rule.verbs} & set(OPERATION_OF_VERB)
    if not granted:
        return
    for group in rule.api_groups or ():
        for path in rule.resources or ():
            if "*" in group or "*" in path:
                everything = f"{path} of group {group or 'core'}"
                found.left_out[everything] = f"{title} grants more than can be listed; suggest from an audit log"
                continue
            resource, _, subresource = path.partition("/")
            key = FencedResource(group, resource, subresource)
            verbs.setdefault(key, {}).setdefault(title, set()).update(granted)
