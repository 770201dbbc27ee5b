"""Arguments and options that several commands share, the values they take, and the form of every command's help."""

import math
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec import Struct
from msgspec.structs import replace

from webhook.api.times import canonical_seconds
from webhook.cli.terminal import Failure

if TYPE_CHECKING:
    from webhook.inputs.cluster import Cluster

MAX_DAYS: Final = 36500
MAX_PORT: Final = 65535
PRESETS: Final = ("observe", "standard", "strict")
STANDARD_INPUT: Final = "-"

HIDDEN_STAMPS: Final = (
    "the input has no managedFields, so only the holders' own clocks say when they renewed; "
    "kubectl shows them with --show-managed-fields"
)
_LIFE: Final = re.compile(r"([0-9]{1,6})([dh])")
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose epilog (exit codes, examples) keeps its lines, with the name by which the program was called."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog."""
        if self.epilog:
            formatter.write(f"\n{self.epilog.strip()}\n".replace("lease-webhook ", f"{ctx.find_root().info_name} "))


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def directories(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a directory."""
    return [CompletionItem(incomplete, type="dir")]


def policies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a preset or the name of a file."""
    # Bash's function forgets what came before a file.
    presets = (CompletionItem(preset) for preset in PRESETS if preset.startswith(incomplete))
    return [*files(ctx, param, incomplete), *presets]


def policy_option(text: str, name: str = "--policy", metavar: str = "NAME|FILE") -> Callable[[F], F]:
    """Return an option that takes a preset or a policy file."""
    return click.option(name, metavar=metavar, help=text, shell_complete=policies)


def format_option(text: str = "json prints one line", formats: tuple[str, ...] = ("text", "json")) -> Callable[[F], F]:
    """Return the option for output that a program reads; its value is `output`."""
    return click.option("--format", "output", type=click.Choice(formats), default="text", help=text)


def cluster_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of kubectl that say which cluster; the command gets them as one `Cluster`."""

    @click.option("--context", metavar="NAME", default="", help="run kubectl with this context")
    @click.option("--kubeconfig", metavar="FILE", default="", help="for kubectl", shell_complete=files)
    @click.option("-n", "--namespace", metavar="NAME", default="", help="run kubectl for this namespace")
    @click.option("-A", "--all-namespaces", is_flag=True, help="run kubectl for all namespaces")
    @wraps(function)
    def with_cluster(context: str, kubeconfig: str, namespace: str, all_namespaces: bool, **given: Any) -> int:  # noqa: ANN401, FBT001 - what click passes
        from webhook.inputs.cluster import Cluster  # noqa: PLC0415 - commands without a cluster need none of it

        return function(cluster=Cluster(context, kubeconfig, namespace, all_namespaces), **given)

    return with_cluster


def everywhere(cluster: "Cluster") -> "Cluster":
    """Return the cluster with all of its namespaces unless one is named."""
    return replace(cluster, all_namespaces=cluster.all_namespaces or not cluster.namespace)


def count(given: str | int) -> int:
    """Return a whole number above 0; click converts a default too."""
    if not re.fullmatch(r"[0-9]{1,9}", str(given)) or int(given) < 1:
        raise click.BadParameter(f"{given!r} is not a whole number above 0")
    return int(given)


def days(text: str) -> float:
    """Return a number of days."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= MAX_DAYS:
        raise click.BadParameter(f"{text!r} is not a number of days above 0 and at most {MAX_DAYS}")
    return number


def life(text: str) -> float:
    """Return a time such as 14d or 36h, in days."""
    found = _LIFE.fullmatch(text)
    if not found:
        raise click.BadParameter(f"{text!r} is not a time such as 14d or 36h")
    return int(found[1]) / (1 if found[2] == "d" else 24)


def namespaced(text: str, problem: str) -> tuple[str, str]:
    """Return (namespace, name) of NAMESPACE/NAME; anything else raises Failure with the problem."""
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failure(problem)
    return namespace, name


def server(text: str) -> tuple[str, int]:
    """Return HOST:PORT of a running server as a pair; an IPv6 address is written in brackets."""
    host, port = endpoint(text)
    if port == 0:
        raise click.BadParameter(f"{text!r} is not HOST:PORT: nothing listens on port 0")
    return host, port


def address(text: str) -> str:
    """Return HOST:PORT to listen on, as it was typed."""
    endpoint(text)
    return text


def endpoint(text: str) -> tuple[str, int]:
    """Return the host and the port of HOST:PORT; port 0 is any."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > MAX_PORT:
        raise click.BadParameter(f"{text!r} is not HOST:PORT, such as 0.0.0.0:8443 or [::]:8443")
    return host.strip("[]"), int(port)


def moment(text: str) -> int:
    """Return an RFC 3339 time in microseconds since 1970; raises Failure for other text."""
    try:
        parsed = datetime.fromisoformat(text.upper()) if _RFC3339.fullmatch(text) else None
    except ValueError:
        parsed = None
    if parsed is None:
        raise Failure(f'"{text}" is not an RFC 3339 time; write 2026-01-31T23:59:59Z')
    return (parsed - _EPOCH) // timedelta(microseconds=1)


class EvaluationTime(Struct, frozen=True):
    """The time at which the input is evaluated, in microseconds since 1970, and where it comes from."""

    at: int
    origin: str

    @property
    def text(self) -> str:
        """`as of 2026-11-22T12:00:00Z (...)`."""
        return f"as of {canonical_seconds(self.at)} ({self.origin})"


def evaluation_time(given: str | None, paths: Sequence[str], until: int | None) -> EvaluationTime:
    """Return the time at which the input is evaluated.

    Args:
        given: the value of --now; raises Failure for what is not a time.
        paths: what is read, nothing if kubectl is run.
        until: the end of a history; None for objects of one moment, which do not say when that was.

    """
    if given:
        now = moment(given)
        if until is None or now >= until:
            return EvaluationTime(now, "--now")
        end = canonical_seconds(until)
        origin = f"--now, before the end of the input at {end}: what happened after --now is included"
        return EvaluationTime(now, origin)
    clock = time.time_ns() // 1000
    if STANDARD_INPUT in paths or not paths:
        return EvaluationTime(clock, "the clock of this computer")
    if until is not None:
        return EvaluationTime(min(until, clock), "the latest record in the input; --now sets another moment")
    written = max((at for path in paths if (at := _written(Path(path))) is not None), default=clock)
    return EvaluationTime(min(written, clock), "when the file was written; --now sets another moment")


def _written(path: Path) -> int | None:
    """Return when a file, or the latest file of a directory, was written; None if that is not known."""
    try:
        written = [one for one in path.iterdir() if one.is_file()] if path.is_dir() else [path]
        return max((one.stat().st_mtime_ns // 1000 for one in written), default=None)
    except OSError:
        return None
