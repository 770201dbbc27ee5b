"""How `--help` is laid out: prose fills the terminal, examples keep their lines, options are typed in full."""

import argparse
import textwrap
from typing import Any

from webhook.cli.terminal import width


class Parser(argparse.ArgumentParser):
    """A parser, and so the parser of each command in it, that takes no option cut short: a new one may begin alike."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - those of argparse
        super().__init__(**{"allow_abbrev": False, "formatter_class": _Formatter, **settings})


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002 - argparse's own signature
        return "\n\n".join(_paragraph(one, width) for one in text.strip("\n").split("\n\n"))


def _paragraph(text: str, columns: int) -> str:
    """Prose wrapped; an example, and what has an indented line, is laid out already."""
    if text.startswith("example: ") or any(line.startswith(" ") for line in text.splitlines()):
        return text
    return textwrap.fill(text, columns, break_long_words=False, break_on_hyphens=False)
