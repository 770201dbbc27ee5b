"""Leases as they stand in storage: the object, and the entries of its managedFields."""

from typing import Any, Final

import msgspec
from msgspec import Struct

ZERO_TIME: Final = "0001-01-01T00:00:00Z"
"""metav1's zero time, which JSON shows as null."""

ETCD_LIMIT: Final = 1_572_864
"""Bytes of a request that etcd takes by default; those of the JSON stand for those of protobuf here."""

GROUP_VERSION: Final = "coordination.k8s.io/v1"


class Entry(Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """One entry of managedFields; `fields` is the text of fieldsV1, which may nest too deeply for a JSON reader."""

    manager: str = ""
    operation: str = "Update"
    api_version: str = GROUP_VERSION
    subresource: str = ""
    time: str | None = None
    fields: str = ""


class Lease(Struct, frozen=True):
    """A Lease without managedFields, and its entries; None stands for managedFields that a request leaves out."""

    object: dict[str, Any]
    entries: tuple[Entry, ...] | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The spec."""
        return dict(self.object.get("spec") or {})

    @property
    def holder(self) -> str:
        """The holder's identity, "" for none."""
        return str(self.spec.get("holderIdentity") or "")

    @property
    def duration(self) -> int:
        """LeaseDurationSeconds, 0 for none."""
        return int(self.spec.get("leaseDurationSeconds") or 0)

    @property
    def renew_time(self) -> str | None:
        """The text of renewTime."""
        return self.spec.get("renewTime")

    def encode(self) -> bytes:
        """The JSON that an API server puts into a review."""
        metadata = dict(self.object["metadata"])
        if self.entries:
            metadata["managedFields"] = [_encode(entry) for entry in self.entries]
        return msgspec.json.encode({**self.object, "metadata": metadata})


def _encode(entry: Entry) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1" if entry.fields else "",
        "fieldsV1": msgspec.Raw(entry.fields.encode()) if entry.fields else "",
        "subresource": entry.subresource,
    }
    encoded: dict[str, Any] = {key: value for key, value in fields.items() if value not in ("", None)}
    if entry.time == ZERO_TIME:
        encoded["time"] = None
    return encoded


def lease_of(document: dict[str, Any]) -> Lease:
    """Return an object of a review, with its entries apart."""
    metadata = dict(document["metadata"])
    entries = tuple(
        Entry(
            entry.get("manager", ""),
            entry["operation"],
            entry["apiVersion"],
            entry.get("subresource", ""),
            entry.get("time"),
            msgspec.json.encode(entry["fieldsV1"]).decode(),
        )
        for entry in metadata.pop("managedFields", ())
    )
    return Lease({**document, "metadata": metadata}, entries)
