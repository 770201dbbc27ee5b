"""How a command gives up: one line that says what is wrong and what to do."""


class Failure(Exception):  # noqa: N818 - it ends a command, and the person who typed it reads the text
    """A command cannot go on. `main` prints the text to stderr as one line and exits with 2."""
