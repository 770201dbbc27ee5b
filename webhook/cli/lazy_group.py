"""Commands that are imported when they are used, and help that prints examples as they are laid out."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

SETTINGS: Final[dict[str, Any]] = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
"""For the outermost group: help is as wide as the terminal, and at most 100 columns."""


class Lazy(NamedTuple):
    """A command that is not imported yet: its module, which names it `command`, and its line in the list."""

    module: str
    summary: str


class Command(click.Command):
    """A command whose epilog (exit codes, examples) keeps its lines."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog, with the name under which the program was called."""
        _write_epilog(self.epilog, ctx, formatter)


class LazyGroup(click.Group):
    """A group that knows its commands by name and summary, and imports one when it runs or explains itself."""

    def __init__(self, name: str, listing: "Mapping[str, Lazy | LazyGroup]", summary: str, **settings: Any) -> None:  # noqa: ANN401 - those of click
        super().__init__(name, short_help=summary, **settings)
        self.listing = dict(listing)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the listing."""
        return [*self.listing, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported if need be; None if there is none."""
        found = self.listing.get(cmd_name)
        if not isinstance(found, Lazy):
            return found or super().get_command(ctx, cmd_name)
        command = import_module(found.module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named first; one that is mistyped brings the names that are near it."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(ctx, name)) for name in self.list_commands(ctx)])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog, with the name under which the program was called."""
        _write_epilog(self.epilog, ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands and options that begin so, without importing a command."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self._summary(ctx, name)) for name in names), *options]

    def _summary(self, ctx: click.Context, name: str) -> str:
        found = self.listing.get(name) or super().get_command(ctx, name)
        return found.summary if isinstance(found, Lazy) else (found and found.short_help) or ""


def _write_epilog(epilog: str | None, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    if epilog:
        program = ctx.find_root().info_name
        formatter.write(f"\n{epilog.strip()}\n".replace("lease-webhook ", f"{program} "))
