"""The console script `lease-webhook`: finds the command, runs it, and never shows a traceback."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

from webhook import __version__
from webhook.api.text import escape
from webhook.cli import certs, check, doctor, policy, replay, rules, serve
from webhook.cli.failure import Failure

COMMANDS: Final = (serve, check, replay, rules, policy, certs, doctor)
"""Each module has `add_parser(subparsers)`, which names its `run(args) -> int`. The order is that of `--help`."""

BROKEN_PIPE: Final = 141
INTERRUPTED: Final = 130
"""What a shell reports for a program that SIGPIPE or SIGINT ended."""

_EPILOG: Final = """\
exit codes:
  0  good          1  something is denied, or should be looked at
  2  wrong usage, or something could not be read

`lease-webhook COMMAND --help` explains one command. Colour only on a terminal; NO_COLOR turns it off.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `argv` is without the program's name."""
    _never_fail_to_print()
    args = parser().parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except Failure as failure:
        return _complain(str(failure))
    except BrokenPipeError:
        # The reader (`head`, a pager) has gone. Python would complain again while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as bug:
        if sys.flags.dev_mode:
            raise
        return _complain(f"this is a bug: {type(bug).__name__}: {bug} (`python -X dev -m webhook` shows where)")
    return code


def parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    whole = argparse.ArgumentParser(
        prog="lease-webhook",
        description="Keeps Kubernetes Leases and LeaseCandidates safe: an admission webhook, and the same rules "
        "for files and pipelines.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"lease-webhook {__version__}")
    subparsers = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return whole


def _never_fail_to_print() -> None:
    """A terminal that cannot show a character gets its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(text: str) -> int:
    print(f"lease-webhook: {escape(' '.join(text.split()))}", file=sys.stderr)
    return 2
