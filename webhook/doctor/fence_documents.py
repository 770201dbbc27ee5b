"""The documents that show what the fences in a cluster do, by what they are."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.doctor.documents import Document
from webhook.fence.manifests import BINDING, LABELS, POLICY

KINDS: Final = (POLICY, BINDING, "Lease", "Pod", "Secret", "APIResourceList")
"""Everything else is skipped, except for the object that contains the server's version."""


class _Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class ClusterObject(Struct, frozen=True, rename="camel"):
    """An object of any kind; undecoded `spec`."""

    kind: str
    api_version: str = ""
    metadata: _Metadata = _Metadata()
    spec_or_none: dict[str, Any] | None = field(default=None, name="spec")
    type: str = ""

    @property
    def spec(self) -> dict[str, Any]:
        """`spec`, empty if the document has none."""
        return self.spec_or_none or {}

    @property
    def place(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.metadata.namespace, self.metadata.name)

    @property
    def is_ours(self) -> bool:
        """Whether lease-webhook made it."""
        labels = self.metadata.labels or {}
        return all(labels.get(key) == value for key, value in LABELS.items())


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
        return any(one.is_ours for one in (*self.policies.values(), *self.bindings.values()))

    def pair(self, name: str) -> list[ClusterObject]:
        """The policy and the binding of this name, as far as they are there."""
        return [one for one in (self.policies.get(name), self.bindings.get(name)) if one]


def fence_documents(found: Iterable[Document]) -> FenceDocuments:
    """The documents sorted; one that does not have the form of its kind is skipped: no API server returns it."""
    objects: dict[str, list[ClusterObject]] = {}
    served: dict[str, set[str]] = {}
    minor: int | None = None
    for one in found:
        version = one.get("serverVersion")
        if isinstance(version, Mapping):
            minor = _minor(version)
        try:
            if one.get("kind") == "APIResourceList":
                listed = msgspec.convert(one, _ResourceList)
                group = listed.group_version.rpartition("/")[0]
                served.setdefault(group, set()).update(resource.name for resource in listed.resources)
            else:
                converted = msgspec.convert(one, ClusterObject)
                objects.setdefault(converted.kind, []).append(converted)
        except msgspec.ValidationError:
            continue
    return FenceDocuments(
        policies={one.metadata.name: one for one in objects.get(POLICY, ())},
        bindings={one.metadata.name: one for one in objects.get(BINDING, ())},
        leases={one.place: one for one in objects.get("Lease", ())},
        pods={one.place: one for one in objects.get("Pod", ())},
        secrets=tuple(objects.get("Secret", ())),
        served=served,
        minor=minor,
    )


def _minor(version: Mapping[str, object]) -> int | None:
    digits = re.match(r"\d{1,4}", str(version.get("minor")))
    return int(digits[0]) if digits else None
