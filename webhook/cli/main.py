"""The console script `lease-webhook`: runs a command and never shows a traceback."""

import os
import sys
from collections.abc import Sequence
from typing import Final

BROKEN_PIPE: Final = 141
INTERRUPTED: Final = 130
"""What a shell reports for a program that SIGPIPE or SIGINT ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `argv` is without the program's name."""
    try:
        # Imports take most of the time of a short command, and Ctrl-C may come meanwhile.
        from webhook.cli import commands  # noqa: PLC0415

        return commands.run(argv)
    except BrokenPipeError:
        _abandon_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        _abandon_output()
        return _complain(f"{error.filename or 'the output'}: {error.strerror or error}")
    except Exception as bug:
        if sys.flags.dev_mode:
            raise
        return _complain(f"this is a bug: {type(bug).__name__}: {bug} (`python -X dev -m webhook` shows where)")


def _abandon_output() -> None:
    """The reader (`head`, a pager) has gone, or the disk is full: Python would complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> int:
    from webhook.api.text import escape  # noqa: PLC0415 - without the commands: one of them may be what fails

    print(f"lease-webhook: {escape(' '.join(text.split()))}", file=sys.stderr)
    return 2
