"""CPU per review beside the peers: one core each, closed loop, rounds interleaved forwards and backwards."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec import Struct

from lab.bench.load import run_load, write_cases
from lab.bench.processes import measure_tree, read_memory_mib
from lab.bench.reviews import make_renewal_case
from lab.bench.rounds import Round, run_quietest
from lab.bench.servers import CONTROLLER_RUNTIME, PEERS, Running, Server, make_own_server, run_server
from lab.bench.table import Bar, Table, find_median, format_span, make_answers_bar
from lab.bench.toolchain import MissingError

SIZES = (2400, 4500)
BARS = {2400: (0.40, 0.30), 4500: (0.40, 0.30)}
CONNECTIONS = 8


def start_all(servers: tuple[Server, ...], work: Path, stack: ExitStack, *, workers: int, cpus: str) -> list[Running]:
    """Start the servers that can be started; the missing ones are reported by `list_missing`."""
    started = []
    for number, server in enumerate(servers):
        try:
            started.append(
                stack.enter_context(run_server(server, work / f"server-{number}", workers=workers, cpus=cpus))
            )
        except MissingError:
            continue
    return started


def list_missing(servers: tuple[Server, ...], columns: int) -> list[tuple[str, ...]]:
    """Return a row for each server that this machine cannot build, with the reason."""
    rows = []
    for server in servers:
        try:
            server.build()
        except MissingError as reason:
            rows.append((server.name, f"not measured: {reason}", *[""] * (columns - 2)))
    return rows


class _Cost(Struct, frozen=True):
    """One server and size in one round."""

    micros: float
    rate: float
    wrong: int


def _measure_round(
    everyone: list[Running], cases: dict[int, Path], seconds: float, number: int
) -> Round[dict[tuple[str, int], _Cost]]:
    """Measure all servers, small and large, forwards or backwards."""
    result, noise = {}, [0.0]
    for size in SIZES:
        for server in everyone if number % 2 == 0 else reversed(everyone):
            flags = ("-duration", f"{seconds}s", "-connections", str(CONNECTIONS))
            with measure_tree(server.pid) as usage:
                report = run_load(server, "closed", cases[size], *flags, cpus="1")
            result[server.server.name, size] = _Cost(
                report.compute_micros(usage.cpu), report.right / report.seconds, report.wrong_or_missing
            )
            noise.append(usage.foreign_cores)
    return Round(max(noise), result)


def run(work: Path, *, short: bool) -> Table:
    """Measure all servers with a 2.4 KB and a 4.5 KB renewal."""
    count, seconds = (2, 1.0) if short else (4, 2.0)
    cases = {size: write_cases([make_renewal_case(size)], work / f"renewal-{size}") for size in SIZES}
    servers = (make_own_server(), *PEERS)
    with ExitStack() as stack:
        everyone = start_all(servers, work, stack, workers=1, cpus="0")
        for server in everyone:
            run_load(server, "closed", cases[2400], "-requests", "2000", cpus="1")
        rounds = run_quietest(partial(_measure_round, everyone, cases, seconds), count)
        memory = {server.server.name: read_memory_mib(server.pid) for server in everyone}
    wrong = sum(one.wrong for result in rounds.results for one in result.values())
    keys = [(server.server.name, size) for server in everyone for size in SIZES]
    micros = {key: [result[key].micros for result in rounds.results] for key in keys}
    rates = {key: [result[key].rate for result in rounds.results] for key in keys}
    base = CONTROLLER_RUNTIME.name
    ratios = {
        key: [mine / other for mine, other in zip(values, micros[base, key[1]], strict=True)]
        for key, values in micros.items()
        if (base, key[1]) in micros
    }
    rows = [
        (
            server.server.name,
            *(
                cell
                for size in SIZES
                for cell in (
                    f"{find_median(micros[server.server.name, size]):.0f}",
                    format_span(ratios[server.server.name, size]) if ratios else "no controller-runtime",
                )
            ),
            f"{find_median(rates[server.server.name, 2400]):.0f}",
            f"{memory[server.server.name]:.0f}",
        )
        for server in everyone
    ]
    bars = tuple(
        Bar(
            f"CPU per plain renewal of {size / 1000:.1f} KB, ratio to controller-runtime, every round",
            f"<= {BARS[size][0]:.2f}",
            format_span(ratios["lease-webhook", size]),
            max(ratios["lease-webhook", size]) <= BARS[size][0],
            f"<= {BARS[size][1]:.2f}",
        )
        for size in SIZES
        if ratios
    )
    return Table(
        "CPU per plain renewal, one core each",
        (
            "The shipped configuration does not send these; the components `all-renewals` and `bindings` do.",
            (
                f"{seconds:g} s for each server and size, {CONNECTIONS} kept-alive TLS 1.3 connections, closed loop;"
                " server pinned to core 0, loader to core 1; one worker, GOMAXPROCS=1."
            ),
            (
                "us = run time of all threads of the process tree / right answers; ratio = to controller-runtime in the"
                " same round: median (lowest..highest). Below 1 is cheaper."
            ),
            rounds.explanation,
            f"Every answer was checked (uid, verdict), except nginx's constant one: {wrong} wrong or missing.",
        ),
        ("server", "2.4 KB us", "ratio", "4.5 KB us", "ratio", "reviews/s", "PSS MiB"),
        (*rows, *list_missing(servers, 7)),
        (*bars, make_answers_bar("CPU per plain renewal", wrong)),
        {
            f"{size}": [(float(n), find_median(micros[s.server.name, size])) for n, s in enumerate(everyone)]
            for size in SIZES
        }
        | {
            s.server.name: [(float(size), find_median(micros[s.server.name, size])) for size in SIZES] for s in everyone
        },
        rounds.foreign_cores,
    )
