"""What `suggest bindings`, `suggest rbac` and `suggest exemptions` read: every observation of their inputs."""

from collections.abc import Callable, Sequence
from typing import Final

import click

from webhook.cli.arguments import files, namespaced
from webhook.cli.failure import Failure
from webhook.cli.input_progress import InputProgress
from webhook.cli.observed import observe_all
from webhook.observations.observation import Item, Observation
from webhook.policy.parse import parse

UNREADABLE: Final = 2

paths_argument = click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=files)


def observe_each(paths: Sequence[str], observe: Callable[[Item], None]) -> int:
    """Observe every item of some paths, each as soon as it is read; what cannot be read is reported on standard error.

    Returns the exit code, 2 if something could not be read, else 0; raises Failure if no lease is in the input.
    """
    progress = InputProgress("requests and objects")
    observations = 0
    for item in progress.watch(observe_all(paths)):
        observations += isinstance(item, Observation)
        observe(item)
    if not observations:
        raise Failure("no lease and no candidate is in the input")
    return UNREADABLE if progress.unreadable else 0


def as_lease(text: str | None) -> tuple[str, str] | None:
    """A lease as (namespace, name), as it was given; raises Failure."""
    return None if text is None else namespaced(text, "--lease must be namespace/name")


def checked(text: str, nothing: str) -> str:
    """A policy that is about to be printed, or `nothing` as Failure; one that a policy check would refuse is a bug."""
    if not text:
        raise Failure(nothing)
    parse(text)
    return text


def as_account(text: str | None) -> str:
    """A service account as namespace/name, as it was given; raises Failure."""
    return "" if text is None else "/".join(namespaced(text, "--writer must be a service account as namespace/name"))
