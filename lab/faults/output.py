"""Where the log goes may block, fill up or disappear; verdicts go on."""

import os
import resource
import signal
import time
from pathlib import Path

from lab.bench.processes import tree
from lab.bench.reviews import mixture
from lab.bench.servers import ours, running
from lab.bench.table import Table
from lab.faults.watched import fault_table, holds, never_wrong, none_lost, row, under_load

PIPE_BYTES = 65_536
LINE_BYTES = 8192
"""A pipe is full for a line that does not fit."""


def blocked(work: Path, *, short: bool) -> Table:
    """Nobody reads standard output, and later its reader is gone: every review here writes a line."""
    seconds = 4 if short else 20
    denied = [case for case in mixture() if not case.allowed]
    reading, writing = os.pipe()
    with running(ours(), work / "server", workers=2, stdout=writing) as server:
        os.close(writing)
        with under_load(server, work, seconds, rate=400, cases=denied) as full:
            pass
        waiting = _waiting(reading)
        os.close(reading)
        with under_load(server, work, seconds, rate=400, cases=denied) as gone:
            pass
        rows = [
            row("standard output is not read", server, full.report, f"{waiting} bytes wait in the pipe"),
            row("its reader is gone", server, gone.report),
        ]
    bars = [
        holds(
            "blocked standard output: the pipe was full",
            f">= {PIPE_BYTES - LINE_BYTES} bytes",
            str(waiting),
            met=waiting >= PIPE_BYTES - LINE_BYTES,
        ),
        none_lost("blocked standard output", full.report.not_answered + gone.report.not_answered),
        never_wrong("blocked standard output", full.report, gone.report),
    ]
    return fault_table("Blocked standard output", (), rows, bars, full.spent.foreign_cores)


def _waiting(descriptor: int) -> int:
    """Return how many bytes a pipe holds."""
    os.set_blocking(descriptor, False)
    size = 0
    try:
        while piece := os.read(descriptor, 1 << 20):
            size += len(piece)
    except BlockingIOError:
        pass
    return size


def full_disk(work: Path, *, short: bool) -> Table:
    """Standard output on a full disk, then no file may grow at all, then a worker dies meanwhile."""
    seconds = 4 if short else 15
    full = os.open("/dev/full", os.O_WRONLY)
    with running(ours("--capture", str(work / "captured")), work / "server", workers=2, stdout=full) as server:
        os.close(full)
        with under_load(server, work, seconds) as first:
            pass
        for pid in tree(server.pid):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
        with under_load(server, work, seconds) as second:
            pass
        before = set(server.workers)
        with under_load(server, work, seconds + 3) as third:
            time.sleep(1)
            os.kill(min(before), signal.SIGKILL)
        new = set(server.workers) - before
        with under_load(server, work, 2) as after:
            pass
        rows = [
            row("/dev/full as standard output", server, first.report),
            row("RLIMIT_FSIZE 0 for the whole server, capturing", server, second.report),
            row("and kill -9 of one worker", server, third.report, f"{len(server.workers)} workers, {len(new)} new"),
            row("afterwards", server, after.report),
        ]
    reports = (first.report, second.report, third.report, after.report)
    lost = sum(one.report.not_answered for one in (first, second, after))
    bars = [
        none_lost("full disk", lost),
        never_wrong("full disk", *reports),
        holds(
            "full disk: a worker that dies is replaced",
            "2 workers",
            f"{len(server.workers) or len(before)}",
            met=len(new) == 1,
        ),
        holds(
            "full disk and kill -9: lost",
            "<= 25 in flight",
            str(third.report.not_answered),
            met=third.report.not_answered <= 25,
        ),
    ]
    return fault_table("Full disk", (), rows, bars, first.spent.foreign_cores)
