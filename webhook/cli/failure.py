"""How a command gives up: one line that says what is wrong and what to do."""

import click


class Failure(click.ClickException):
    """A command cannot go on. The text goes to standard error as one line; the exit code is 2."""

    exit_code = 2
