"""What `suggest bindings`, `suggest rbac` and `suggest exemptions` read: every observation of their inputs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import click

from webhook.api.text import escape
from webhook.cli.arguments import files
from webhook.cli.failure import Failure
from webhook.cli.observed import observe_all
from webhook.cli.progress import Progress
from webhook.cli.report import say
from webhook.observations.observation import Item, Observation, Unreadable
from webhook.policy.parse import parse

F = TypeVar("F", bound=Callable[..., Any])

UNREADABLE: Final = 2
MOST_COMPLAINTS: Final = 5

paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=files)


class Input:
    """The items of some paths; `exit_code` is 2 if something could not be read."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._unreadable = 0
        self._observations = 0

    def items(self) -> Iterator[Item]:
        """Every item, each as soon as it is read; what cannot be read is reported on standard error."""
        progress = Progress("requests and objects")
        for item in progress.watch(observe_all(self._paths)):
            if isinstance(item, Unreadable):
                self._unreadable += 1
                if self._unreadable <= MOST_COMPLAINTS:
                    progress.clear()
                    say(escape(f"{item.source}: {item.error}"))
            self._observations += isinstance(item, Observation)
            yield item
        if self._unreadable > MOST_COMPLAINTS:
            say(f"{self._unreadable - MOST_COMPLAINTS} more could not be read")
        if not self._observations:
            raise Failure("no lease and no candidate is in the input")

    @property
    def exit_code(self) -> int:
        """2 if something could not be read, else 0."""
        return UNREADABLE if self._unreadable else 0


def as_lease(text: str | None) -> tuple[str, str] | None:
    """A lease as (namespace, name), as it was given; raises Failure."""
    if text is None:
        return None
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failure("--lease must be namespace/name")
    return namespace, name


def checked(text: str, nothing: str) -> str:
    """A policy that is about to be printed, or `nothing` as Failure; one that a policy check would refuse is a bug."""
    if not text:
        raise Failure(nothing)
    parse(text)
    return text


def as_account(text: str | None) -> str:
    """A service account as namespace/name, as it was given; raises Failure."""
    if text is None:
        return ""
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failure("--writer must be a service account as namespace/name")
    return text
