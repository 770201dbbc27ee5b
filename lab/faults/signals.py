"""Signals under load: terminate, reload, kill the master, stop a worker for a while."""

import os
import signal
import time
from pathlib import Path

from lab.bench.processes import list_tree
from lab.bench.servers import make_own_server, run_server, stop
from lab.bench.table import Table
from lab.faults.watched import make_bar, make_correctness_bar, make_loss_bar, make_row, make_table, run_under_load

RATE = 400


def terminate(work: Path, *, short: bool) -> Table:
    """Send SIGTERM: whoever has a connection gets an answer."""
    rows, reports, exits, noise = [], [], [], 0.0
    for number in range(1 if short else 5):
        with run_server(make_own_server(), work / str(number), workers=2) as server:
            with run_under_load(server, work, 4, rate=RATE) as load:
                time.sleep(2)
                exits.append(stop(server.process))
            report = load.report
            note = f"{report.lost - report.broken} refused without a connection, exit {server.process.returncode}"
            rows.append(
                make_row(f"SIGTERM at {RATE}/s, {number + 1}", server, report, f"{note} after {exits[-1]:.1f} s")
            )
            reports.append(report)
            noise = max(noise, load.spent.foreign_cores)
            if server.process.returncode:
                raise RuntimeError(f"exit code {server.process.returncode}: {server.log[-500:]}")
    notes = ("After SIGTERM nobody listens, so new connections are refused; what counts is who had one.",)
    bars = [
        make_loss_bar("SIGTERM, open connections", sum(report.broken for report in reports)),
        make_correctness_bar("SIGTERM", *reports),
        make_bar("SIGTERM: exit code 0 within", "5 s", f"{max(exits):.1f} s", met=max(exits) <= 5, of_load=True),
    ]
    return make_table("SIGTERM", notes, rows, bars, noise)


def reload(work: Path, *, short: bool) -> Table:
    """Send SIGHUP: new workers take over, nobody is lost."""
    count = 2 if short else 10
    with run_server(make_own_server(), work / "server", workers=2) as server:
        before = set(server.workers)
        with run_under_load(server, work, count * 4 + 4, rate=RATE) as load:
            for _ in range(count):
                time.sleep(4)
                os.kill(server.pid, signal.SIGHUP)
        replaced = not before & set(server.workers)
        rows = [make_row(f"SIGHUP at {RATE}/s, {count} times", server, load.report, f"all workers new: {replaced}")]
        bars = [
            make_loss_bar(f"SIGHUP, {count} times", load.report.not_answered),
            make_correctness_bar("SIGHUP", load.report),
            make_bar("SIGHUP: workers replaced", "all", str(replaced), met=replaced),
        ]
    return make_table("SIGHUP", (), rows, bars, load.spent.foreign_cores)


def kill_master(work: Path, *, short: bool) -> Table:
    """Kill the master by SIGKILL: the workers notice and leave, so that the pod is restarted and nobody hangs."""
    del short
    with run_server(make_own_server(), work / "server", workers=2) as server:
        workers = server.workers
        with run_under_load(server, work, 6, "-timeout", "2s") as load:
            time.sleep(2)
            server.process.kill()
            began = time.monotonic()
            while any(_is_alive(pid) for pid in workers) and time.monotonic() - began < 30:
                time.sleep(0.05)
            gone_after = time.monotonic() - began
        orphans = [pid for pid in workers if _is_alive(pid)]
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        rows = [make_row("kill -9 of the master", server, load.report, f"workers gone after {gone_after:.1f} s")]
        bars = [
            make_correctness_bar("kill -9 of the master", load.report),
            make_bar("kill -9 of the master: workers left behind", "0", str(len(orphans)), met=not orphans),
        ]
    notes = ("Reviews are lost from here on until the pod is restarted; other replicas serve.",)
    return make_table("kill -9 of the master", notes, rows, bars, load.spent.foreign_cores)


def stop_worker(work: Path, *, short: bool) -> Table:
    """Stop one of two workers by SIGSTOP for 5 s: it is late, never wrong, and nobody is killed for it."""
    seconds = 2 if short else 5
    with run_server(make_own_server(), work / "server", workers=2) as server:
        before = server.workers
        with run_under_load(server, work, seconds + 5) as load:
            time.sleep(2)
            os.kill(before[0], signal.SIGSTOP)
            try:
                time.sleep(seconds)
            finally:  # a worker that is stopped does not end with the server
                os.kill(before[0], signal.SIGCONT)
        with run_under_load(server, work, 3) as after:
            pass
        same = server.workers == before
        rows = [
            make_row(f"SIGSTOP for {seconds} s", server, load.report, f"the same workers afterwards: {same}"),
            make_row("afterwards", server, after.report),
        ]
        bars = [
            make_correctness_bar("SIGSTOP", load.report, after.report),
            make_loss_bar(f"SIGSTOP for {seconds} s, timeout 10 s", load.report.not_answered),
            make_loss_bar("after SIGSTOP", after.report.not_answered),
            make_bar("SIGSTOP: the same workers afterwards", "yes", str(same), met=same),
        ]
    return make_table("SIGSTOP of a worker", (), rows, bars, load.spent.foreign_cores)


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z" and bool(list_tree(pid))
