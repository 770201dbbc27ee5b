"""Jumps of the wall clock under load; it is moved by a preloaded library, for the whole server at once."""

import shutil
import struct
import subprocess
import time
from pathlib import Path

from lab.bench.reviews import list_mixture
from lab.bench.servers import make_own_server, run_server
from lab.bench.table import Table
from lab.faults.watched import make_bar, make_correctness_bar, make_loss_bar, make_row, make_table, run_under_load
from webhook.server.settings import STUCK_WORKER_SECONDS

HOUR = 3600
LONGER_THAN_A_HEARTBEAT = STUCK_WORKER_SECONDS + 10.0
"""gunicorn kills a worker that it has not heard of for so long."""
JUMPS = {"an hour ahead": HOUR, "an hour back": -HOUR, "ten years ahead": 10 * 365 * 24 * HOUR, "back to now": 0}


def jump_clock(work: Path, *, short: bool) -> Table:
    """Move the clock one hour ahead, one hour back, ten years ahead: same workers, same verdicts."""
    title = "Clock jumps"
    compiler = shutil.which("cc")
    if compiler is None:
        reason = "no C compiler on PATH to build what moves the clock"
        return make_table(title, (), [], [make_bar("clock jumps: run", "yes", f"no: {reason}", met=False)], 0.0)
    library = work / "clock.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(Path(__file__).with_name("clock.c")), "-ldl"],
        check=True,
    )
    offset = work / "offset"
    offset.write_bytes(struct.pack("q", 0))
    # Whether a time lies in the future is the one question that a clock may answer: those reviews stay out.
    cases = [case for case in list_mixture() if "ahead" not in case.name and "ten years" not in case.name]
    environment = {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(offset)}
    rows, reports, years = [], [], []
    noise = 0.0
    with run_server(make_own_server(), work / "server", workers=2, environment=environment) as server:
        before = server.workers
        for name, seconds in JUMPS.items():
            with run_under_load(server, work, 5 if short else LONGER_THAN_A_HEARTBEAT, cases=cases) as load:
                time.sleep(1)
                with offset.open("r+b") as file:
                    file.write(struct.pack("q", seconds))
            line = server.log.splitlines()[-1]
            years.append(line.partition('"time":"')[2][:16])
            rows.append(make_row(name, server, load.report, f"the log's clock says {years[-1]}"))
            reports.append(load.report)
            noise = max(noise, load.spent.foreign_cores)
        same = server.workers == before
    moved = len({year[:4] for year in years}) > 1
    bars = [
        make_loss_bar("clock jumps", sum(report.not_answered for report in reports)),
        make_correctness_bar("clock jumps", *reports),
        make_bar("clock jumps: the server saw them (its log)", "yes", str(moved), met=moved),
        make_bar("clock jumps: workers killed", "0", "0" if same else "some", met=same),
    ]
    return make_table(title, (), rows, bars, noise)
