"""Keeps the latest reviews on disk, byte for byte, in the shape that `replay` and the project's own fixtures have.

A body file for each review, and `index.jsonl` with one line for each file. A thread writes; what it cannot keep up
with is dropped and counted. All workers share one directory, behind a lock file.
"""

import datetime as dt
import fcntl
import itertools
import os
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Any, Final

import msgspec

from webhook.server.logs import LOG, LogThrottle
from webhook.server.respond import ReviewResponse
from webhook.server.reviewer import Reviewed

INDEX: Final = "index.jsonl"
LOCK: Final = ".lock"
MOST_REVIEWS: Final = 1000
MOST_BYTES: Final = 256 * 1024 * 1024
STEP: Final = 0.05
"""Share of the ring that a worker writes between two looks at its size; with many workers it is larger by as much."""
MOST_WAITING: Final = 200
MOST_BYTES_WAITING: Final = 32 * 1024 * 1024
FLUSH_TIMEOUT_SECONDS: Final = 2.0
SECONDS_BETWEEN_LINES: Final = 60

_SECRET: Final = frozenset({b"authorization", b"cookie", b"proxy-authorization"})
_encode = msgspec.json.Encoder().encode


class _Taken(msgspec.Struct, frozen=True):
    received: dt.datetime
    body: bytes
    headers: Mapping[bytes, bytes]
    response: ReviewResponse


class Capture:
    """One worker's part in the ring; call `start` after the fork. `dropped` counts reviews that were not kept."""

    def __init__(self, directory: Path, most_reviews: int = MOST_REVIEWS, most_bytes: int = MOST_BYTES) -> None:
        self.dropped = 0
        self._directory = directory
        self._most_reviews = most_reviews
        self._most_bytes = most_bytes
        self._waiting: queue.Queue[_Taken | None] = queue.Queue(MOST_WAITING)
        self._bytes_waiting = 0
        self._bytes_lock = threading.Lock()
        self._reviews_since_look = most_reviews
        self._bytes_since_look = 0
        self._numbers = itertools.count(1)
        self._throttle = LogThrottle(SECONDS_BETWEEN_LINES)
        self._thread = threading.Thread(target=self._write_all, name="capture", daemon=True)

    def start(self) -> None:
        """Begin to write; raises OSError if the directory cannot be made."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for a moment."""
        try:
            self._waiting.put(None, timeout=FLUSH_TIMEOUT_SECONDS)
        except queue.Full:
            return
        self._thread.join(FLUSH_TIMEOUT_SECONDS)

    def responded(self, review: Reviewed) -> None:
        """Take one review that got a verdict; never waits."""
        if review.response.request is None:
            return
        if self._bytes_waiting + len(review.body) > MOST_BYTES_WAITING:
            self.dropped += 1
            return
        try:
            self._waiting.put_nowait(_Taken(dt.datetime.now(dt.UTC), review.body, review.headers, review.response))
        except queue.Full:
            self.dropped += 1
        else:
            self._count_waiting(len(review.body))

    def failed(self, kind: str) -> None:
        """A review without a verdict is in the log, not here."""

    def _count_waiting(self, change: int) -> None:
        with self._bytes_lock:
            self._bytes_waiting += change

    def _write_all(self) -> None:
        while (taken := self._waiting.get()) is not None:
            self._count_waiting(-len(taken.body))
            try:
                with self._alone():
                    self._write(taken)
            except Exception as error:  # noqa: BLE001 - whatever stands in the directory, the next review is kept
                self.dropped += 1
                if self._throttle.admit(time.monotonic()) is not None:
                    LOG.error("a review could not be captured", extra={"fields": {"problem": str(error)}})

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with _private(self._directory / LOCK, "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, taken: _Taken) -> None:
        entry = _entry(taken, f"{os.getpid()}-{next(self._numbers)}")
        path = self._directory / entry["file"]
        try:
            with _private(path, "xb") as file:
                file.write(taken.body)
            with _private(self._directory / INDEX, "a+b") as index:
                index.write(_end_of_line(index) + _encode(entry) + b"\n")
        except BaseException:
            # A file that the index does not name would never be removed.
            path.unlink(missing_ok=True)
            raise
        self._reviews_since_look += 1
        self._bytes_since_look += len(taken.body)
        if self._reviews_since_look > self._most_reviews * STEP or self._bytes_since_look > self._most_bytes * STEP:
            self._reviews_since_look = self._bytes_since_look = 0
            self._forget_old()

    def _forget_old(self) -> None:
        """Drop the oldest reviews of a full ring, and a tenth of it more; lines that are not ours go as well."""
        lines = (self._directory / INDEX).read_bytes().splitlines()
        kept = [(line, entry) for line in lines if (entry := _line(line)) is not None]
        total = sum(entry.bytes for _, entry in kept)
        if len(lines) <= self._most_reviews and total <= self._most_bytes:
            return
        gone = 0
        while len(kept) - gone > self._most_reviews * 0.9 or total > self._most_bytes * 0.9:
            total -= kept[gone][1].bytes
            gone += 1
        fresh = self._directory / f".{INDEX}"
        with _private(fresh, "wb") as file:
            file.writelines(line + b"\n" for line, _ in kept[gone:])
        for _, entry in kept[:gone]:
            with suppress(OSError):
                (self._directory / entry.file).unlink()
        fresh.replace(self._directory / INDEX)


class _Line(msgspec.Struct, frozen=True):
    """What the ring needs of a line: the name of a file in this directory, and its size."""

    file: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]{0,200}\.json$")]
    bytes: Annotated[int, msgspec.Meta(ge=0, le=2**40)]


def _line(text: bytes) -> _Line | None:
    """A line of the index; None for half a line, or one that names something else than a captured review."""
    try:
        return msgspec.json.decode(text, type=_Line)
    except (msgspec.DecodeError, RecursionError):
        return None


def _end_of_line(index: IO[bytes]) -> bytes:
    """A line break if the last line has none: a full disk or a crash cut it."""
    if index.tell() == 0:
        return b""
    index.seek(-1, os.SEEK_END)
    return b"" if index.read(1) == b"\n" else b"\n"


_FLAGS: Final = {
    "ab": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "a+b": os.O_RDWR | os.O_CREAT | os.O_APPEND,
    "wb": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}


def _private(path: Path, mode: str) -> IO[bytes]:
    """A file that others cannot read, as captured reviews hold names, labels and users; never what a link points to."""
    descriptor = os.open(path, _FLAGS[mode] | os.O_NOFOLLOW | os.O_CLOEXEC, mode=0o600)
    return os.fdopen(descriptor, mode.replace("x", "w"))


def _entry(taken: _Taken, unique: str) -> dict[str, Any]:
    """One line of the index; names and text are data, the file's name is made of ours only."""
    request, verdict = taken.response.request, taken.response.verdict
    assert request is not None
    assert verdict is not None
    event = verdict.event or "unknown"
    return {
        "file": f"{taken.received:%Y%m%dT%H%M%S.%f}-{unique}-{request.operation.lower()}-{event}.json",
        "event": event,
        "resource": request.resource,
        "api_version": f"{request.group}/{request.version}",
        "operation": request.operation,
        "namespace": request.namespace,
        "name": request.name,
        "dry_run": bool(request.options.dry_run),
        "user": request.user.username if request.user else "",
        "received": f"{taken.received:%Y-%m-%dT%H:%M:%S.%f}Z",
        "headers": {
            name.decode("latin-1").title(): value.decode("latin-1")
            for name, value in taken.headers.items()
            if name not in _SECRET
        },
        "bytes": len(taken.body),
        "verdict": "allowed" if verdict.allowed else "denied",
    }
