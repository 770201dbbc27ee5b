"""Reads inputs, merged in the order of time, with a line of progress and a note of what could not be read."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TextIO, TypeVar

from webhook.cli.terminal import print_message
from webhook.history.merge import Merged
from webhook.inputs.files import inputs
from webhook.inputs.items import Item, Unreadable
from webhook.rules.expiry import BOUND

AFTER: Final = 2.0
"""Seconds that a run may be silent."""
EVERY: Final = 0.5
NAMED: Final = 5
"""How many unreadable parts are named; the others are counted."""

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
        """Yield the items, counted; the line is removed at the end, also after an error."""
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


class InputProgress(Progress):
    """`unreadable` is how much could not be read."""

    unreadable = 0

    def watch(self, items: Iterable[T]) -> Iterator[T]:
        """Yield every item, each as soon as it is read."""
        for item in super().watch(items):
            if isinstance(item, Unreadable):
                self.unreadable += 1
                if self.unreadable <= NAMED:
                    self.clear()
                    print_message(f"{item.place}: {item.error}")
            yield item
        if self.unreadable > NAMED:
            print_message(f"{self.unreadable - NAMED} more could not be read")


def observe_all(paths: Sequence[str]) -> Iterator[Item]:
    """Yield every observation in files, directories and standard input (`-`), merged in the order of time."""
    return iter(Merged(inputs(paths), time.time_ns() // 1000 + BOUND))
