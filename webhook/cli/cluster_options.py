"""Where `why`, `audit` and `timeline` get their input: files, or a cluster that the user's own kubectl reads."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from msgspec import Struct

from webhook.api.micro_time import canonical_seconds
from webhook.cli.arguments import files
from webhook.cli.moment import moment
from webhook.cli.sources import STANDARD_INPUT

F = TypeVar("F", bound=Callable[..., Any])

HIDDEN_STAMPS: Final = (
    "the input has no managedFields, so only the holders' own clocks say when they renewed; "
    "kubectl shows them with --show-managed-fields"
)
_OPTIONS: Final = (
    click.option("-A", "--all-namespaces", is_flag=True, help="run kubectl for all namespaces"),
    click.option("-n", "--namespace", metavar="NAME", default="", help="run kubectl for this namespace"),
    click.option("--kubeconfig", metavar="FILE", default="", help="for kubectl", shell_complete=files),
    click.option("--context", metavar="NAME", default="", help="run kubectl with this context"),
)


def cluster_options(function: F) -> F:
    """The options of kubectl that say which cluster; their values are those of `Cluster`."""
    for option in _OPTIONS:
        function = option(function)
    return function


class Moment(Struct, frozen=True):
    """The moment as of which things are said, in microseconds since 1970, and where it comes from."""

    at: int
    origin: str

    @property
    def text(self) -> str:
        """`as of 2026-11-22T12:00:00Z (...)`."""
        return f"as of {canonical_seconds(self.at)} ({self.origin})"


def moment_of_input(given: str | None, paths: Sequence[str], until: int | None) -> Moment:
    """As of when an input is looked at.

    Args:
        given: the value of --now; raises Failure for what is not a time.
        paths: what is read, nothing if kubectl is run.
        until: where a history ends; None for objects of one moment, which do not say when that was.

    """
    if given:
        now = moment(given)
        if until is None or now >= until:
            return Moment(now, "--now")
        end = canonical_seconds(until)
        return Moment(now, f"--now, before the end of the input at {end}: what happened after --now is included")
    clock = time.time_ns() // 1000
    if STANDARD_INPUT in paths or not paths:
        return Moment(clock, "the clock of this computer")
    if until is not None:
        return Moment(min(until, clock), "the latest record in the input; --now sets another moment")
    written = max((at for path in paths if (at := _written(Path(path))) is not None), default=clock)
    return Moment(min(written, clock), "when the file was written; --now sets another moment")


def _written(path: Path) -> int | None:
    """When a file, or the latest file of a directory, was written."""
    try:
        times = [one.stat().st_mtime_ns // 1000 for one in path.iterdir() if one.is_file()] if path.is_dir() else []
        return max(times, default=None) if path.is_dir() else path.stat().st_mtime_ns // 1000
    except OSError:
        return None
