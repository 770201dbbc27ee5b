"""Reviews on a timetable, as an API server sends them: CPU and latency, steady and in bursts."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from lab.bench.load import Report, run_load, write_cases
from lab.bench.processes import Usage, measure_tree
from lab.bench.reviews import make_renewal_case
from lab.bench.rounds import Round, run_quietest
from lab.bench.servers import CONTROLLER_RUNTIME, OPA, Running, make_own_server
from lab.bench.table import Bar, Table, find_median, format_span, make_answers_bar
from lab.bench.tables.cpu import list_missing, start_all

LOADS = {"500/s": ("-rate", "500"), "bursts of 30 at 500/s": ("-rate", "500", "-burst", "30")}
CPU_BARS = {"500/s": (0.60, "<= 0.45"), "bursts of 30 at 500/s": (0.80, "")}


def _measure_round(
    everyone: list[Running], cases: Path, seconds: float, number: int
) -> Round[dict[tuple[str, str], tuple[Usage, Report]]]:
    """Measure all servers under all loads, forwards or backwards."""
    result, noise = {}, [0.0]
    for load, flags in LOADS.items():
        for server in everyone if number % 2 == 0 else reversed(everyone):
            with measure_tree(server.pid) as usage:
                report = run_load(server, "open", cases, "-duration", f"{seconds}s", *flags)
            result[server.server.name, load] = usage, report
            noise.append(usage.foreign_cores)
    return Round(max(noise), result)


def run(work: Path, *, short: bool) -> Table:
    """Measure two workers (GOMAXPROCS=2), unpinned, with the transport settings of kube-apiserver."""
    count, seconds = (2, 3) if short else (3, 6)
    cases = write_cases([make_renewal_case()], work / "renewal")
    servers = (make_own_server(), CONTROLLER_RUNTIME, OPA)
    with ExitStack() as stack:
        everyone = start_all(servers, work, stack, workers=2, cpus="")
        for server in everyone:
            run_load(server, "open", cases, "-requests", "1000", "-rate", "500")
        rounds = run_quietest(partial(_measure_round, everyone, cases, seconds), count)
    results = {
        (server.server.name, load): [result[server.server.name, load] for result in rounds.results]
        for server in everyone
        for load in LOADS
    }
    rows, bars, series = [], [], {}
    for load in LOADS:
        base = results.get((CONTROLLER_RUNTIME.name, load))
        for server in everyone:
            mine = results[server.server.name, load]
            micros, micros_of_base = (
                [report.compute_micros(usage.cpu) for usage, report in those] for those in (mine, base or mine)
            )
            ratios = [one / other for one, other in zip(micros, micros_of_base, strict=True)]
            p99 = find_median([report.p99_ms for _, report in mine])
            rows.append(
                (
                    load,
                    server.server.name,
                    f"{find_median(micros):.0f}",
                    format_span(ratios) if base else "no controller-runtime",
                    " / ".join(
                        f"{find_median([getattr(report, name) for _, report in mine]):.2f}"
                        for name in ("p50_ms", "p99_ms", "p999_ms")
                    ),
                    str(sum(report.wrong_or_missing for _, report in mine)),
                )
            )
            series[f"{load}: {server.server.name}"] = [
                (q, find_median([getattr(report, name) for _, report in mine]))
                for q, name in ((50, "p50_ms"), (90, "p90_ms"), (99, "p99_ms"), (99.9, "p999_ms"))
            ]
            if base and server.server.name == "lease-webhook":
                bar, stretch = CPU_BARS[load]
                theirs = find_median([report.p99_ms for _, report in base])
                bars += [
                    Bar(
                        f"{load}, CPU ratio", f"<= {bar:.2f}", format_span(ratios), find_median(ratios) <= bar, stretch
                    ),
                    Bar(
                        f"{load}, p99",
                        "not above controller-runtime's",
                        f"{p99:.2f} ms, theirs {theirs:.2f} ms",
                        p99 <= theirs,
                    ),
                ]
    wrong = sum(report.wrong_or_missing for those in results.values() for _, report in those)
    bars.append(make_answers_bar("open loop", wrong))
    return Table(
        "Open loop: reviews on a timetable",
        (
            (
                f"{seconds} s for each row and round, interleaved both ways; 2 workers, GOMAXPROCS=2,"
                " nothing pinned, so server and loader share the cores."
            ),
            (
                "HTTP/1.1, 25 idle connections, no session cache, as kube-apiserver; latency from the scheduled moment;"
                " medians over the rounds."
            ),
            rounds.explanation,
        ),
        ("load", "server", "CPU us", "ratio", "p50 / p99 / p99.9 ms", "wrong or missing"),
        (*rows, *list_missing(servers, 6)),
        tuple(bars),
        series,
        rounds.foreign_cores,
    )
