"""Leases as they stand in storage, and the field manager of kube-apiserver that makes the next one of a write."""

import subprocess
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

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
    found: dict[str, Any] = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1" if entry.fields else "",
        "fieldsV1": msgspec.Raw(entry.fields.encode()) if entry.fields else "",
        "subresource": entry.subresource,
    }
    shown: dict[str, Any] = {key: value for key, value in found.items() if value not in ("", None)}
    if entry.time == ZERO_TIME:
        shown["time"] = None
    return shown


class _Outcome(Struct):
    lease: Lease | UnsetType = UNSET
    error: str = ""


class RefusedError(Exception):
    """The API server itself refuses the write."""


class FieldManager:
    """The Go program as a process; `seconds` since 1970 are on the clock of the API server that takes the write."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._decoder = msgspec.json.Decoder(_Outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def create(self, new: Lease, manager: str, seconds: int) -> Lease:
        """Return what a create stores."""
        return self._send(verb="create", new=new, manager=manager, seconds=seconds)

    def update(self, live: Lease, new: Lease, manager: str, seconds: int) -> Lease:
        """Return what a PUT stores, or a patch that makes `new` of `live`.

        What etcd refuses as too large, the API server stores without managedFields.
        """
        stored = self._send(verb="update", live=live, new=new, manager=manager, seconds=seconds)
        is_large = sum(len(entry.fields) for entry in stored.entries or ()) > ETCD_LIMIT // 2
        return replace(stored, entries=()) if is_large and len(stored.encode()) > ETCD_LIMIT else stored

    def apply(self, live: Lease, applied: dict[str, Any], manager: str, seconds: int) -> Lease:
        """Return what a forced server-side apply stores."""
        return self._send(verb="apply", live=live, applied=applied, manager=manager, seconds=seconds)

    def upgrade(self, live: Lease, manager: str, seconds: int) -> Lease:
        """Return what kubectl stores when it moves its fields from client-side to server-side apply."""
        return self._send(verb="upgrade", live=live, manager=manager, seconds=seconds)

    def _send(self, **write: Any) -> Lease:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(msgspec.json.encode(write) + b"\n")
        stdin.flush()
        outcome = self._decoder.decode(stdout.readline())
        if outcome.lease is UNSET:
            raise RefusedError(outcome.error)
        return outcome.lease
