"""Runs a command in a pseudo-terminal of a given size, and returns what was on it."""

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from select import select

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MAX_SECONDS = 60


def plain(text: str) -> str:
    """Return a text without what colors it and moves the cursor."""
    return _CONTROL.sub("", text)


def on_terminal(
    words: Sequence[str],
    *,
    columns: int = 80,
    lines: int = 24,
    environment: Mapping[str, str] | None = None,
    until: Callable[[str], bool] = lambda _: False,
) -> tuple[int, str]:
    """Return exit code and output of `lease-webhook WORDS`; once `until` is true of the output, Ctrl-C is typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        # The size is that of the child's own terminal, before it looks.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        given = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS", "LINES"}}
        given |= {"TERM": "xterm-256color", **(environment or {})}
        os.execve(sys.executable, [sys.executable, "-m", "webhook", *words], given)
    output, has_typed, end = b"", False, time.monotonic() + _MAX_SECONDS
    try:
        while time.monotonic() < end:
            if select([terminal], [], [], 0.1)[0]:
                output += os.read(terminal, 65536)
            if not has_typed and until(output.decode(errors="replace")):
                has_typed = True
                os.write(terminal, b"\x03")
    except OSError:
        pass  # the child has closed its side
    else:
        os.kill(pid, signal.SIGKILL)
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode(errors="replace").replace("\r\n", "\n")
