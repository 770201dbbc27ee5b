"""Text for a terminal: color on a terminal only, lines that fit."""

import os
import shutil
import textwrap
from collections.abc import Sequence
from typing import Final, TextIO

from msgspec import Struct

NARROWEST: Final = 60
WIDEST: Final = 100
_RESET: Final = "\x1b[0m"


class Paint(Struct, frozen=True):
    """Colors for one stream; each method gives its text back unchanged if `color` is false."""

    color: bool

    def red(self, text: str) -> str:
        """Denied, broken."""
        return self._in("31", text)

    def yellow(self, text: str) -> str:
        """Allowed with warnings."""
        return self._in("33", text)

    def green(self, text: str) -> str:
        """Allowed, good."""
        return self._in("32", text)

    def dim(self, text: str) -> str:
        """Less important text."""
        return self._in("2", text)

    def bold(self, text: str) -> str:
        """Titles and names."""
        return self._in("1", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.color else text


def paint_for(stream: TextIO) -> Paint:
    """Color on a terminal only, and never if NO_COLOR is set (no-color.org) or TERM is dumb."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Paint(color=wanted and stream.isatty())


def width() -> int:
    """Columns to use: those of the terminal, or of COLUMNS, from 60 to 100; 100 if there is none."""
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


def table(rows: Sequence[tuple[str, ...]], by: int = 2, columns: int | None = None) -> list[str]:
    """Rows as aligned lines, with two spaces between columns.

    The last column may be of any width, or is wrapped if `columns` limits the width of the table.
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)][:-1]
    start = by + sum(widths) + 2 * len(widths)
    lines = []
    for row in rows:
        cells = " " * by + "".join(f"{cell.ljust(n)}  " for cell, n in zip(row, widths, strict=False))
        last = indent(row[-1], start, columns).lstrip() if columns else row[-1]
        lines += f"{cells}{last}".rstrip().split("\n")
    return lines
