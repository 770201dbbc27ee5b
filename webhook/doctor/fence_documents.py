"""The documents that show what the fences in a cluster do, by what they are."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from webhook.doctor.documents import Document
from webhook.doctor.surroundings import ClusterObject, of_kinds
from webhook.fence.manifests import BINDING, LABELS, POLICY

KINDS: Final = (POLICY, BINDING, "Lease", "Pod", "Secret", "APIResourceList")
"""Everything else is skipped, except for the object that contains the server's version."""


class _Resource(Struct, frozen=True):
    name: str


class _ResourceList(Struct, frozen=True, rename="camel"):
    kind: str
    group_version: str
    resources: tuple[_Resource, ...] = ()


class FenceDocuments(Struct, frozen=True):
    """The documents by kind. `served` has the resources of each group; `minor` is that of the server's version."""

    policies: dict[str, ClusterObject]
    bindings: dict[str, ClusterObject]
    leases: dict[tuple[str, str], ClusterObject]
    pods: dict[tuple[str, str], ClusterObject]
    secrets: tuple[ClusterObject, ...]
    served: dict[str, set[str]]
    minor: int | None

    @property
    def has_fences(self) -> bool:
        """Whether any ValidatingAdmissionPolicy, or binding of one, is among the documents."""
        return bool(self.policies or self.bindings)

    @property
    def has_own_fences(self) -> bool:
        """Whether lease-webhook made some of them."""
        return any(map(is_ours, (*self.policies.values(), *self.bindings.values())))

    def pair(self, name: str) -> list[ClusterObject]:
        """The policy and the binding of this name, as far as they are there."""
        return [one for one in (self.policies.get(name), self.bindings.get(name)) if one]


def is_ours(one: ClusterObject) -> bool:
    """Whether lease-webhook made an object."""
    labels = one.metadata.labels or {}
    return all(labels.get(key) == value for key, value in LABELS.items())


def fence_documents(found: Iterable[Document]) -> FenceDocuments:
    """The documents sorted; one that does not have the form of its kind is skipped."""
    documents = list(found)
    objects: dict[str, list[ClusterObject]] = {}
    for one in of_kinds(documents, *KINDS):
        objects.setdefault(one.kind, []).append(one)
    return FenceDocuments(
        policies={one.metadata.name: one for one in objects.get(POLICY, ())},
        bindings={one.metadata.name: one for one in objects.get(BINDING, ())},
        leases={one.place: one for one in objects.get("Lease", ())},
        pods={one.place: one for one in objects.get("Pod", ())},
        secrets=tuple(objects.get("Secret", ())),
        served=_served(documents),
        minor=_minor(documents),
    )


def _served(documents: Iterable[Document]) -> dict[str, set[str]]:
    served: dict[str, set[str]] = {}
    for one in documents:
        if one.get("kind") == "APIResourceList":
            with suppress(msgspec.ValidationError):
                listed = msgspec.convert(one, _ResourceList)
                group = listed.group_version.rpartition("/")[0]
                served.setdefault(group, set()).update(resource.name for resource in listed.resources)
    return served


def _minor(documents: Iterable[Document]) -> int | None:
    minor = None
    for one in documents:
        if isinstance(version := one.get("serverVersion"), Mapping):
            digits = re.match(r"\d{1,4}", str(version.get("minor")))
            minor = int(digits[0]) if digits else None
    return minor
