"""Printing: color on a terminal only, lines that fit, JSON lines, and messages on standard error."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

import click
import msgspec
from msgspec import Struct

from webhook.api.text import escape

MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 100


class Failure(click.ClickException):
    """A command cannot continue. The text goes to standard error as one line; the exit code is 2."""

    exit_code = 2


@contextmanager
def needing_the_server(what: str) -> Iterator[None]:
    """Wrap imports of packages that only the server installs: the commands work without it, and help must too."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise Failure(f"{what} needs {missing.name}, which the server brings: lease-webhook[server]") from missing


class Paint(Struct, frozen=True):
    """Colors for one stream; each method returns its text unchanged if `color` is false."""

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
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def paint_for(stream: TextIO) -> Paint:
    """Return the colors: on a terminal only, and none if NO_COLOR is set (no-color.org) or TERM is dumb."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Paint(color=wanted and stream.isatty())


def width() -> int:
    """Return the columns to use: those of the terminal, or of COLUMNS, from 60 to 100; 100 if there is none."""
    return max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size(fallback=(100, 24)).columns))


def indent(text: str, by: int, columns: int | None = None) -> str:
    """Return the text wrapped to `columns` and indented; long names are never broken."""
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
    """Return rows as aligned lines, with two spaces between columns.

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


def json_line(document: dict[str, Any] | Struct) -> str:
    """Return one line of ASCII: names of a client may hold line separators, and reach terminals too."""
    return json.dumps(msgspec.to_builtins(document), separators=(",", ":"))


def print_message(text: str) -> None:
    """Print one line on standard error, whatever is in the text."""
    print(escape(text), file=sys.stderr)
