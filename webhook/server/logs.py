"""JSON log lines that never delay a verdict: a bounded queue, a thread that writes it, a count of what was dropped."""

import contextlib
import datetime as dt
import logging
import logging.handlers
import os
import queue
import select
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from webhook.text.quoting import escape, truncate

LOG: Final = logging.getLogger("webhook.server")

MAX_TEXT: Final = 1024
"""Characters of one value in a log line; a traceback may have MAX_TRACEBACK."""
MAX_TRACEBACK: Final = 8192
MAX_LINES_WAITING: Final = 2000
FLUSH_TIMEOUT_SECONDS: Final = 1.0
WRITE_SECONDS: Final = 0.1

_TRACEBACKS: Final = logging.Formatter()
_encode = msgspec.json.Encoder().encode


class StdoutHandler(logging.handlers.QueueHandler):
    """Writes records as JSON lines to a file descriptor, first by itself and, after `start`, from a thread of its own.

    Before `start` (in gunicorn's master, which forks and so must have no threads) a line is dropped if the pipe is
    full; after it, lines wait in a bounded queue while the thread is stuck. `dropped` counts both. The thread writes
    what came in WRITE_SECONDS at once, because to wake it for each verdict would cost as much as a verdict.
    """

    queue: "queue.SimpleQueue[bytes]"

    def __init__(self, descriptor: int) -> None:
        super().__init__(queue.SimpleQueue())
        self.max_waiting = MAX_LINES_WAITING
        self.dropped = 0
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._thread: threading.Thread | None = None
        self._is_stopping = threading.Event()

    def start(self) -> None:
        """Write from a thread from now on; call it after the fork."""
        if self._thread is None:
            self._is_stopping.clear()
            self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Let the thread write what waits, for FLUSH_TIMEOUT_SECONDS at most; later lines are written at once."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_stopping.set()
            self.queue.put(b"")  # it may wait for a line
            thread.join(FLUSH_TIMEOUT_SECONDS)

    def forget_thread(self) -> None:
        """Write by itself again, in a fork: it has no thread, and what waits is its parent's to write."""
        self._thread = None
        self._is_stopping = threading.Event()
        self.queue = queue.SimpleQueue()

    def format(self, record: logging.LogRecord) -> str:
        """Return a line without its end; `extra={"fields": {...}}` of the caller is added next to the message."""
        line = _make_line(record.created, record.levelno, record.getMessage(), getattr(record, "fields", {}))
        if record.exc_info:
            lines = truncate(_TRACEBACKS.formatException(record.exc_info), MAX_TRACEBACK).split("\n")
            line["traceback"] = "\n".join(map(escape, lines))
        return _encode(line).decode()

    def prepare(self, record: logging.LogRecord) -> bytes:
        """Return the line: what waits must not hold a text as long as its client likes."""
        return self.format(record).encode("utf-8", "backslashreplace") + b"\n"

    def enqueue(self, record: bytes) -> None:  # type: ignore[override] # what `prepare` returns
        """Add a line; it never waits."""
        try:
            if self._thread is not None and self.queue.qsize() < self.max_waiting:
                self.queue.put(record)
            elif self._thread is None and self._poll.poll(0):
                _write(self._descriptor, record)
            else:
                self.dropped += 1
        except OSError:
            self.dropped += 1

    def add(self, level: int, message: str, fields: Mapping[str, object]) -> bool:
        """Add a line without a record of `logging`; False if no thread writes. It never raises.

        The record and what looks at it cost 15 us, an eighth of a whole denied review.
        """
        if self._thread is None:
            return False
        try:
            self.enqueue(_encode(_make_line(time.time(), level, message, fields)) + b"\n")
        except Exception:  # noqa: BLE001 - a line that cannot be written must not cost a verdict
            self.dropped += 1
        return True

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the library's name
        """Count a line that cannot be written: it must not cost a verdict."""
        self.dropped += 1

    def _write_all(self) -> None:
        is_last = False
        while not is_last:
            lines = [self.queue.get()]
            # Read before the lines are taken: what was added before `stop` is written.
            is_last = self._is_stopping.wait(WRITE_SECONDS)
            with contextlib.suppress(queue.Empty):
                while True:
                    lines.append(self.queue.get_nowait())
            try:
                _write(self._descriptor, b"".join(lines))
            except OSError:
                self.dropped += len(lines)


STDOUT: Final = StdoutHandler(1)
"""The handler of everything that a server process logs; unused until a logger gets it."""
os.register_at_fork(after_in_child=STDOUT.forget_thread)


def log_verdict(level: int, message: str, fields: Mapping[str, object]) -> None:
    """Log a line about a verdict."""
    if not STDOUT.add(level, message, fields):
        LOG.log(level, message, extra={"fields": fields})


class _Line(Struct):
    """The last line of a key: when it was logged, in monotonic seconds, and how many were dropped since."""

    logged_at: float
    dropped: int = 0


class LogThrottle:
    """Lets a line through for each of `max_keys` keys in each period, and counts the others of these keys."""

    def __init__(self, seconds: float, max_keys: int = 1) -> None:
        self._seconds = seconds
        self._max_keys = max_keys
        self._lines: OrderedDict[int, _Line] = OrderedDict()

    def admit(self, now: float, key: int = 0) -> int | None:
        """Return how many lines of this key were dropped since its last; None to drop this one. Monotonic seconds."""
        line = self._lines.get(key)
        if line is not None and now < line.logged_at + self._seconds:
            line.dropped += 1
            return None
        if line is None and len(self._lines) >= self._max_keys:
            # The oldest line comes first, so only that one may be forgotten.
            oldest = next(iter(self._lines))
            if now < self._lines[oldest].logged_at + self._seconds:
                return None
            del self._lines[oldest]
        self._lines[key] = _Line(now)
        self._lines.move_to_end(key)
        return line.dropped if line else 0


def _make_line(created: float, level: int, message: str, fields: Mapping[str, object]) -> dict[str, object]:
    moment = dt.datetime.fromtimestamp(created, dt.UTC)
    word = logging.getLevelName(level).lower()
    line = {"time": moment, "level": word, "message": _escape_value(message), "pid": os.getpid()}
    for key, value in fields.items():
        line[key] = _escape_value(value)
    return line


def _write(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]


def _escape_value(value: object) -> object:
    return escape(truncate(value, MAX_TEXT)) if isinstance(value, str) else value
