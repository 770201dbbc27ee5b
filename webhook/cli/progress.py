"""Long work shows itself in one line on a terminal, and Ctrl-C ends it with what is known so far.

Nothing is shown, and Ctrl-C ends the process, where standard error is not a terminal.
"""

import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO, TypeVar, cast

import click

from webhook.analysis.inputs.meter import Meter
from webhook.cli.terminal import print_message

INTERRUPTED: Final = 130
"""The exit code that a shell reports for a program that SIGINT ended."""
_DELAY: Final = 2.0
"""Seconds without a line: most work is over by then."""
_GRACE: Final = 1.0
"""Seconds after Ctrl-C for what was begun before it, and as many for what follows from that."""
_EVERY: Final = 0.25
_ERASED: Final = "\r\x1b[2K"
_UNITS: Final = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_T = TypeVar("_T")


class Progress:
    """The progress of one command: what it reads, then what it makes of it."""

    def __init__(self) -> None:
        self.meter = Meter()
        self.count: Callable[[], int] | None = None
        """Returns the number of leases that were read."""
        self.unreadable = 0
        """How many parts could not be read."""
        self._stopped_at: list[str] = []
        self._ends = math.inf
        """The monotonic time at which everything ends that was stopped."""

    def track_reading(self, items: Iterable[_T]) -> Iterator[_T]:
        """Yield what inputs have, and show how much was read; Ctrl-C ends the inputs."""
        with self._show_line(lambda: f"read {self._describe_reading()}", "answers with what was read"):
            for item in items:
                yield item
                if self._is_over:
                    break
        if self.meter.is_stopped:
            self._stopped_at.append(f"read {self._describe_reading()}")

    def track(self, things: Collection[_T], what: str) -> Iterator[_T]:
        """Yield what is to be evaluated, and show how many were; Ctrl-C ends it."""
        number, total = 0, len(things)
        self.meter.is_stopped = False
        if self._stopped_at:
            self._ends = time.monotonic() + _GRACE
        with self._show_line(
            lambda: f"{number:,} of {total:,} {what} ({_format_share(number, total)})", "answers with these"
        ):
            for number, thing in enumerate(things, 1):  # noqa: B007 - for the line
                yield thing
                if self.meter.is_stopped or self._is_over:
                    break
        if number < total:
            self._stopped_at.append(f"{number:,} of {total:,} {what}")

    def exit_code(self, code: int) -> int:
        """Return the exit code of a command that would have ended with `code`, and say where it was stopped."""
        if not self._stopped_at:
            return code
        print_message(f"stopped by Ctrl-C: {', '.join(self._stopped_at)}; the rest is not in this answer")
        return INTERRUPTED

    @property
    def is_stopped(self) -> bool:
        """True if Ctrl-C ended it before everything was read and evaluated."""
        return bool(self._stopped_at)

    def refuse(self, failure: click.ClickException) -> Exception:
        """Return how a command ends with a failure: if it was stopped, what it misses may be in the rest."""
        return click.exceptions.Exit(self.exit_code(INTERRUPTED)) if self.is_stopped else failure

    @property
    def _is_over(self) -> bool:
        """True if it was stopped, and what was begun before has taken its time."""
        return time.monotonic() > self._ends

    def _describe_reading(self) -> str:
        meter = self.meter
        read = f"{meter.items:,} objects"
        if meter.size:
            done, total = format_size(min(meter.read, meter.size)), format_size(meter.size)
            read = f"{done} of {total} ({_format_share(meter.read, meter.size)})"
        elif meter.read:
            read = format_size(meter.read)
        return read if self.count is None else f"{read}, {self.count():,} leases"

    @contextmanager
    def _show_line(self, describe: Callable[[], str], result: str) -> Iterator[None]:
        if not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(*_: object) -> None:
            self.meter.is_stopped = True
            self._ends = time.monotonic() + _GRACE
            # A second one ends the process.
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        before = signal.signal(signal.SIGINT, stop)
        line = _Line(sys.stderr, lambda: f"{describe()}; Ctrl-C {result}")
        streams = sys.stdout, sys.stderr
        if sys.stdout.isatty():
            sys.stdout = cast("TextIO", _StreamAboveLine(sys.stdout, line))
        sys.stderr = cast("TextIO", _StreamAboveLine(sys.stderr, line))
        line.start()
        try:
            yield
        finally:
            line.stop()
            sys.stdout, sys.stderr = streams
            signal.signal(signal.SIGINT, before)


class _Line(threading.Thread):
    """The last line of a terminal, drawn again and again, and gone at the end."""

    def __init__(self, terminal: TextIO, describe: Callable[[], str]) -> None:
        super().__init__(name="progress", daemon=True)
        self._terminal, self._describe = terminal, describe
        self._ended = threading.Event()
        self.lock = threading.Lock()
        self._is_drawn = False

    def run(self) -> None:
        """Draw it after a while."""
        if self._ended.wait(_DELAY) or os.environ.get("TERM") == "dumb":
            return
        while not self._ended.is_set():
            text = self._describe()[: shutil.get_terminal_size().columns - 1]
            with self.lock:
                self._terminal.write(f"{_ERASED}{text}")
                self._terminal.flush()
                self._is_drawn = True
            self._ended.wait(_EVERY)

    def erase(self) -> None:
        """Remove it until it is drawn again; the caller has the lock."""
        if self._is_drawn:
            self._terminal.write(_ERASED)
            self._terminal.flush()
            self._is_drawn = False

    def stop(self) -> None:
        """Remove it for good."""
        self._ended.set()
        self.join()
        with self.lock:
            self.erase()


class _StreamAboveLine:
    """A stream to the same terminal, whose lines go above the line."""

    def __init__(self, stream: TextIO, line: _Line) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        with self._line.lock:
            self._line.erase()
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of a stream
        return getattr(self._stream, name)


def format_size(number: int) -> str:
    """Return bytes as people read them, `120 MB`, as the sizes of files are."""
    unit, suffix = next(((unit, suffix) for unit, suffix in _UNITS if number >= unit), (1, "bytes"))
    return f"{number / unit:.1f} {suffix}" if 10 * unit > number > unit > 1 else f"{number // unit} {suffix}"


def _format_share(number: int, total: int) -> str:
    return f"{100 * min(number, total) // total} %"
