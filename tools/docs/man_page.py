"""The manual page `lease-webhook(1)`, made from the commands as click knows them."""

import re
import tomllib
from collections.abc import Iterator

import click

from tools.docs.pages import ROOT
from webhook.cli.commands import PROGRAM


def make_man_page() -> str:
    """Return the page in roff, for man(7) macros."""
    top = click.Context(PROGRAM, info_name=PROGRAM.name, help_option_names=["-h", "--help"])
    lines = [
        '.\\" Written by `make docs` from the commands. Do not edit.',
        f'.TH LEASE-WEBHOOK 1 {_find_release_date()} "lease-webhook {_read_version()}" "User Commands"',
        ".SH NAME",
        f"lease\\-webhook \\- {_escape(_read_description())}",
        ".SH SYNOPSIS",
        *_format_synopsis(top),
        ".SH DESCRIPTION",
        *_format_paragraphs(PROGRAM.help),
        ".PP",
        "The same program is also a plugin of kubectl:",
        '.BR "kubectl lease" .',
        ".SH OPTIONS",
        *_format_options(top),
        ".SH COMMANDS",
        *_list_commands(top),
        ".SH NOTES",
        *_keep_lines(PROGRAM.epilog),
    ]
    return "\n".join(lines) + "\n"


def _list_commands(above: click.Context) -> Iterator[str]:
    """Yield each command below, with those of its groups after it."""
    assert isinstance(above.command, click.Group)
    for name in above.command.list_commands(above):
        _, command, _ = above.command.resolve_command(above, [name])
        assert command is not None
        here = click.Context(command, info_name=name, parent=above)
        if isinstance(command, click.Group):
            yield from _list_commands(here)
            continue
        yield f".SS {_escape(here.command_path)}"
        yield from _format_synopsis(here)
        yield ".PP"
        yield from _format_paragraphs(command.help)
        yield from _format_options(here)
        yield from _keep_lines(command.epilog)


def _format_synopsis(context: click.Context) -> list[str]:
    usage = " ".join(context.command.collect_usage_pieces(context))
    return [f".B {_escape(context.command_path)}", _escape(usage)]


def _format_paragraphs(text: str | None) -> Iterator[str]:
    """Yield a help text; click wraps its paragraphs, and keeps the lines of those that begin with a backspace."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", (text or "").strip())):
        if number:
            yield ".PP"
        kept = paragraph.removeprefix("\b\n")
        if kept is paragraph:
            yield _escape(" ".join(paragraph.split()))
        else:
            yield from _keep_lines(kept)


def _format_options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record and record[1] and (context.parent is None or parameter.name != "help"):
            yield ".TP"
            yield f".B {_escape(record[0])}"
            yield _escape(" ".join(record[1].split()))


def _keep_lines(text: str | None) -> Iterator[str]:
    if text:
        yield ".PP"
        yield ".nf"
        yield from (_escape(line) for line in text.strip("\n").splitlines())
        yield ".fi"


def _escape(line: str) -> str:
    """Return a line that roff prints unchanged: hyphens that can be copied, nothing read as an escape or a request."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def _read_project() -> dict[str, str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, str] = tomllib.load(file)["project"]
    return project


def _read_version() -> str:
    return _read_project()["version"]


def _read_description() -> str:
    return _read_project()["description"]


def _find_release_date() -> str:
    """Return the day of this version in the changelog."""
    found = re.search(
        rf"^## \[{re.escape(_read_version())}\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert found, "CHANGELOG.md has no section for this version"
    return found[1]
