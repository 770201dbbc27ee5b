"""The parts that `rules` and `claims` share: each lists its entries by id, or explains the one that is named."""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import click

from webhook.admission.rules.registry import ALL_RULES
from webhook.analysis.claims.registry import KINDS
from webhook.cli.options import format_option
from webhook.cli.terminal import Failure, encode_line, indent, style

_Entry = TypeVar("_Entry")
_Function = TypeVar("_Function", bound=Callable[..., Any])

_NAMES: Final[Mapping[str, Collection[str]]] = {"rule": ALL_RULES, "claim": KINDS}
_MARGIN: Final = 2


def entry_options(word: str, entries: Callable[[], Iterable[str]]) -> Callable[[_Function], _Function]:
    """Return a decorator that adds the id of an entry, which a shell completes, and `--format`.

    `word` is what an entry is called, such as `rule`.
    """

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in entries() if name.startswith(incomplete)]

    def decorate(function: _Function) -> _Function:
        with_format = format_option(f"json prints one line per {word}")(function)
        return click.argument("name", required=False, metavar="[ID]", shell_complete=complete)(with_format)

    return decorate


def find_entry(entries: Mapping[str, _Entry], name: str, word: str) -> _Entry:
    """Return the entry of a name. Raises Failure, with where it is or the nearest one, if there is none."""
    if name in entries:
        return entries[name]
    for other, names in _NAMES.items():
        if name in names:
            raise Failure(f'"{name}" is a {other}: lease-webhook {other}s {name}')
    near = difflib.get_close_matches(name, entries, n=1)
    hint = f"did you mean {near[0]}?" if near else f"`lease-webhook {word}s` lists them"
    raise Failure(f'there is no {word} "{name}"; {hint}')


def print_json(entries: Iterable[_Entry], as_json: Callable[[_Entry], dict[str, Any]]) -> None:
    """Print a line for each entry."""
    print("\n".join(encode_line(as_json(entry)) for entry in entries))


def format_section(title: str, text: str, *, is_command: bool = False) -> Iterator[str]:
    """Yield the lines of a part of an explanation, an empty one first; a command is one line, for a shell."""
    shown = " " * 2 * _MARGIN + text if is_command else indent(text, 2 * _MARGIN)
    yield from ("", indent(style(title, bold=True), _MARGIN), shown)
