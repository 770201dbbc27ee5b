"""Who may write one lease, from the RBAC objects of a cluster.

RBAC cannot limit `create` and `deletecollection` by name, because a request for them has none.
Source: Kubernetes, "Using RBAC Authorization", and `plugin/pkg/auth/authorizer/rbac/rbac.go`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.kubernetes.request import GROUP

WRITE_VERBS: Final = ("create", "update", "patch", "delete", "deletecollection")
"""In the order of output."""
UNNAMED_VERBS: Final = frozenset({"create", "deletecollection"})
RESOURCE: Final = "leases"
KINDS: Final = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
ANY: Final = "*"


class RightsError(ValueError):
    """An RBAC object cannot be read; the text has its kind and name."""


class _Rule(Struct, frozen=True, rename="camel"):
    verbs: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    resource_names: tuple[str, ...] | None = None


class _Subject(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class _RoleReference(Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str | None = None
    labels: Mapping[str, str] | None = None


class _Selector(Struct, frozen=True, rename="camel"):
    match_labels: Mapping[str, str] | None = None
    match_expressions: Any = None


class _Aggregation(Struct, frozen=True, rename="camel"):
    cluster_role_selectors: tuple[_Selector, ...] | None = None


class _Object(Struct, frozen=True, rename="camel"):
    kind: str
    metadata: _Metadata
    rules: tuple[_Rule, ...] | None = None
    aggregation_rule: _Aggregation | None = None
    subjects: tuple[_Subject, ...] | None = None
    role_ref: _RoleReference = field(default_factory=_RoleReference)


class Grant(Struct, frozen=True, order=True):
    """Verbs on one lease that a binding gives to a subject.

    `is_named` is false if the right covers other leases too. `through` names the binding and its role. A subject of
    the kind Group may stand for any number of users.
    """

    kind: str
    name: str
    verbs: tuple[str, ...]
    through: str
    is_named: bool = False

    @property
    def subject(self) -> str:
        """`ServiceAccount shop/checkout`, `Group system:authenticated`, `User ann`."""
        return f"{self.kind} {self.name}"


class Rights(Struct, frozen=True):
    """The grants of RBAC on one lease, and the bindings whose role is not among the objects."""

    grants: tuple[Grant, ...]
    unresolved: tuple[str, ...] = ()


class AccessControl(Struct, frozen=True):
    """The roles and bindings of a cluster, or of what was read of it."""

    objects: tuple[_Object, ...]

    def find_rights(self, namespace: str, name: str) -> Rights:
        """Return who may write the lease."""
        roles = {
            (role.kind, role.metadata.namespace or "", role.metadata.name): role
            for role in self.objects
            if role.kind in KINDS[:2]
        }
        grants, unresolved = set[Grant](), set[str]()
        for binding in self.objects:
            is_of_namespace = binding.kind == "RoleBinding" and binding.metadata.namespace == namespace
            if not is_of_namespace and binding.kind != "ClusterRoleBinding":
                continue
            reference = binding.role_ref
            role = roles.get((reference.kind, namespace if reference.kind == "Role" else "", reference.name))
            place = f"{namespace}/{binding.metadata.name}" if is_of_namespace else binding.metadata.name
            through = f"{binding.kind} {place} ({reference.kind} {reference.name})"
            if role is None:
                unresolved.add(through)
                continue
            verbs, is_named = _list_verbs(_list_rules(role, roles.values()), name)
            if verbs:
                grants |= {
                    Grant(subject.kind, _format_subject(subject), verbs, through, is_named)
                    for subject in binding.subjects or ()
                }
        return Rights(tuple(sorted(grants)), tuple(sorted(unresolved)))


def read_access_control(objects: Iterable[Mapping[str, Any]]) -> AccessControl:
    """Read the roles and bindings among the objects; others are skipped. Raises RightsError."""
    return AccessControl(tuple(_decode(thing) for thing in objects if thing.get("kind") in KINDS))


def _decode(thing: Mapping[str, Any]) -> _Object:
    try:
        return msgspec.convert(thing, _Object)
    except msgspec.ValidationError as error:
        raise RightsError(f"{thing.get('kind')}: {error}") from error


def _list_rules(role: _Object, others: Iterable[_Object]) -> Iterator[_Rule]:
    """Yield the rules of a role; of an aggregated one that no API server has filled, those of the selected roles."""
    yield from role.rules or ()
    if role.rules or role.aggregation_rule is None:
        return
    for selector in role.aggregation_rule.cluster_role_selectors or ():
        for other in others:
            if other.kind == "ClusterRole" and _is_selected(selector, other.metadata.labels or {}):
                yield from other.rules or ()


def _is_selected(selector: _Selector, labels: Mapping[str, str]) -> bool:
    """Return whether matchLabels select these labels; expressions count as fulfilled, so that no right is missed."""
    return all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())


def _list_verbs(rules: Iterable[_Rule], name: str) -> tuple[tuple[str, ...], bool]:
    """Return the verbs on the lease, and whether every one of them is limited to names."""
    verbs, is_named = set[str](), True
    for rule in rules:
        if not (_has(rule.api_groups, GROUP) and _has(rule.resources, RESOURCE)):
            continue
        granted = {verb for verb in WRITE_VERBS if _has(rule.verbs, verb)}
        if rule.resource_names:
            granted = granted - UNNAMED_VERBS if name in rule.resource_names else set()
        elif granted:
            is_named = False
        verbs |= granted
    return tuple(verb for verb in WRITE_VERBS if verb in verbs), is_named and bool(verbs)


def _has(values: Sequence[str] | None, value: str) -> bool:
    return values is not None and (value in values or ANY in values)


def _format_subject(subject: _Subject) -> str:
    return f"{subject.namespace or ''}/{subject.name}" if subject.kind == "ServiceAccount" else subject.name
