"""Fields that a manifest has and the API does not: the API server drops them, and a typo goes unnoticed."""

from difflib import get_close_matches
from typing import Any, Final

from msgspec.structs import fields

from webhook.api.objects import LeaseCandidateSpec, LeaseSpec, ObjectMeta
from webhook.api.text import quote, truncate
from webhook.inputs.documents import Value

MOST: Final = 20
"""Warnings for one document; one with more mistakes is not a Lease or LeaseCandidate."""


def unknown_fields(document: Value) -> tuple[str, ...]:
    """Return a warning for each field of a bare Lease or LeaseCandidate that its version does not have."""
    places = (
        ("", document, ("apiVersion", "kind", "metadata", "spec")),
        ("metadata.", document.get("metadata"), _names(ObjectMeta)),
        ("spec.", document.get("spec"), _spec_names(str(document["kind"]), str(document["apiVersion"]))),
    )
    warnings = [
        _warning(prefix, key, known)
        for prefix, place, known in places
        if isinstance(place, dict)
        for key in place
        if key not in known
    ]
    return tuple(warnings[:MOST])


def _names(struct: Any) -> tuple[str, ...]:  # noqa: ANN401 - a type
    return tuple(field.encode_name for field in fields(struct))


def _spec_names(kind: str, api_version: str) -> tuple[str, ...]:
    if kind == "Lease":
        return _names(LeaseSpec)
    other = "strategy" if api_version.endswith("/v1alpha1") else "preferredStrategies"
    return tuple(name for name in _names(LeaseCandidateSpec) if name != other)


def _warning(prefix: str, key: object, known: tuple[str, ...]) -> str:
    near = get_close_matches(str(key), known, 1)
    hint = f"; did you mean {quote(near[0])}?" if near else ""
    return f"unknown field {quote(truncate(f'{prefix}{key}', 100))}: the API server drops it, kubectl refuses it{hint}"
