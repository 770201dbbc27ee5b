"""Text for a terminal: colour only where a person looks, lines that fit."""

import os
import shutil
import textwrap
from collections.abc import Sequence
from typing import Final, TextIO

from msgspec import Struct

NARROWEST: Final = 60
WIDEST: Final = 120
_RESET: Final = "\x1b[0m"


class Paint(Struct, frozen=True):
    """Colours for one stream; each method gives its text back unchanged where `colour` is false."""

    colour: bool

    def red(self, text: str) -> str:
        """Denied, broken."""
        return self._in("31", text)

    def yellow(self, text: str) -> str:
        """Allowed, but told."""
        return self._in("33", text)

    def green(self, text: str) -> str:
        """Allowed, good."""
        return self._in("32", text)

    def dim(self, text: str) -> str:
        """What the eye may skip."""
        return self._in("2", text)

    def bold(self, text: str) -> str:
        """What the eye should find first."""
        return self._in("1", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.colour else text


def paint_for(stream: TextIO) -> Paint:
    """Colour on a terminal only, and never where NO_COLOR is set (no-color.org) or TERM is dumb."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Paint(colour=wanted and stream.isatty())


def width() -> int:
    """Columns to use: those of the terminal, or of COLUMNS, within reason; 100 where there is none."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size(fallback=(100, 24)).columns))


def indent(text: str, by: int, columns: int | None = None) -> str:
    """The text wrapped to `columns` and indented; long names are never broken."""
    margin = " " * by
    return textwrap.fill(
        text,
        columns or width(),
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(rows: Sequence[tuple[str, ...]], by: int = 2) -> list[str]:
    """Rows as aligned lines, two blanks between columns; the last column is as long as it likes."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)][:-1]
    return [
        (" " * by + "  ".join([*(cell.ljust(n) for cell, n in zip(row, widths, strict=False)), row[-1]])).rstrip()
        for row in rows
    ]
