"""The cost of a command: CPU time and peak memory, without those of the process that measures."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

_LAUNCHER: Final = """\
import os, sys
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
figures = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)
os.write(int(sys.argv[1]), " ".join(map(str, figures)).encode())
"""
"""A small process starts the command: Linux counts the memory of the process that starts a child in its peak."""


_END: Final = 100_000
"""Bytes of the output that are looked at."""


class Cost(Struct, frozen=True):
    """The cost of one run: seconds of CPU, and the peak of its memory."""

    seconds: float
    mebibytes: float


def measure_cost(words: Sequence[str], statuses: Collection[int] = (0, 1)) -> Cost:
    """Run one command.

    Raises RuntimeError with the end of its output if it ends with another status than these, or by an exception, whose
    status is 1 as well.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as usage:
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(usage.fileno()), *words]
        subprocess.run(launch, stdout=output, stderr=output, pass_fds=[usage.fileno()], check=True)
        usage.seek(0)
        seconds, mebibytes, status = usage.read().split()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _END))
        end = output.read()
        if int(status) not in statuses or b"Traceback (most recent call last)" in end:
            raise RuntimeError(f"{' '.join(words)}: {end[-500:]!r}")
    return Cost(float(seconds), float(mebibytes))
