"""The objects in the examined documents, also inside Lists: configurations, and what shows how they work.

Beside the webhook configurations these are certificates, policy files, namespaces, and the objects around fences.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.doctor.certificate import ServingCertificate
from webhook.doctor.configuration import MUTATING, VALIDATING, Webhook
from webhook.fence import BINDING, LABELS, POLICY

MAX_LIST_DEPTH: Final = 3
"""A List contains objects; one List inside another is already unusual."""
KINDS: Final = (
    *(VALIDATING, MUTATING, "Secret", "ConfigMap", "Namespace"),
    *(POLICY, BINDING, "Lease", "Pod", "APIResourceList"),
)
"""Everything else is skipped, except for the object that contains the server's version."""

Document = Mapping[str, object]


class _Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    managed_fields: list[object] | None = field(default=None, name="managedFields")


class ClusterObject(Struct, frozen=True, rename="camel"):
    """An object of any kind, as far as the doctor reads it; `spec` is not decoded, and empty if there is none."""

    kind: str
    api_version: str = ""
    metadata: _Metadata = _Metadata()
    spec_or_none: dict[str, Any] | None = field(default=None, name="spec")
    data: Mapping[str, str] | None = None
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
    def is_of_a_fence(self) -> bool:
        """True if lease-webhook made it for a fence."""
        labels = self.metadata.labels or {}
        return self.kind in (POLICY, BINDING) and all(labels.get(key) == value for key, value in LABELS.items())


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
        """True if any ValidatingAdmissionPolicy, or binding of one, is among the documents."""
        return bool(self.policies or self.bindings)

    @property
    def has_own_fences(self) -> bool:
        """True if lease-webhook made some of them."""
        return any(one.is_of_a_fence for one in (*self.policies.values(), *self.bindings.values()))

    def pair(self, name: str) -> list[ClusterObject]:
        """Return the policy and the binding of this name, as far as they are there."""
        return [one for one in (self.policies.get(name), self.bindings.get(name)) if one]


class _Resource(Struct, frozen=True):
    name: str


class _ResourceList(Struct, frozen=True, rename="camel"):
    kind: str
    group_version: str
    resources: tuple[_Resource, ...] = ()


def objects(documents: Iterable[object], depth: int = 0) -> Iterator[Document]:
    """Yield every object, also inside a List of any kind; what is not a mapping is skipped."""
    for document in documents:
        if not isinstance(document, Mapping):
            continue
        items = document.get("items")
        if str(document.get("kind")).endswith("List") and isinstance(items, list) and depth < MAX_LIST_DEPTH:
            kind = str(document.get("kind")).removesuffix("List")
            inner = {"apiVersion": document.get("apiVersion"), "kind": kind} if kind else {}
            yield from objects(({**inner, **one} if isinstance(one, Mapping) else one for one in items), depth + 1)
        else:
            yield document


def webhook_configurations(found: Iterable[Document]) -> list[Document]:
    """Return the webhook configurations among them."""
    return [one for one in found if one.get("kind") in (VALIDATING, MUTATING)]


def served_in(found: Iterable[Document], webhook: Webhook) -> ServingCertificate | None:
    """Return the certificate in the one TLS Secret of the Service's namespace; None if there is none, or several."""
    service = webhook.client_config.service
    if service is None:
        return None
    secrets = [one for one in _of_kinds(found, "Secret") if one.metadata.namespace == service.namespace]
    chains = [(one.metadata.name, chain) for one in secrets if (chain := _decoded(one.data, "tls.crt")) is not None]
    if len(chains) != 1:
        return None
    name, chain = chains[0]
    return ServingCertificate(chain, f"Secret {service.namespace}/{name}")


def policy_text(found: Iterable[Document], namespaces: Iterable[str]) -> str | None:
    """Return the policy in the one ConfigMap of the webhooks' namespaces that has a policy.yaml."""
    own = frozenset(namespaces)
    texts = [
        one.data["policy.yaml"]
        for one in _of_kinds(found, "ConfigMap")
        if one.metadata.namespace in own and one.data and "policy.yaml" in one.data
    ]
    return texts[0] if len(texts) == 1 else None


def namespace_labels(found: Iterable[Document]) -> dict[str, Mapping[str, str]]:
    """Return the labels of the namespaces among them, by name."""
    return {one.metadata.name: one.metadata.labels or {} for one in _of_kinds(found, "Namespace")}


def fence_documents(found: Iterable[Document]) -> FenceDocuments:
    """Return what shows how fences work; a document that does not have the form of its kind is skipped."""
    documents = list(found)
    by_kind: dict[str, list[ClusterObject]] = {}
    for one in _of_kinds(documents, POLICY, BINDING, "Lease", "Pod", "Secret"):
        by_kind.setdefault(one.kind, []).append(one)
    return FenceDocuments(
        policies={one.metadata.name: one for one in by_kind.get(POLICY, ())},
        bindings={one.metadata.name: one for one in by_kind.get(BINDING, ())},
        leases={one.place: one for one in by_kind.get("Lease", ())},
        pods={one.place: one for one in by_kind.get("Pod", ())},
        secrets=tuple(by_kind.get("Secret", ())),
        served=_served(documents),
        minor=_minor(documents),
    )


def _of_kinds(found: Iterable[Document], *kinds: str) -> Iterator[ClusterObject]:
    """Yield the objects of these kinds; one without the form of its kind is skipped: no API server returns it."""
    for one in found:
        if one.get("kind") in kinds:
            with suppress(msgspec.ValidationError):
                yield msgspec.convert(one, ClusterObject)


def _decoded(data: Mapping[str, str] | None, key: str) -> bytes | None:
    try:
        return base64.b64decode("".join((data or {})[key].split()), validate=True)
    except (KeyError, binascii.Error, ValueError):
        return None


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
