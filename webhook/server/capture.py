"""Keeps the latest reviews in a directory, as `check` reads them."""

import datetime as dt
import fcntl
import itertools
import os
import queue
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from webhook.server.logs import LOG, LogThrottle
from webhook.server.reviewer import ReviewRecord

_SECONDS_BETWEEN_LINES: Final = 60.0
"""Between two lines about reviews that could not be captured."""
INDEX: Final = "index.jsonl"
MAX_REVIEWS: Final = 1000
MAX_BODY: Final = 256 * 1024
"""Bytes of a review that is captured, so that the ring has about 256 MiB; larger ones are dropped."""
_LOCK: Final = ".lock"
_FILES: Final = "????????T??????.??????-*.json"
"""The names that `_make_entry` makes; sorted by name, the oldest comes first."""
_FILE: Final = b'{"file":"'
"""The start of a line of the index."""
_STEPS: Final = 20
"""How often a worker checks the size of the ring while it fills it, so each may exceed the limit by a twentieth."""
_MAX_WAITING: Final = 128
_FLUSH_TIMEOUT_SECONDS: Final = 2.0
_SECRET: Final = frozenset({"HTTP_AUTHORIZATION", "HTTP_COOKIE", "HTTP_PROXY_AUTHORIZATION"})
_HEADERS: Final = frozenset({"CONTENT_TYPE", "CONTENT_LENGTH"})
_encode = msgspec.json.Encoder().encode


_Captured = tuple[dt.datetime, ReviewRecord]


class Capture:
    """One worker's share of a ring of the latest reviews on disk, byte for byte; call `start` after the fork.

    A body file for each review, and `index.jsonl` with one line for each file, in the shape that `check` and the
    project's own fixtures have. A thread writes; `dropped` counts what it cannot keep up with. All workers share one
    directory, behind a lock file.
    """

    def __init__(self, directory: Path, max_reviews: int = MAX_REVIEWS) -> None:
        self.dropped = 0
        self._directory = directory
        self._max_reviews = max_reviews
        self._waiting: queue.Queue[_Captured | None] = queue.Queue(_MAX_WAITING)
        self._step = max(1, max_reviews // _STEPS)
        self._numbers = itertools.count()
        self._throttle = LogThrottle(_SECONDS_BETWEEN_LINES)
        self._thread = threading.Thread(target=self._write_all, name="capture", daemon=True)

    def start(self) -> None:
        """Begin to write; raises OSError if the directory cannot be made."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for a moment."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_FLUSH_TIMEOUT_SECONDS)
            self._thread.join(_FLUSH_TIMEOUT_SECONDS)

    def record(self, review: ReviewRecord) -> None:
        """Take one review that got a verdict; never waits."""
        if review.response.request is None:
            return
        if len(review.body) <= MAX_BODY:
            with suppress(queue.Full):
                self._waiting.put_nowait((dt.datetime.now(dt.UTC), review))
                return
        self.dropped += 1

    def _write_all(self) -> None:
        while (captured := self._waiting.get()) is not None:
            try:
                with _open_private(self._directory / _LOCK, "ab") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    self._write(*captured)
            except Exception as error:  # noqa: BLE001 - whatever is in the directory, the next review is kept
                self.dropped += 1
                if self._throttle.admit(time.monotonic()) is not None:
                    LOG.error("a review could not be captured", extra={"fields": {"problem": str(error)}})

    def _write(self, received: dt.datetime, review: ReviewRecord) -> None:
        number = next(self._numbers)
        entry = _make_entry(received, review, f"{os.getpid()}-{number}")
        path = self._directory / entry["file"]
        try:
            with _open_private(path, "xb") as file:
                file.write(review.body)
            with _open_private(self._directory / INDEX, "a+b") as index:
                index.write(_end_of_line(index) + _encode(entry) + b"\n")
        except BaseException:
            # A file that the index does not name would never be removed.
            path.unlink(missing_ok=True)
            raise
        if number % self._step == 0:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drop the oldest reviews of a full ring, and a tenth of it more, and the lines of what is not there."""
        kept = sorted(self._directory.glob(_FILES))
        if len(kept) <= self._max_reviews:
            return
        while len(kept) > self._max_reviews * 0.9:
            kept.pop(0).unlink()
        names = {file.name.encode() for file in kept}
        lines = (self._directory / INDEX).read_bytes().splitlines()
        fresh = self._directory / f".{INDEX}"
        with _open_private(fresh, "wb") as file:
            file.writelines(line + b"\n" for line in lines if line.removeprefix(_FILE).partition(b'"')[0] in names)
        fresh.replace(self._directory / INDEX)


def _end_of_line(index: IO[bytes]) -> bytes:
    """Return a line break if the last line has none: a full disk or a crash cut it."""
    if index.tell() == 0:
        return b""
    index.seek(-1, os.SEEK_END)
    return b"" if index.read(1) == b"\n" else b"\n"


def _open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file that others cannot read, as reviews hold names, labels and users; never what a link points to."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, mode=0o600))


def _make_entry(received: dt.datetime, review: ReviewRecord, unique: str) -> dict[str, Any]:
    """Return one line of the index; names and text are data, the file's name is made of ours only."""
    request, verdict = review.response.request, review.response.verdict
    assert request is not None
    assert verdict is not None
    event = verdict.event or "unknown"
    return {
        "file": f"{received:%Y%m%dT%H%M%S.%f}-{unique}-{request.operation.lower()}-{event}.json",
        "event": event,
        "resource": request.resource,
        "api_version": f"{request.group}/{request.version}",
        "operation": request.operation,
        "namespace": request.namespace,
        "name": request.name,
        "dry_run": bool(request.options.dry_run),
        "user": request.user.username if request.user else "",
        "received": f"{received:%Y-%m-%dT%H:%M:%S.%f}Z",
        "headers": {
            key.removeprefix("HTTP_").replace("_", "-").title(): value
            for key, value in review.environ.items()
            if (key.startswith("HTTP_") or key in _HEADERS) and key not in _SECRET
        },
        "bytes": len(review.body),
        "verdict": verdict.outcome,
    }
