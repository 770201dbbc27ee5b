"""`lease-webhook claims [ID]`: every kind of claim, or one explained."""

from collections.abc import Iterator

import click

from webhook.analysis.claims.claim import make_kind_json
from webhook.analysis.claims.registry import CAUSES, KINDS, SUBJECTS
from webhook.cli.options import Command
from webhook.cli.reference import entry_options, find_entry, format_section, print_json
from webhook.cli.terminal import format_table, indent, measure_width, style
from webhook.findings import Kind


@click.command(
    "claims",
    cls=Command,
    help="Lists the claims that `why` and `audit` make of a lease: when each is true, and from which evidence.",
    epilog="Example:\n  lease-webhook claims lease-stolen",
)
@entry_options("claim", lambda: KINDS)
def command(name: str | None, output: str) -> int:
    chosen = None if name is None else find_entry(KINDS, name, "claim")
    if output == "json":
        print_json([chosen] if chosen else KINDS.values(), make_kind_json)
    else:
        print("\n".join(_explain(chosen) if chosen else _list_all()))
    return 0


def _list_all() -> Iterator[str]:
    for number, (subject, kinds) in enumerate(SUBJECTS.items()):
        yield from ("",) if number else ()
        yield style(subject, bold=True)
        yield from format_table([(kind.id, kind.means) for kind in kinds], columns=measure_width())


def _explain(kind: Kind) -> Iterator[str]:
    yield style(kind.id, bold=True)
    parts = [("True if", kind.means), ("Evidence", kind.evidence), ("Arguments", ", ".join(kind.arguments) or "none")]
    for title, text in parts:
        yield from format_section(title, text)
    if {"cause", "causes"} & set(kind.arguments):
        yield from ("", indent(style("Causes", bold=True), 2))
        yield from format_table([*CAUSES.items()], by=4, columns=measure_width())
