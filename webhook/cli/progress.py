"""A line on the terminal that shows the progress of a long run."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final, TextIO, TypeVar

AFTER: Final = 2.0
"""Seconds that a run may be silent."""
EVERY: Final = 0.5

_CLEAR: Final = "\r\x1b[K"

T = TypeVar("T")


class Progress:
    """Counts items; shown on standard error, on a terminal only."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._wanted = self._stream.isatty()
        self._next = time.monotonic() + AFTER
        self._shown = False

    def watch(self, items: Iterable[T]) -> Iterator[T]:
        """The items, counted; the line is removed at the end, also after an error."""
        try:
            for number, item in enumerate(items, 1):
                if self._wanted and time.monotonic() >= self._next:
                    self._show(number)
                yield item
        finally:
            self.clear()

    def print(self, *lines: str) -> None:
        """Print lines to standard output, without the progress line between them."""
        self.clear()
        for line in lines:
            print(line)

    def clear(self) -> None:
        """Remove the line, before something else is printed."""
        if self._shown:
            print(_CLEAR, end="", file=self._stream, flush=True)
            self._shown = False

    def _show(self, number: int) -> None:
        self._next = time.monotonic() + EVERY
        print(f"{_CLEAR}{number} {self._what} ...", end="", file=self._stream, flush=True)
        self._shown = True
