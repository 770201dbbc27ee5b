"""The commands of `lease-webhook`, and how one of them is run."""

import argparse
import io
import sys
from collections.abc import Sequence
from typing import Final

from webhook import __version__
from webhook.api.text import escape
from webhook.cli import certs, check, doctor, export, policy, replay, rules, serve, suggest
from webhook.cli.failure import Failure
from webhook.cli.help_text import Parser

COMMANDS: Final = (serve, check, replay, rules, policy, suggest, export, certs, doctor)
"""Each module has `add_parser(subparsers)`, which names its `run(args) -> int`. The order is that of `--help`."""

_EPILOG: Final = """\
exit codes:
  0  good          1  something is denied, or should be looked at
  2  wrong usage, or something could not be read

`lease-webhook COMMAND --help` explains one command. Color only on a terminal; NO_COLOR turns it off.
"""


def run(argv: Sequence[str] | None) -> int:
    """Run one command and return its exit code; `argv` is without the program's name."""
    _never_fail_to_print()
    try:
        args = parser().parse_args(argv)
        code: int = args.run(args)
    except Failure as failure:
        return complain(str(failure))
    finally:
        # What was printed must arrive, or the exit code would say too much.
        sys.stdout.flush()
    return code


def parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    whole = Parser(
        prog="lease-webhook",
        description="Keeps Kubernetes Leases and LeaseCandidates safe: an admission webhook, and the same rules "
        "for files and pipelines.",
        epilog=_EPILOG,
    )
    whole.add_argument("--version", action="version", version=f"lease-webhook {__version__}")
    subparsers = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return whole


def complain(text: str) -> int:
    """Say on standard error why a command cannot go on; gives the exit code."""
    print(f"lease-webhook: {escape(' '.join(text.split()))}", file=sys.stderr)
    return 2


def _never_fail_to_print() -> None:
    """A terminal that cannot show a character gets its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
