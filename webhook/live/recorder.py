"""Records what happens to leases in a directory: files that grow, each up to a size, and the state of the present.

`latest.jsonl` has the state of every object, written again each minute; the other files only grow, and the oldest is
removed. A process that is killed leaves at most half a line, which the next one removes. What was not seen, or could
not be written, is recorded as a gap.
"""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from webhook.api.times import SECOND, canonical_seconds
from webhook.inputs import InputError
from webhook.inputs.files import read_path
from webhook.inputs.items import ElectionEvent, Item, Observation
from webhook.inputs.kinds import GAP, observations
from webhook.live.condenser import Condenser, Key

LATEST: Final = "latest.jsonl"
FILES: Final = 16
"""Files that the limit of the history is divided into."""
LISTED_AFTER: Final = 30.0
"""Seconds after which a list that a watch begins with is taken to be over."""
_MAX_WAITING: Final = 16 * 1024 * 1024
"""Bytes of records that wait while the disk is full."""


class Records:
    """The files; `lost_since` is when records were first lost, in seconds since 1970, None if none were."""

    def __init__(self, directory: Path, limit: int) -> None:
        """Raise InputError if another recorder writes there; `limit` is of the history, in bytes."""
        self.directory = directory
        self.lost_since: float | None = None
        self.problem = ""
        self._limit = limit
        self._waiting: list[bytes] = []
        self._file: BinaryIO | None = None
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(directory / ".lock", os.O_CREAT | os.O_WRONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{directory} is not writable, or another recorder writes there: {error}") from error

    def files(self) -> list[Path]:
        """Return the files of the history, oldest first."""
        return sorted(self.directory.glob("leases-*.jsonl"))

    def begin(self) -> float | None:
        """Correct what the process before left, of which its present becomes history; return when it wrote last."""
        latest = self.directory / LATEST
        if latest.exists():
            latest.rename(self._new_name())
        for path in self.files()[-2:]:
            text = path.read_bytes()
            if not text.endswith(b"\n"):
                os.truncate(path, text.rfind(b"\n") + 1)
        return max((path.stat().st_mtime for path in self.files()), default=None)

    def append(self, lines: Iterable[bytes]) -> None:
        """Add to the history; what cannot be written waits, and is lost if that is too much."""
        self._waiting += lines
        if not self._waiting:
            return
        text = b"".join(self._waiting)
        try:
            if self._file is None:
                self._file = self._new_name().open("ab", buffering=0)
            size = _write(self._file, text)
        except OSError as error:
            self.problem = str(error)
            if len(text) > _MAX_WAITING:
                self._waiting, self.lost_since = [], self.lost_since or time.time()
            return
        self._waiting, self.problem = [], ""
        if size * FILES > self._limit:
            self._file.close()
            self._file = None
            for path in self.files()[: -FILES + 1]:
                path.unlink()

    def replace_latest(self, lines: Iterable[bytes]) -> None:
        """Write the present; while that is not possible, the one before stays."""
        new = self.directory / f"{LATEST}.tmp"
        try:
            with new.open("wb") as file:
                file.writelines(lines)
            new.rename(self.directory / LATEST)
            self.problem = self.problem if self._waiting else ""
        except OSError as error:
            self.problem = str(error)

    def _new_name(self) -> Path:
        """Return a name that is after all others in their order, also if the clock was set back."""
        last = max((path.stem for path in self.files()), default="")
        name = f"leases-{time.time_ns() // 1_000_000:015d}"
        return self.directory / f"{name if name > last else last + '0'}.jsonl"


class Recorder:
    """What the watch of leases is shown to; `say` is called with what is wrong."""

    def __init__(self, records: Records, say: Callable[[str], None]) -> None:
        self._records = records
        self._say = say
        self._said = ""
        self._lock = threading.Lock()
        self._condenser = Condenser()
        for item in observations(read_path(str(records.directory / LATEST))):
            if isinstance(item, Observation):
                list(self._condenser.take(item))
        self._seen_at = records.begin()
        self._reason = "the recorder did not run"
        self._shown: set[Key] | None = None
        """What a watch that has begun has shown, until its list is over."""
        self._listed_at = 0.0

    def began(self) -> None:
        """Note that the watch begins, perhaps again: what happened since it was seen last is not known."""
        with self._lock:
            self._shown, self._listed_at = set(), 0.0

    def observe(self, item: Item) -> None:
        """Take in one thing, of whatever watch."""
        with self._lock:
            if isinstance(item, ElectionEvent):
                self._append([_event(item)])
            elif isinstance(item, Observation):
                if item.kind == "Lease":
                    self._note_listed(item)
                self._append(self._condenser.take(item))

    def show_status(self, status: str) -> None:
        """Remember why a watch ended, and say it."""
        self._reason = status or self._reason
        if status and status != self._said:
            self._said = status
            self._say(status)

    def save(self) -> None:
        """Write the present, and what waits."""
        with self._lock:
            if self._shown is not None and 0 < self._listed_at < time.monotonic() - LISTED_AFTER:
                known = {key for key in self._condenser.keys if key[0] == "Lease"}
                self._append(self._condenser.gone(known - self._shown))
                self._shown = None
            self._append(())
            self._records.replace_latest(self._condenser.snapshot())
            problem = self._records.problem
        self.show_status(f"the history cannot be written: {problem}" if problem else "")

    def _note_listed(self, item: Observation) -> None:
        """Record a gap before the first thing that a watch shows, and remember what its list has."""
        if self._shown is not None:
            if not self._listed_at:
                self._listed_at = time.monotonic()
                if self._seen_at is not None:
                    self._append([_gap(self._seen_at, self._reason)])
            self._shown.add((item.kind, item.namespace, item.name))
        self._seen_at = time.time()

    def _append(self, lines: Iterable[bytes]) -> None:
        self._records.append(lines)
        lost = self._records.lost_since
        if lost is not None and not self._records.problem:
            self._records.lost_since = None
            self._condenser.forget_counts()
            self._records.append([_gap(lost, "the history could not be written"), *self._condenser.snapshot()])


class Beside:
    """What the watches of candidates and of Events are shown to: they come on top of the leases."""

    def __init__(self, recorder: Recorder) -> None:
        self.observe, self.show_status = recorder.observe, recorder.show_status

    def began(self) -> None:
        """Nothing is missed that matters."""


def _write(file: BinaryIO, text: bytes) -> int:
    """Write all of it or nothing, and return the size of the file."""
    size = file.tell()
    if file.write(text) != len(text):
        file.seek(size)
        file.truncate()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return size + len(text)


def _gap(since: float, reason: str) -> bytes:
    start, end = (canonical_seconds(int(at * SECOND)) for at in (since, time.time()))
    return _line(GAP, {"from": start, "to": end, "reason": reason})


def _event(item: ElectionEvent) -> bytes:
    about = {"kind": "Lease", "namespace": item.namespace, "name": item.lease}
    head = {"kind": "Event", "apiVersion": "v1", "lastTimestamp": canonical_seconds(item.at)}
    return _line("ADDED", {**head, "message": item.text, "involvedObject": about})


def _line(change: str, shown: dict[str, object]) -> bytes:
    return msgspec.json.encode({"type": change, "object": shown}) + b"\n"
