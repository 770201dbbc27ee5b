"""Printing: color on a terminal only, lines that fit, JSON lines, and messages on standard error."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from webhook.text.quoting import escape

_COMMAND: Final = re.compile("kubectl|lease-webhook")
_CALL: Final = re.compile("(?:kubectl|lease-webhook) [a-z-]")
"""A command as it is called: the name of the program before a message is none."""
_STYLE: Final = re.compile(r"\x1b\[[;?0-9]*[a-zA-Z]")
_STYLE_OR_LETTER: Final = re.compile(rf"{_STYLE.pattern}|\S")
_END_OF_STYLE: Final = "\x1b[0m"


class Failure(click.ClickException):
    """A command cannot continue. The text goes to standard error as one line; the exit code is 2."""

    exit_code = 2


@contextmanager
def needing_the_server(what: str) -> Iterator[None]:
    """Wrap imports of packages that only the server installs: the commands work without it, and help must too."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise Failure(
            f"{what} needs {missing.name}, which comes with lease-webhook[server], "
            "in a checkout with `pip install '.[server]'`; the one-file program has no server"
        ) from missing


def style(text: str, **how: Any) -> str:  # noqa: ANN401 - those of click
    """Return the text in a style of `click.style`, on a terminal only; NO_COLOR (no-color.org) switches it off."""
    return click.style(text, **how) if has_color() else text


def has_color() -> bool:
    """Return whether standard output is a terminal that wants colors."""
    return not (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb") and sys.stdout.isatty()


def measure_width() -> int:
    """Return the columns to use: those of the terminal, or of COLUMNS, from 60 to 100; 100 if there is none."""
    return max(60, min(100, shutil.get_terminal_size(fallback=(100, 24)).columns))


def indent(text: str, by: int, columns: int | None = None, hanging: int | None = None) -> str:
    """Return the text wrapped to `columns` and indented, `hanging` from the second line on; no long name is broken.

    Styles take no columns.
    """
    margin = " " * by
    wrapped = textwrap.fill(
        click.unstyle(text),
        columns or measure_width(),
        initial_indent=margin,
        subsequent_indent=margin if hanging is None else " " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return _style_again(wrapped, text) if _STYLE.search(text) else wrapped


def _style_again(wrapped: str, text: str) -> str:
    """Return wrapped text with the styles that `text` has: one begins with the next letter, and ends with the last."""
    rest, styled, opening = iter(wrapped), "", ""
    for part in _STYLE_OR_LETTER.findall(text):
        if part == _END_OF_STYLE:
            styled += part
        elif part.startswith("\x1b"):
            opening += part
        else:
            blanks = "".join(takewhile(str.isspace, rest))  # it also takes the letter, which is this one
            styled += blanks + opening + part
            opening = ""
    return styled + "".join(rest)


def wrap_on_terminal(text: str, hanging: int) -> str:
    """Return a line; on a terminal that is narrower it is broken between words, in a pipe it stays one line."""
    return indent(text, 0, shutil.get_terminal_size().columns, hanging) if sys.stdout.isatty() else text


def format_advice(lead: str, text: str, by: int, hanging: int) -> str:
    """Return what to do, indented, and wrapped unless it contains a command.

    Commands are there to be copied, and no name in one may begin a line as if it were another.
    """
    whole = f"{lead} {text}".lstrip()
    shown = whole if _COMMAND.search(whole) else indent(whole, hanging).lstrip()
    return " " * by + shown


def format_table(rows: Sequence[tuple[str, ...]], by: int = 2, columns: int | None = None) -> Iterator[str]:
    """Yield rows as aligned lines; the last column has any width, or is wrapped if `columns` limits the table."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)][:-1]
    start = by + sum(widths) + 2 * len(widths)
    for row in rows:
        cells = " " * by + "".join(f"{cell.ljust(n)}  " for cell, n in zip(row, widths, strict=False))
        last = indent(row[-1], start, columns).lstrip() if columns else row[-1]
        yield from f"{cells}{last}".rstrip().split("\n")


def encode_line(document: dict[str, Any] | Struct) -> str:
    """Return one line of ASCII: names of a client may hold line separators, and reach terminals too."""
    return json.dumps(msgspec.to_builtins(document), separators=(",", ":"))


def print_message(text: str) -> None:
    """Print any text as one line on standard error; a terminal breaks it between words, but no command."""
    line = escape(text)
    is_broken = sys.stderr.isatty() and not _CALL.search(line)
    # In one call, so that another thread's line cannot come between a line and its end.
    sys.stderr.write(f"{indent(line, 0, shutil.get_terminal_size().columns) if is_broken else line}\n")
