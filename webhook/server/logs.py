"""JSON log lines that never delay a verdict: a bounded queue, one thread that writes, a count of what was dropped."""

import contextlib
import datetime as dt
import logging
import os
import queue
import select
import threading
from typing import Any, Final

import msgspec

from webhook.api.text import cut, escape, escape_lines

LOG: Final = logging.getLogger("webhook.server")

LONGEST_TEXT: Final = 1024
"""Characters of one value in a log line; a traceback may have LONGEST_TRACEBACK."""
LONGEST_TRACEBACK: Final = 8192
LINES_WAITING: Final = 2000
STANDARD_OUTPUT: Final = 1
FLUSH_TIMEOUT_SECONDS: Final = 1.0

_STOP: Final = b""
_encode = msgspec.json.Encoder().encode


class JsonFormatter(logging.Formatter):
    """One record as one line. What the caller gave as `extra={"fields": {...}}` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
        line: dict[str, Any] = {
            "time": f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z",
            "level": record.levelname.lower(),
            "message": _shown(record.getMessage()),
            "pid": record.process,
        }
        fields = getattr(record, "fields", None)
        if fields:
            line.update({key: _shown(value) for key, value in fields.items()})
        if record.exc_info:
            line["traceback"] = escape_lines(cut(self.formatException(record.exc_info), LONGEST_TRACEBACK))
        return _encode(line).decode()


class StdoutHandler(logging.Handler):
    """Writes lines to a file descriptor, first by itself and, after `start`, from a thread of its own.

    Before `start` (in gunicorn's master, which forks and so must have no threads) a line is dropped if the pipe is
    full; after it, lines wait in a bounded queue while the thread is stuck. `dropped` counts both. The queue handler of
    the standard library would wait without limit at its end, and does not count.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.dropped = 0
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)

    def start(self) -> None:
        """From now on write from a thread; call it after the fork."""
        self._lines = queue.Queue(LINES_WAITING)
        self._thread = threading.Thread(target=self._write_all, args=(self._lines,), name="log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread write what waits, for FLUSH_TIMEOUT_SECONDS at most."""
        if self._lines is None or self._thread is None:
            return
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(_STOP)
        self._thread.join(FLUSH_TIMEOUT_SECONDS)
        self._lines = self._thread = None

    def emit(self, record: logging.LogRecord) -> None:
        """Hand one line on; it never waits and never raises."""
        try:
            line = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
            if self._lines is not None:
                self._lines.put_nowait(line)
            elif self._room.poll(0):
                _write(self._descriptor, line)
            else:
                self.dropped += 1
        except Exception:  # noqa: BLE001 - a line that cannot be written must not cost a verdict; it is counted
            self.dropped += 1

    def _write_all(self, lines: queue.Queue[bytes]) -> None:
        while line := lines.get():
            try:
                _write(self._descriptor, line)
            except OSError:
                self.dropped += 1


STDOUT: Final = StdoutHandler(STANDARD_OUTPUT)
"""Where a server process logs everything; unused until a logger gets it as its handler."""


class LogThrottle:
    """Admits one line in each period, and counts the others for the next."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._silent = 0

    def admit(self, now: float) -> int | None:
        """None if the line is dropped, else how many were dropped since the last; `now` is monotonic seconds."""
        if now < self._next:
            self._silent += 1
            return None
        silent, self._silent = self._silent, 0
        self._next = now + self._seconds
        return silent


def _write(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]


def _shown(value: object) -> object:
    if isinstance(value, str):
        return escape(cut(value, LONGEST_TEXT))
    return value
