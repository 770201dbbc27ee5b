"""CPU by kind of write, from recorded reviews, beside controller-runtime; layer by layer; and for a whole cluster."""

import time
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from lab.bench.load import run_load, write_cases
from lab.bench.processes import measure_tree, read_memory_mib
from lab.bench.reviews import Case
from lab.bench.rounds import Round, Rounds, run_quietest
from lab.bench.servers import (
    CONTROLLER_RUNTIME,
    Running,
    find_interpreter_name,
    make_echo_server,
    make_own_server,
    run_server,
)
from lab.bench.table import Bar, Table, find_median, format_span, make_answers_bar
from lab.bench.tables.cpu import list_missing, start_all
from tests.match_condition import is_reviewed
from tests.recordings import FOLDER, recordings
from webhook.admission.policy.file import load
from webhook.server.reviewer import respond

CLIENTS: Final = ("client-go", "fabric8", "kube-leader-election", "coordinated")
"""Whose elections on v1.36.3, of everything that the shipped match condition sends, are the mix."""
MIX: Final = "what four elections send"

KINDS: Final[dict[str, tuple[str, float, float]]] = {
    "takeover": ("client-go/04-update-takeover", 0.48, 0.35),
    "release": ("client-go/06-update-release", 0.48, 0.35),
    "claim": ("client-go/07-update-claim", 0.48, 0.35),
    "first renewal by another manager": ("kube-leader-election/02-update-renew", 0.45, 0.35),
    "create": ("client-go/01-create-create", 0.52, 0.42),
    "candidate create": ("coordinated/01-create-candidate-create", 0.52, 0.42),
    "coordinated create by the API server, exempt": ("coordinated/02-create-create", 0.60, 0.45),
    "denied steal": ("kubectl-unusual/18-update-steal-unexpired-by-other-namespace", 0.90, 0.70),
    "plain renewal (not sent as shipped)": ("client-go/03-update-renew", 0.40, 0.30),
    "node heartbeat (not sent as shipped)": ("node-heartbeat/03-update-renew", 0.40, 0.30),
}
"""Recording, bar and goal: CPU as a share of controller-runtime's."""
RENEWAL: Final = "plain renewal (not sent as shipped)"
CONNECTIONS: Final = 8

LEASES: Final = (100, 1_000, 10_000)
RENEWALS_A_SECOND: Final = 0.5
"""Renewals of one lease: client-go's RetryPeriod is 2 s."""
CHANGES_A_DAY: Final = 24
"""Other writes of one lease: four restarts with a release, a claim and a first renewal each, and twelve more."""
PODS: Final = 2


def make_case(name: str, body: bytes) -> Case:
    """Return a recorded review, with the verdict of the standard policy."""
    response = respond(body, load(None), time.time_ns() // 1000)
    assert response.verdict is not None
    assert response.request is not None
    return Case(name, body, response.verdict.code, response.request.uid)


@cache
def list_cases() -> dict[str, list[Case]]:
    """Return the reviews of each row."""
    mix = [
        make_case(one.file, one.body)
        for one in recordings()
        if one.file.startswith("1.36.3/") and one.client in CLIENTS and is_reviewed(one.document()["request"])
    ]
    kinds = {
        kind: [make_case(kind, (FOLDER / "1.36.3" / f"{file}.json").read_bytes())] for kind, (file, *_) in KINDS.items()
    }
    return {MIX: mix, **kinds}


def format_bindings() -> str:
    """Return a policy that binds each lease of the mix to its service account."""
    lines = ["apiVersion: lease-webhook/v1", "bindings:"]
    for client in CLIENTS:
        (lease,) = {
            (request["namespace"], request["name"])
            for one in recordings()
            if one.file.startswith("1.36.3/") and one.client == client
            for request in [one.document()["request"]]
            if request["resource"]["resource"] == "leases"
        }
        users = {one.user for one in recordings() if one.client == client and ":serviceaccount:" in one.user}
        writers = ", ".join(sorted("/".join(user.split(":")[2:]) for user in users))
        lines.append(f"- {{namespace: {lease[0]}, lease: {lease[1]}, writers: [{writers}], holder: ['*']}}")
    return "\n".join(lines) + "\n"


class _Cost(Struct, frozen=True):
    micros: float
    wrong: int


Costs = dict[tuple[str, str], _Cost]


def _count_wrong(rounds: Rounds[Costs]) -> int:
    """Return how many answers were wrong or missing."""
    return sum(one.wrong for result in rounds.results for one in result.values())


def _measure_round(everyone: dict[str, Running], files: dict[str, Path], seconds: float, number: int) -> Round[Costs]:
    """Measure all kinds, each by all servers, forwards or backwards."""
    result: Costs = {}
    noise = [0.0]
    for kind, file in files.items():
        for name in everyone if number % 2 == 0 else reversed(everyone):
            flags = ("-duration", f"{seconds}s", "-connections", str(CONNECTIONS))
            with measure_tree(everyone[name].pid) as usage:
                report = run_load(everyone[name], "closed", file, *flags, cpus="1")
            result[name, kind] = _Cost(report.compute_micros(usage.cpu), report.wrong_or_missing)
            noise.append(usage.foreign_cores)
    return Round(max(noise), result)


def measure_beside_controller_runtime(work: Path, *, short: bool) -> Table:
    """Measure one row for each kind of write; the first is sent by the shipped configuration."""
    count, seconds = (1, 0.5) if short else (5, 1.0)
    files = {
        kind: write_cases(some, work / f"cases-{number}") for number, (kind, some) in enumerate(list_cases().items())
    }
    servers = (make_own_server(), CONTROLLER_RUNTIME)
    with ExitStack() as stack:
        everyone = {one.server.name: one for one in start_all(servers, work, stack, workers=1, cpus="0")}
        for server in everyone.values():
            run_load(server, "closed", files[MIX], "-requests", "2000", cpus="1")
        rounds = run_quietest(partial(_measure_round, everyone, files, seconds), count)
        memory = read_memory_mib(everyone[servers[0].name].pid)
    wrong = _count_wrong(rounds)
    mine, theirs = (
        {
            kind: [result[one.name, kind].micros for result in rounds.results if (one.name, kind) in result]
            for kind in files
        }
        for one in servers
    )
    ratios = {kind: [a / b for a, b in zip(mine[kind], theirs[kind], strict=False)] for kind in files}
    rows = [
        (
            kind,
            f"{find_median([len(one.body) for one in list_cases()[kind]]):.0f}",
            f"{find_median(mine[kind]):.0f}",
            f"{find_median(theirs[kind]):.0f}" if theirs[kind] else "-",
            format_span(ratios[kind]) if ratios[kind] else "no controller-runtime",
        )
        for kind in files
    ]
    bars = tuple(
        Bar(
            f"CPU, ratio to controller-runtime: {kind}",
            f"<= {bar:.2f}",
            format_span(ratios[kind]),
            find_median(ratios[kind]) <= bar,
            f"<= {goal:.2f}",
        )
        for kind, (_, bar, goal) in KINDS.items()
        if ratios[kind]
    )
    return Table(
        "CPU by kind of write, beside controller-runtime",
        (
            (
                f"First row: {len(list_cases()[MIX])} recorded writes of {', '.join(CLIENTS)}, all that the shipped"
                " match condition sends. Each other row is one recorded review."
            ),
            (
                f"{seconds:g} s for each kind and server, {CONNECTIONS} kept-alive TLS 1.3 connections, closed loop;"
                " server pinned to core 0, loader to core 1; one worker, GOMAXPROCS=1."
            ),
            f"Ours runs on {find_interpreter_name()}; its memory (PSS) afterwards is {memory:.0f} MiB.",
            (
                "us = run time of all threads of the process tree / right answers; ratio = to controller-runtime in the"
                " same round: median (lowest..highest)."
            ),
            rounds.explanation,
            f"Every answer of both was checked (uid, verdict): {wrong} wrong or missing.",
        ),
        ("kind of write", "bytes", "us", "controller-runtime us", "ratio"),
        (*rows, *list_missing(servers, 5)),
        (
            *bars,
            Bar("memory (PSS) with one worker", "<= 52 MiB", f"{memory:.0f} MiB", memory <= 52, "<= 40 MiB"),
            make_answers_bar("CPU by kind of write", wrong),
        ),
        {"kinds": [(n, find_median(values)) for n, values in enumerate(ratios.values()) if values]},
        rounds.foreign_cores,
    )


PARTS: Final = {
    "echo": "event loop, TLS, HTTP parser, a constant answer",
    "connection": "our connections and guards instead, known heads",
    "verdict": "and the verdict",
    "lease-webhook": "and gunicorn, metrics, log, reloading: `serve`",
}


def measure_layers(work: Path, *, short: bool) -> Table:
    """Measure the share of each layer in the cost of a takeover and of a denial."""
    count, seconds = (1, 0.5) if short else (5, 1.0)
    kinds = ("takeover", "denied steal")
    files = {kind: write_cases(list_cases()[kind], work / kind) for kind in kinds}
    servers = (*map(make_echo_server, list(PARTS)[:3]), make_own_server())
    with ExitStack() as stack:
        everyone = {one.server.name: one for one in start_all(servers, work, stack, workers=1, cpus="0")}
        for server in everyone.values():
            run_load(server, "closed", files["takeover"], "-requests", "2000", cpus="1")
        rounds = run_quietest(partial(_measure_round, everyone, files, seconds), count)
    micros = {key: find_median([result[key].micros for result in rounds.results]) for key in rounds.results[0]}
    rows = []
    for before, name in zip([None, *PARTS], PARTS, strict=False):
        added = [micros[name, kind] - (micros[before, kind] if before else 0) for kind in kinds]
        rows.append(
            (PARTS[name], *(f"{micros[name, kind]:.1f} (+{more:.1f})" for kind, more in zip(kinds, added, strict=True)))
        )
    return Table(
        "Layer by layer",
        (f"us of CPU per review as above, each server with a layer more; {rounds.explanation}",),
        ("layer", *kinds),
        tuple(rows),
        (make_answers_bar("layer by layer", _count_wrong(rounds)),),
        {},
        rounds.foreign_cores,
    )


def make_cluster_table(work: Path, *, short: bool) -> Table:
    """Return mCPU and memory of two pods, computed from measured cost and stated rates."""
    count, seconds = (1, 0.5) if short else (3, 1.0)
    files = {kind: write_cases(list_cases()[kind], work / f"cases-{n}") for n, kind in enumerate((MIX, RENEWAL))}
    policy = work / "bound.yaml"
    policy.write_text(format_bindings())
    ways = {
        "shipped": make_own_server(),
        "all-renewals": make_own_server("--policy", "observe"),
        "all leases bound": make_own_server("--policy", str(policy)),
    }
    memory = {}
    for way, entry in ways.items():
        # Alone: pages that servers of several configurations share would count for a part in each.
        with run_server(entry, work / way.replace(" ", "-"), workers=2, cpus="0") as alone:
            run_load(alone, "closed", files[MIX], "-requests", "2000", cpus="1")
            memory[way] = read_memory_mib(alone.pid)
    with ExitStack() as stack:
        everyone = {
            way: stack.enter_context(run_server(server, work / way.replace(" ", "-"), workers=2, cpus="0"))
            for way, server in ways.items()
        }
        idle = []
        for server in everyone.values():
            run_load(server, "closed", files[MIX], "-requests", "2000", cpus="1")
            with measure_tree(server.pid) as usage:
                time.sleep(seconds * 5)
            idle.append(usage.cpu / usage.wall * 1000)
        rounds = run_quietest(partial(_measure_round, everyone, files, seconds), count)
    micros = {key: find_median([result[key].micros for result in rounds.results]) for key in rounds.results[0]}
    rows = []
    for way in ways:
        cells = []
        for leases in LEASES:
            changes = leases * CHANGES_A_DAY / 86_400 * micros[way, MIX]
            renewals = 0.0 if way == "shipped" else leases * RENEWALS_A_SECOND * micros[way, RENEWAL]
            cells.append(f"{PODS * find_median(idle) + (changes + renewals) / 1000:.0f}")
        rows.append(
            (way, f"{micros[way, MIX]:.0f}", f"{micros[way, RENEWAL]:.0f}", *cells, f"{PODS * memory[way]:.0f}")
        )
    two = find_median(list(memory.values()))
    return Table(
        "What a cluster pays",
        (
            (
                f"Two pods of two workers, computed: each lease is renewed {RENEWALS_A_SECOND:g} times a second and has"
                f" {CHANGES_A_DAY} other writes a day, which cost as the mix of the first table; an idle pod takes"
                f" {find_median(idle):.1f} mCPU. Shipped, the API server drops the renewals."
            ),
            rounds.explanation,
        ),
        ("configuration", "us, mix", "us, renewal", *(f"mCPU, {leases:,} leases" for leases in LEASES), "MiB (PSS)"),
        tuple(rows),
        (
            Bar("memory (PSS) with two workers", "<= 64 MiB", f"{two:.0f} MiB", two <= 64, "<= 55 MiB"),
            make_answers_bar("what a cluster pays", _count_wrong(rounds)),
        ),
        {},
        rounds.foreign_cores,
    )
