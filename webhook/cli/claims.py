"""`lease-webhook claims [ID]`: every kind of claim, or one explained."""

import difflib
from collections.abc import Iterator

import click

from webhook.analysis.claims.claim import Kind, kind_as_json
from webhook.analysis.claims.registry import CAUSES, KINDS, SUBJECTS
from webhook.cli.options import Command, format_option
from webhook.cli.terminal import Failure, indent, json_line, style, table, width


def _ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in KINDS if name.startswith(incomplete)]


@click.command(
    "claims",
    cls=Command,
    help="Lists the claims that `why` and `audit` make of a lease: when each is true, and from which evidence.",
    epilog="Example:\n  lease-webhook claims lease-stolen",
)
@click.argument("name", required=False, metavar="[ID]", shell_complete=_ids)
@format_option("json prints one line per claim")
def command(name: str | None, output: str) -> int:
    chosen = None if name is None else _find(name)
    if output == "json":
        print("\n".join(json_line(kind_as_json(kind)) for kind in ([chosen] if chosen else KINDS.values())))
        return 0
    print("\n".join(_explained(chosen) if chosen else _listed()))
    return 0


def _find(name: str) -> Kind:
    if name in KINDS:
        return KINDS[name]
    near = difflib.get_close_matches(name, KINDS, n=1)
    hint = f"did you mean {near[0]}?" if near else "`lease-webhook claims` lists them"
    raise Failure(f'there is no claim "{name}"; {hint}')


def _listed() -> Iterator[str]:
    for number, (subject, kinds) in enumerate(SUBJECTS.items()):
        yield from ("",) if number else ()
        yield style(subject, bold=True)
        yield from table([(kind.id, kind.means) for kind in kinds], columns=width())


def _explained(kind: Kind) -> Iterator[str]:
    yield style(kind.id, bold=True)
    parts = [("True if", kind.means), ("Evidence", kind.evidence), ("Arguments", ", ".join(kind.arguments) or "none")]
    for title, text in parts:
        yield from ("", indent(style(title, bold=True), 2), indent(text, 4))
    if {"cause", "causes"} & set(kind.arguments):
        yield from ("", indent(style("Causes", bold=True), 2))
        yield from table([*CAUSES.items()], by=4, columns=width())
