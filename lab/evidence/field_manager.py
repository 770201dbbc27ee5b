"""The field manager of kube-apiserver, which turns a write into the next stored lease."""

import subprocess
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tests.evidence.stored_lease import ETCD_LIMIT, Lease


class _Outcome(Struct):
    lease: Lease | UnsetType = UNSET
    error: str = ""


class RefusedError(Exception):
    """Raised when the API server itself refuses the write."""


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
        """Return the lease that a create stores."""
        return self._send(verb="create", new=new, manager=manager, seconds=seconds)

    def update(self, live: Lease, new: Lease, manager: str, seconds: int) -> Lease:
        """Return the lease that a PUT stores, or a patch that makes `new` of `live`.

        A lease that etcd refuses as too large is stored by the API server without managedFields.
        """
        stored = self._send(verb="update", live=live, new=new, manager=manager, seconds=seconds)
        is_large = sum(len(entry.fields) for entry in stored.entries or ()) > ETCD_LIMIT // 2
        return replace(stored, entries=()) if is_large and len(stored.encode()) > ETCD_LIMIT else stored

    def apply(self, live: Lease, applied: dict[str, Any], manager: str, seconds: int) -> Lease:
        """Return the lease that a forced server-side apply stores."""
        return self._send(verb="apply", live=live, applied=applied, manager=manager, seconds=seconds)

    def upgrade(self, live: Lease, manager: str, seconds: int) -> Lease:
        """Return the lease that kubectl stores when it moves its fields from client-side to server-side apply."""
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
