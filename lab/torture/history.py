"""The stored versions of a run and the observations of its clients, as a file that can be checked again."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct


class StoredVersion(Struct, frozen=True):
    """A version of an object; None if this revision deleted it."""

    revision: int
    object: dict[str, Any] | None


class Operation(Struct, frozen=True):
    """A request to a register, as the program porcupine reads it; times are nanoseconds."""

    key: str
    client: int
    call: int
    ret: int = msgspec.field(name="return")
    op: str = "read"
    value: str = ""
    expected: str = ""
    result: str = "ok"


class Attack(Struct, frozen=True):
    """A write of an attacker, and its answer and time, in microseconds since 1970."""

    at: int
    namespace: str
    what: str
    status: int
    message: str = ""


class Denial(Struct, frozen=True):
    """A write of an elector to a lease that was denied, as the audit log has it."""

    at: int
    namespace: str
    pod: str
    verb: str
    message: str


class Gap(Struct, frozen=True):
    """A time in which not all policies were in force; afterwards the stamps have another suffix."""

    after: int
    until: int
    suffix: str


class History(Struct, frozen=True):
    """All data against which the laws are checked. Times are microseconds since 1970."""

    seed: int
    protected: bool
    begin: int
    end: int
    faults: list[str]
    suffix: str
    gaps: list[Gap]
    offsets: dict[str, int]
    """By how many seconds the clock of each holder was ahead."""
    leases: dict[str, list[StoredVersion]]
    logs: list[StoredVersion]
    operations: list[Operation]
    attacks: list[Attack]
    denials: list[Denial]
    versions: tuple[str, ...] = ("v1.37.1",)
    """Versions of Kubernetes, which the API servers have in turn."""

    def find_suffix(self, revision: int) -> str:
        """Return the suffix of the stamps at a revision, "" while the policies were not all in force."""
        is_gap = any(gap.after < revision <= gap.until for gap in self.gaps)
        return "" if is_gap else self.find_latest_suffix(revision)

    def find_latest_suffix(self, revision: int) -> str:
        """Return the suffix of the policies that were all in force last, at a revision or before it."""
        return [self.suffix, *(gap.suffix for gap in self.gaps if revision > gap.until)][-1]


def keep(history: History, file: Path) -> None:
    """Write the history to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(msgspec.json.encode(history), 9, mtime=0))


def read_history(file: Path) -> History:
    """Read a history from a file."""
    return msgspec.json.decode(gzip.decompress(file.read_bytes()), type=History)
