"""Arguments and options that several commands share, the values they take, and the form of every command's help."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from webhook.cli.terminal import Failure
from webhook.kubernetes.times import parse_seconds

PRESETS: Final = ("observe", "standard", "strict")

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose epilog (exit codes, examples) keeps its lines, with the name by which the program was called."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog."""
        if self.epilog:
            # `-n lease-webhook` is a namespace.
            text = re.sub("(?<!-n )lease-webhook ", f"{ctx.find_root().info_name} ", self.epilog.strip())
            formatter.write(f"\n{text}\n")


def complete_files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def complete_directories(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


FORMATS_OF_OTHERS: Final = ("text", "json", "yaml", "wide", "name")
"""What `-o` may be in commands where it is the format, as kubectl has it: no name of a file in one where it is not."""


def complete_policies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    # Bash's function forgets what came before a file.
    presets = (CompletionItem(preset) for preset in PRESETS if preset.startswith(incomplete))
    return [*complete_files(ctx, param, incomplete), *presets]


def policy_option(text: str, name: str = "--policy", metavar: str = "NAME|FILE") -> Callable[[F], F]:
    return click.option(name, metavar=metavar, help=text, shell_complete=complete_policies)


def format_option(text: str = "json prints one line", formats: Sequence[str] = ("text", "json")) -> Callable[[F], F]:
    """Return the option for output that a program reads, by kubectl's names too; its value is `output`."""
    names = ("-o", "--format", "--output")
    return click.option(*names, "output", type=click.Choice(formats), default="text", help=text)


def parse_lease_name(text: str, problem: str) -> tuple[str, str]:
    """Return (namespace, name) of NAMESPACE/NAME; anything else raises Failure with the problem."""
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failure(problem)
    return namespace, name


def parse_lease(text: str, namespace: str) -> tuple[str, str]:
    """Return (namespace, name) of NAMESPACE/NAME, or of a name in the `namespace` of an option, "" without one."""
    before, slash, after = text.partition("/")
    found = (before, after) if slash else (namespace, before)
    if not found[1] or (slash and not before) or "/" in found[1]:
        raise Failure(f"{text} must be NAMESPACE/NAME")
    if any(one.startswith("-") for one in found):
        raise Failure(f"{text} is not the name of a lease")
    if slash:
        refuse_two_namespaces(text, namespace)
    return found


def refuse_two_namespaces(lease: str, namespace: str) -> None:
    """Raise Failure if --namespace is not that of NAMESPACE/NAME; "" if it is not given."""
    if namespace not in {"", lease.partition("/")[0]}:
        raise Failure(f"{lease} and --namespace {namespace} name two namespaces")


def parse_address(text: str) -> str:
    """Return HOST:PORT to listen on, as it was typed."""
    parse_endpoint(text)
    return text


def parse_endpoint(text: str) -> tuple[str, int]:
    """Return the host and the port of HOST:PORT; an IPv6 address is written in brackets, and port 0 is any."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not HOST:PORT, such as 0.0.0.0:8443 or [::]:8443")
    return host.strip("[]"), int(port)


def parse_moment(text: str) -> int:
    """Return an RFC 3339 time in microseconds since 1970; raises Failure for other text."""
    try:
        return parse_seconds(text.upper())
    except ValueError:
        raise Failure(f'"{text}" is not an RFC 3339 time; write 2026-01-31T23:59:59Z') from None
