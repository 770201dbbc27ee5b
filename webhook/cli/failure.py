"""How a command fails: with one line that says what is wrong and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import click


class Failure(click.ClickException):
    """A command cannot go on. The text goes to standard error as one line; the exit code is 2."""

    exit_code = 2


@contextmanager
def needing_the_server(what: str) -> Iterator[None]:
    """Around imports of packages that only the server installs: the commands work without it, and help must too."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise Failure(f"{what} needs {missing.name}, which the server brings: lease-webhook[server]") from missing
