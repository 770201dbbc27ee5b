"""The console scripts `lease-webhook` and `kubectl-lease`: run a command and never show a traceback.

Only `sys` and `os` are imported here, so that little happens before Ctrl-C is handled.
"""

import os
import sys

PROGRAM = "lease-webhook"
BROKEN_PIPE = 141
INTERRUPTED = 130
"""Exit codes that a shell reports for a program that SIGPIPE or SIGINT ended."""


def script() -> None:
    try:
        import signal  # noqa: PLC0415 - see the module's docstring

        # Ctrl-C ends the process at once. As an exception it would surface in the middle of an import as another one.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(main())


def main(argv: "list[str] | None" = None) -> int:
    try:
        from webhook.cli import commands  # noqa: PLC0415 - see the module's docstring

        called = os.path.basename(sys.argv[0])  # noqa: PTH119 - pathlib is not imported yet
        name = called.replace("-", " ", 1).replace("_", "-") if called.startswith("kubectl-lease") else PROGRAM
        return commands.run(sys.argv[1:] if argv is None else argv, name)
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
    """Write to nowhere: the reader (`head`) has exited, or the disk is full, and Python would report it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> int:
    from webhook.text.quoting import escape  # noqa: PLC0415 - without the commands: one of them may be what fails

    print(f"lease-webhook: {escape(' '.join(text.split()))}", file=sys.stderr)
    return 2
