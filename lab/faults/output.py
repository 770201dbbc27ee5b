"""The destination of the log may block, fill up or disappear; verdicts go on."""

import os
import resource
import signal
import time
from pathlib import Path

from lab.bench.processes import list_tree
from lab.bench.reviews import list_mixture
from lab.bench.servers import make_own_server, run_server
from lab.bench.table import Table
from lab.faults.watched import make_bar, make_correctness_bar, make_loss_bar, make_row, make_table, run_under_load

PIPE_BYTES = 65_536
LINE_BYTES = 8192
"""A pipe is full for a line that does not fit."""


def block_output(work: Path, *, short: bool) -> Table:
    """Leave standard output unread, and later close its reader: every review here writes a line."""
    seconds = 4 if short else 20
    denied = [case for case in list_mixture() if not case.allowed]
    reading, writing = os.pipe()
    with run_server(make_own_server(), work / "server", workers=2, stdout=writing) as server:
        os.close(writing)
        with run_under_load(server, work, seconds, rate=400, cases=denied) as full:
            pass
        waiting = _count_waiting(reading)
        os.close(reading)
        with run_under_load(server, work, seconds, rate=400, cases=denied) as closed:
            pass
        rows = [
            make_row("standard output is not read", server, full.report, f"{waiting} bytes wait in the pipe"),
            make_row("its reader is gone", server, closed.report),
        ]
    bars = [
        make_bar(
            "blocked standard output: the pipe was full",
            f">= {PIPE_BYTES - LINE_BYTES} bytes",
            str(waiting),
            met=waiting >= PIPE_BYTES - LINE_BYTES,
        ),
        make_loss_bar("blocked standard output", full.report.not_answered + closed.report.not_answered),
        make_correctness_bar("blocked standard output", full.report, closed.report),
    ]
    return make_table("Blocked standard output", (), rows, bars, full.spent.foreign_cores)


def _count_waiting(descriptor: int) -> int:
    """Return how many bytes a pipe holds."""
    os.set_blocking(descriptor, False)
    size = 0
    try:
        while piece := os.read(descriptor, 1 << 20):
            size += len(piece)
    except BlockingIOError:
        pass
    return size


def fill_disk(work: Path, *, short: bool) -> Table:
    """Put standard output on a full disk, then let no file grow at all; a worker dies meanwhile."""
    seconds = 4 if short else 15
    full = os.open("/dev/full", os.O_WRONLY)
    with run_server(
        make_own_server("--capture", str(work / "captured")), work / "server", workers=2, stdout=full
    ) as server:
        os.close(full)
        with run_under_load(server, work, seconds) as first:
            pass
        for pid in list_tree(server.pid):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
        with run_under_load(server, work, seconds) as second:
            pass
        before = set(server.workers)
        with run_under_load(server, work, seconds + 3) as third:
            time.sleep(1)
            os.kill(min(before), signal.SIGKILL)
        with run_under_load(server, work, 2) as after:
            pass
        now = set(server.workers)
        new = now - before
        rows = [
            make_row("/dev/full as standard output", server, first.report),
            make_row("RLIMIT_FSIZE 0 for the whole server, capturing", server, second.report),
            make_row("and kill -9 of one worker", server, third.report, f"{len(now)} workers, {len(new)} new"),
            make_row("afterwards", server, after.report),
        ]
    reports = (first.report, second.report, third.report, after.report)
    lost = sum(one.report.not_answered for one in (first, second, after))
    bars = [
        make_loss_bar("full disk", lost),
        make_correctness_bar("full disk", *reports),
        make_bar(
            "full disk: a worker that dies is replaced",
            "2 workers, 1 of them new",
            f"{len(now)}, {len(new)} new",
            met=len(now) == 2 and len(new) == 1,
        ),
        make_bar(
            "full disk and kill -9: lost",
            "<= 25 in flight",
            str(third.report.not_answered),
            met=third.report.not_answered <= 25,
        ),
    ]
    return make_table("Full disk", (), rows, bars, first.spent.foreign_cores)
