"""Which namespaces a label selector selects."""

from collections.abc import Mapping
from typing import Final

from webhook.doctor.configuration import Selector, SelectorRequirement

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The API server sets this label on every namespace, and it cannot be changed."""


def may_select(selector: Selector | None, namespace: str) -> bool:
    """Whether a namespace of this name can be selected, whatever other labels it has: those can be changed."""
    return all(_matches(one, namespace) for one in _requirements(selector) if one.key == NAMESPACE_NAME)


def selects(selector: Selector | None, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a namespace with just these labels is selected."""
    known = {**labels, NAMESPACE_NAME: namespace}
    return all(_matches(one, known.get(one.key)) for one in _requirements(selector))


def chosen_names(selector: Selector | None) -> frozenset[str] | None:
    """The only namespaces that can be selected if the selector lists them by name, else None."""
    listed = [one.values or () for one in _requirements(selector) if (one.key, one.operator) == (NAMESPACE_NAME, "In")]
    return frozenset(name for name in listed[0] if may_select(selector, name)) if listed else None


def is_opt_in(selector: Selector | None) -> bool:
    """Whether a new namespace is not selected until it is added, by name or by label."""
    # Every namespace has a name, so to ask whether it has one selects all.
    chosen = (one for one in _requirements(selector) if (one.key, one.operator) != (NAMESPACE_NAME, "Exists"))
    return any(one.operator in {"In", "Exists"} for one in chosen)


def _requirements(selector: Selector | None) -> tuple[SelectorRequirement, ...]:
    return selector.requirements if selector else ()


def _matches(requirement: SelectorRequirement, value: str | None) -> bool:
    listed, is_there = value in (requirement.values or ()), value is not None
    return {"In": listed, "NotIn": not listed, "Exists": is_there, "DoesNotExist": not is_there}[requirement.operator]
