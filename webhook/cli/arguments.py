"""Arguments and options that several commands share, and the values that they take."""

import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from webhook.cli.failure import Failure

MOST_DAYS: Final = 36500
LARGEST_PORT: Final = 65535
PRESETS: Final = ("observe", "standard", "strict")

_LIFE: Final = re.compile(r"([0-9]{1,6})([dh])")

F = TypeVar("F", bound=Callable[..., Any])


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def directories(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the name of a directory."""
    return [CompletionItem(incomplete, type="dir")]


def policies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes a preset or the name of a file."""
    # Bash's function forgets what came before a file.
    presets = (CompletionItem(preset) for preset in PRESETS if preset.startswith(incomplete))
    return [*files(ctx, param, incomplete), *presets]


def policy_option(text: str, name: str = "--policy", metavar: str = "NAME|FILE") -> Callable[[F], F]:
    """An option that takes a preset or a policy file."""
    return click.option(name, metavar=metavar, help=text, shell_complete=policies)


def format_option(text: str = "json prints one line", formats: tuple[str, ...] = ("text", "json")) -> Callable[[F], F]:
    """The option that has a program read what a command prints; its value is `output`."""
    return click.option("--format", "output", type=click.Choice(formats), default="text", help=text)


def count(given: str | int) -> int:
    """A whole number above 0; click converts a default too."""
    if not re.fullmatch(r"[0-9]{1,9}", str(given)) or int(given) < 1:
        raise click.BadParameter(f"{given!r} is not a whole number above 0")
    return int(given)


def days(text: str) -> float:
    """A life in days."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= MOST_DAYS:
        raise click.BadParameter(f"{text!r} is not a number of days above 0 and at most {MOST_DAYS}")
    return number


def life(text: str) -> float:
    """A time such as 14d or 36h, in days."""
    found = _LIFE.fullmatch(text)
    if not found:
        raise click.BadParameter(f"{text!r} is not a time such as 14d or 36h")
    return int(found[1]) / (1 if found[2] == "d" else 24)


def namespaced(text: str, problem: str) -> tuple[str, str]:
    """(namespace, name) of NAMESPACE/NAME; anything else raises Failure with the problem."""
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failure(problem)
    return namespace, name


def server(text: str) -> tuple[str, int]:
    """HOST:PORT of something that listens; an IPv6 address stands in brackets."""
    host, port = endpoint(text)
    if port == 0:
        raise click.BadParameter(f"{text!r} is not HOST:PORT: nothing listens on port 0")
    return host, port


def address(text: str) -> str:
    """HOST:PORT to listen on, as it was typed."""
    endpoint(text)
    return text


def endpoint(text: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT; port 0 is any."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > LARGEST_PORT:
        raise click.BadParameter(f"{text!r} is not HOST:PORT, such as 0.0.0.0:8443 or [::]:8443")
    return host.strip("[]"), int(port)
