"""The objects in the examined documents: webhook configurations, and what shows how they and fences work."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook import fence
from webhook.doctor.configuration import MUTATING, VALIDATING, Configuration

KINDS: Final = (*fence.KINDS, "Secret", "ConfigMap", "Namespace", "Lease", "Pod", "Deployment", "StatefulSet")
LISTED: Final = {
    "validatingadmissionpolicies,validatingadmissionpolicybindings": (fence.POLICY, fence.BINDING),
    "mutatingadmissionpolicies,mutatingadmissionpolicybindings": (fence.MUTATING_POLICY, fence.MUTATING_BINDING),
    "namespaces": ("Namespace",),
}
"""What kubectl lists of a cluster, and the kinds of that."""

_SHOWN: Final = 100
"""Characters of a text that are shown whole; of a longer one where it differs."""

Document = Mapping[str, object]


class _Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    managed_fields: list[object] | None = field(default=None, name="managedFields")
    creation_timestamp: str | None = field(default=None, name="creationTimestamp")


class ClusterObject(Struct, frozen=True, rename="camel"):
    """An object of any kind, as far as the doctor reads it; `spec` is not decoded, and empty if there is none."""

    kind: str
    metadata: _Metadata = _Metadata()
    spec_or_none: dict[str, Any] | None = field(default=None, name="spec")
    data: Mapping[str, str] | None = None
    status: dict[str, Any] | None = None
    type: str = ""

    @property
    def spec(self) -> dict[str, Any]:
        """`spec`, empty if the document has none."""
        return self.spec_or_none or {}

    @property
    def place(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_of_a_fence(self) -> bool:
        """True if lease-webhook made it for a fence."""
        labels = self.metadata.labels or {}
        return self.kind in fence.KINDS and all(labels.get(key) == value for key, value in fence.LABELS.items())


class Documents:
    """The documents by kind; one without the form of its kind is skipped: no API server returns it."""

    def __init__(self, found: Iterable[Document], unread: Collection[str] | None = None) -> None:
        """`unread` are kinds that could not be read; None for a file, which may leave them out."""
        self.configurations: list[Configuration] = []
        self.refused: list[tuple[str, msgspec.ValidationError]] = []
        """Kinds of configurations that an API server refuses, and why."""
        self._by_kind: dict[str, list[ClusterObject]] = {kind: [] for kind in KINDS}
        for one in found:
            kind = one.get("kind")
            if kind in (VALIDATING, MUTATING):
                try:
                    self.configurations.append(msgspec.convert(one, Configuration))
                except msgspec.ValidationError as error:
                    self.refused.append((str(kind), error))
            elif kind in KINDS:
                with suppress(msgspec.ValidationError):
                    self._by_kind[str(kind)].append(msgspec.convert(one, ClusterObject))
        self.unread: Final = frozenset(unread or ())
        has_read_some = unread is not None and not self.unread.issuperset(fence.KINDS)
        self.shows_policies: Final = has_read_some or bool(self.fence_objects)

    def of(self, kind: str) -> list[ClusterObject]:
        """Return the objects of one of KINDS."""
        return self._by_kind[kind]

    def named(self, kind: str) -> dict[str, ClusterObject]:
        """Return the objects of a kind that no namespace contains, by name."""
        return {one.metadata.name: one for one in self.of(kind)}

    @property
    def fence_objects(self) -> list[ClusterObject]:
        """Every admission policy, and every binding of one."""
        return [one for kind in fence.KINDS for one in self.of(kind)]

    @property
    def namespaces(self) -> set[str]:
        """The namespaces of the Services of webhooks that are about leases."""
        entries = (entry for one in self.configurations for entry in one.webhooks or () if entry.is_dedicated)
        return {entry.client_config.service.namespace for entry in entries if entry.client_config.service}

    def policy_text(self, namespaces: Iterable[str]) -> str | None:
        """Return the policy in the one ConfigMap of the webhooks' namespaces that has a policy.yaml."""
        own = frozenset(namespaces)
        maps = [one.data or {} for one in self.of("ConfigMap") if one.metadata.namespace in own]
        texts = [data["policy.yaml"] for data in maps if "policy.yaml" in data]
        return texts[0] if len(texts) == 1 else None


def difference(wanted: object, found: object, path: str = "spec") -> str:
    """Return the first place at which two values differ, with the value found there; "" if they are equal."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        pairs = [(f"{path}.{key}", wanted.get(key), found.get(key)) for key in sorted({*wanted, *found})]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = [
            (f"{path}[{number}]", one, other) for number, (one, other) in enumerate(zip(wanted, found, strict=True))
        ]
    elif isinstance(wanted, str) and isinstance(found, str) and max(len(wanted), len(found)) > _SHOWN:
        same = next((at for at, (one, other) in enumerate(zip(wanted, found, strict=False)) if one != other), 0)
        return "" if wanted == found else f"{path}: ...{found[max(0, same - 20) : same + 60]}..."
    else:
        return "" if wanted == found else f"{path}: {found}"
    return next(filter(None, (difference(one, other, inner) for inner, one, other in pairs)), "")
