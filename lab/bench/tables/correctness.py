"""Verdicts under load: none may be wrong, whatever else is going on."""

import os
import signal
import threading
import time
from pathlib import Path

from lab.bench.load import run_load, start_load, wait_for_load, write_cases
from lab.bench.processes import measure_tree, read_peak_rss_mib
from lab.bench.reviews import list_mixture, make_long_identity_case, make_renewal_case
from lab.bench.servers import Running, make_own_server, run_server
from lab.bench.table import Bar, Table, make_answers_bar

KILLS = 20
BACK_SECONDS = 2.0


def check_mixed(work: Path, *, short: bool) -> Table:
    """Send mixed reviews with known answers over the wire."""
    cases = list_mixture()
    listed = write_cases(cases, work / "mixed")
    request_count = int(os.environ.get("BENCH_REVIEWS", "100000" if short else "1000000"))
    with run_server(make_own_server(), work / "server", workers=2) as server:
        with measure_tree(server.pid) as usage:
            report = run_load(server, "closed", listed, "-requests", str(request_count), "-connections", "16")
        tracebacks = server.log.count("Traceback")
    denied = sum(1 for case in cases if not case.allowed)
    good = report.right == request_count and not report.wrong and not tracebacks
    return Table(
        "Mixed reviews with known answers",
        (
            (f"{len(cases)} kinds of writes ({denied} to be denied, with the code), each review with a uid of its own;"
            " 16 connections, 2 workers. `BENCH_REVIEWS=10000000` sends ten million."),
        ),
        ("reviews", "right", "wrong verdicts", "uid mix-ups", "unreadable", "lost", "tracebacks", "reviews/s"),
        (
            (
                f"{report.sent:,}", f"{report.right:,}", str(report.wrong_verdicts), str(report.wrong_uids),
                str(report.unreadable), str(report.not_answered), str(tracebacks),
                f"{report.sent / report.seconds:.0f}",
            ),
        ),
        (
            Bar(
                f"{request_count:,} mixed reviews with known answers",
                "0 wrong verdicts, 0 uid mix-ups, 0 tracebacks",
                f"{report.wrong_verdicts}, {report.wrong_uids}, {tracebacks}; {report.not_answered} lost",
                good,
                "10^7 on demand",
                of_answers=True,
            ),
        ),
        {},
        usage.foreign_cores,
    )  # fmt: skip


def check_large_beside_small(work: Path, *, short: bool) -> Table:
    """Send 18.5 MB reviews at 1/s beside 200/s small ones."""
    seconds = 8 if short else 60
    small, large = (
        write_cases([make_renewal_case()], work / "small"),
        write_cases([make_long_identity_case(18_500_000)], work / "large"),
    )
    with run_server(make_own_server(), work / "server", workers=2) as server:
        run_load(server, "open", small, "-requests", "200", "-rate", "200")
        with measure_tree(server.pid) as usage:
            loading = start_load(server, "open", small, "-rate", "200", "-duration", f"{seconds}s")
            big = run_load(server, "open", large, "-rate", "1", "-duration", f"{seconds}s")
            report = wait_for_load(loading)
        peak = max(read_peak_rss_mib(pid) for pid in server.workers)
    wrong = report.wrong_or_missing + big.wrong_or_missing
    return Table(
        "18.5 MB reviews beside small ones",
        (f"{seconds} s, 2 workers, nothing pinned: 1/s of 18.5 MB, 200/s small; {wrong} wrong or missing answers.",),
        ("reviews", "answered", "p50 ms", "p99 ms", "worst ms"),
        tuple(
            (name, str(one.right), f"{one.p50_ms:.1f}", f"{one.p99_ms:.1f}", f"{one.max_ms:.1f}")
            for name, one in (("2.4 KB", report), ("18.5 MB", big))
        ),
        (
            Bar("18.5 MB at 1/s beside 200/s, small p99", "<= 250 ms", f"{report.p99_ms:.0f} ms", report.p99_ms <= 250),
            Bar("peak RSS of a worker", "<= 256 MiB", f"{peak:.0f} MiB", peak <= 256),
            make_answers_bar("18.5 MB beside small ones", wrong),
        ),
        {},
        usage.foreign_cores,
    )


class _Killer(threading.Thread):
    """A thread that kills one of two workers again and again, and measures the time until two have started."""

    def __init__(self, server: Running, kills: int) -> None:
        # If the load fails, the program must end nevertheless.
        super().__init__(daemon=True)
        self._server, self._kills = server, kills
        self.back_seconds: list[float] = []

    def run(self) -> None:
        for _ in range(self._kills):
            time.sleep(1.5)
            before = set(self._server.workers)
            victim = min(before)
            os.kill(victim, signal.SIGKILL)
            began = time.monotonic()
            log = self._server.log.count("policy in use")
            while time.monotonic() - began < 10:
                # A worker says this line when it is about to listen.
                if self._server.log.count("policy in use") > log:
                    break
                time.sleep(0.01)
            self.back_seconds.append(time.monotonic() - began)


def check_kills(work: Path, *, short: bool) -> Table:
    """Kill one of two workers by SIGKILL under 400/s."""
    count = 4 if short else KILLS
    cases = write_cases(list_mixture(), work / "mixed")
    connections = 25
    with run_server(make_own_server(), work / "server", workers=2) as server:
        killer = _Killer(server, count)
        with measure_tree(server.pid) as usage:
            killer.start()
            report = run_load(server, "open", cases, "-rate", "400", "-duration", f"{count * 2 + 4}s")
            killer.join()
        after = run_load(server, "open", cases, "-rate", "400", "-duration", "1s")
    kills, slowest = len(killer.back_seconds), max(killer.back_seconds)
    wrong = report.wrong + after.wrong
    return Table(
        "kill -9 of one of two workers",
        (
            f"{count} kills under 400/s of mixed reviews, kube-apiserver's transport ({connections} idle connections).",
            f"A killed worker may take with it what it held: at most {connections} reviews each time.",
        ),
        ("kills", "reviews", "lost", "wrong", "slowest return s", "p99 ms", "lost afterwards"),
        (
            (
                str(kills), str(report.sent), str(report.not_answered), str(report.wrong), f"{slowest:.2f}",
                f"{report.p99_ms:.1f}", str(after.not_answered),
            ),
        ),
        (
            Bar(
                f"kill -9 of one of two workers, {count} times: lost",
                f"<= {connections * count} ({connections} in flight each time)",
                str(report.not_answered),
                report.not_answered <= connections * count,
            ),
            Bar("kills that were tried", str(count), str(kills), kills == count),
            Bar("back within", "<= 2 s", f"{slowest:.2f} s", slowest <= BACK_SECONDS),
            Bar("wrong verdicts under kills", "0", str(wrong), wrong == 0, of_answers=True),
            Bar("lost after the kills", "0", str(after.not_answered), after.not_answered == 0),
        ),
        {},
        usage.foreign_cores,
    )  # fmt: skip
