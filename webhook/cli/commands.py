"""The commands of `lease-webhook`, shell completion, and how one command is run.

A command is a module with a `command`, listed here with its summary and imported when it is used. The lists are in the
order of `--help`.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

import click
from click.shell_completion import get_completion_class, shell_complete

from webhook.cli.options import Command
from webhook.cli.terminal import Failure, print_message
from webhook.errors import InputError

COMPLETE: Final = "_LEASE_WEBHOOK_COMPLETE"
"""The environment variable through which the shell requests completions; click defines its values."""


class Lazy(click.Command):
    """A command that is not imported yet: its line in the list, its module, and its name in the module."""

    def __init__(self, module: str, summary: str, attribute: str = "command", *, hidden: bool = False) -> None:
        super().__init__(attribute, short_help=summary, hidden=hidden)
        self.load: Callable[[], click.Command] = lambda: getattr(import_module(f"webhook.cli.{module}"), attribute)


class LazyGroup(Command, click.Group):
    """A group that lists its commands in their order, and imports one when it runs or explains itself."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names."""
        return [*self.commands]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named first, imported."""
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.NoSuchCommand:
            if "check" in self.commands and os.path.exists(args[0]):  # noqa: PTH110 - never raises
                raise click.UsageError(f"a file is an argument of check: {ctx.command_path} check {args[0]}") from None
            raise
        return name, command.load() if isinstance(command, Lazy) else command, rest


_POLICY: Final = LazyGroup(
    "policy",
    {
        "check": Lazy("policy", "check policy files", "check"),
        "show": Lazy("policy", "show the modes and numbers that apply to a lease, and why", "show"),
        "schema": Lazy("policy", "print the JSON Schema of policy files, for editors", "schema"),
    },
    short_help="check or show policy files",
    help="A policy file says how strict the rules are, for whom, and who may write which lease.",
)

_SUGGEST: Final = LazyGroup(
    "suggest",
    {
        "bindings": Lazy("suggest", "print bindings: who may write which lease, from what was seen", "bindings"),
        "fence": Lazy("suggest", "print a fence for the resources of an operator", "fence"),
    },
    short_help="propose parts of a policy file",
    help="Reads what happened in a cluster and prints a proposal with the evidence. Nothing is applied.",
)

_EXPORT: Final = LazyGroup(
    "export",
    {
        "fence": Lazy("export", "print policies that let only the holder of a lease write", "fence"),
        "alerts": Lazy("alerts", "print Prometheus alerts on leases that no one renews", "alerts"),
    },
    short_help="print objects for the API server, and rules for Prometheus",
    help="Prints objects for the API server, or rules for Prometheus as an object or a file. Nothing is applied: read "
    "what it prints, then pipe objects to kubectl.",
)

_SECTIONS: Final[dict[str, dict[str, click.Command]]] = {
    "Run the webhook": {
        "serve": Lazy("serve", "answer the API server over TLS"),
        "certs": Lazy("certs", "make, renew or check certificates"),
        "install": Lazy("export", "print the objects to apply for an installation", "install"),
        "doctor": Lazy("doctor", "check whether webhook configurations are safe for leases"),
        "status": Lazy("status", "say whether the webhook is in force in a cluster"),
        "completion": Lazy("commands", "print the shell completion of this program", "completion"),
    },
    "Look at leases": {
        "why": Lazy("why", "show who leads, and why the leader changed"),
        "top": Lazy("top", "show leases as they are now, the worst first"),
        "audit": Lazy("audit", "find what is wrong with stored leases"),
        "timeline": Lazy("timeline", "draw who held which lease when"),
        "claims": Lazy("claims", "list what these may say of a lease, and when it is true"),
        "writers": Lazy("writers", "show who may write a lease, and by which binding"),
        "record": Lazy("record", "keep the history of every election"),
    },
    "Decide what is denied": {
        "rules": Lazy("rules", "list the rules, or explain one"),
        "suggest": _SUGGEST,
        "export": _EXPORT,
    },
    "Check before it is applied": {
        "check": Lazy("check", "evaluate manifests, logs and captured reviews by one policy or two"),
        "policy": _POLICY,
    },
}


class _Program(LazyGroup):
    """The whole program, which lists its commands in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write each section."""
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, command.short_help or "") for name, command in commands.items()])


PROGRAM: Final = _Program(
    "lease-webhook",
    {name: command for section in _SECTIONS.values() for name, command in section.items()},
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    help="Validates Kubernetes Leases and LeaseCandidates, as an admission webhook and in files and pipelines, "
    "and shows what happened to them.",
    epilog="""\
Exit codes:
  0  good          1  something is denied, or needs attention
  2  wrong usage, or something could not be read

lease-webhook COMMAND --help explains one command.
Color only on a terminal; NO_COLOR turns it off.
""",
)
click.version_option(package_name="lease-webhook", prog_name="lease-webhook", message="%(prog)s %(version)s")(PROGRAM)


def run(argv: Sequence[str], name: str) -> int:
    """Run one command and return its exit code; `argv` is without the program's name, which is `name`."""
    if sys.stdout is None:
        # The next file that is opened would get its number, and what is printed.
        return _complain(Failure("standard output is closed"), name)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # never fail to print a character
    try:
        if instruction := os.environ.get(COMPLETE):
            return shell_complete(PROGRAM, {}, name, COMPLETE, instruction)
        with PROGRAM.make_context(name, [*argv]) as context:
            code: int = PROGRAM.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as without_arguments:
        print(without_arguments.format_message(), file=sys.stderr)
        return without_arguments.exit_code
    except click.ClickException as problem:
        return _complain(problem, name)
    except InputError as problem:
        return _complain(Failure(str(problem)), name)
    finally:
        # If the output cannot be written, the exit code must not be that of a success.
        sys.stdout.flush()
    return code


def _complain(problem: click.ClickException, name: str) -> int:
    command = problem.ctx.command_path if isinstance(problem, click.UsageError) and problem.ctx else ""
    text = problem.format_message()
    if isinstance(problem, click.NoSuchOption | click.NoSuchCommand):
        near = [*(problem.possibilities or ())]
        text = f"{problem.message} Did you mean {near[0]}?" if near else problem.message
    hint = f" (see {command} --help)" if command else ""
    print_message(" ".join(f"{command or name}: {text}{hint}".split()))
    return problem.exit_code


@click.command(
    "completion",
    cls=Command,
    help="Prints a script that makes a shell complete commands, options, rules, presets and files.",
    epilog="""\
Examples:
  source <(lease-webhook completion bash)     # in ~/.bashrc; bash 4.4 or newer
  source <(lease-webhook completion zsh)      # in ~/.zshrc, after compinit
  lease-webhook completion fish > ~/.config/fish/completions/lease-webhook.fish
""",
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> int:
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    source = completion_class(PROGRAM, {}, "lease-webhook", COMPLETE)
    print(source.source_template % source.source_vars())
    return 0
