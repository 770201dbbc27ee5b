"""The growth of the cost: with the review, with the policy, with the workers."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from lab.bench.load import run_load, write_cases
from lab.bench.processes import measure_tree
from lab.bench.reviews import Case, make_long_identity_case, make_renewal_case
from lab.bench.servers import Running, make_own_server, run_server
from lab.bench.table import Bar, Table, find_median, make_answers_bar
from webhook.admission.policy.file import load
from webhook.admission.policy.parse import parse
from webhook.server.reviewer import respond

SIZES = (2_400, 8_000, 32_000, 128_000, 512_000, 2_000_000, 8_000_000, 18_500_000)
LARGEST_OF_ENTRIES: Final = 3_000_000
"""Bytes of two stored objects of 1.5 MB whose managedFields, in which nothing is escaped, fill them."""
ENTRIES = (0, 10, 100, 1_000, 10_000)
LARGEST: Final = {"many managedFields entries": LARGEST_OF_ENTRIES, "one long holderIdentity": SIZES[-1]}
"""The series of the first table, with the bytes up to which an API server sends such reviews."""
_BATCH = 20
NOW = 1_763_640_002_000_000


def _measure_over_wire(server: Running, case: Case, work: Path, requests: int) -> tuple[float, float]:
    cases = write_cases([case], work / f"{len(case.body)}-{case.name[-6:]}")
    run_load(server, "closed", cases, "-requests", "2", "-connections", "1", cpus="1")
    with measure_tree(server.pid) as usage:
        report = run_load(server, "closed", cases, "-requests", str(requests), "-connections", "1", cpus="1")
    if report.right != requests:
        raise RuntimeError(f"{case.name}: {report}")
    return usage.cpu / requests * 1e6, usage.foreign_cores


def measure_reviews(work: Path, *, short: bool) -> Table:
    """Measure CPU per review against its size, over the wire, one worker."""
    rows, noise = [], [0.0]
    series: dict[str, list[tuple[float, float]]] = {name: [] for name in LARGEST}
    with run_server(make_own_server(), work / "server", workers=1, cpus="0") as server:
        for size in SIZES:
            requests = max(3, min(3000, 60_000_000 // size)) // (3 if short else 1)
            cells = []
            for (name, largest), make in zip(
                LARGEST.items(), (make_renewal_case, make_long_identity_case), strict=True
            ):
                if size > largest:
                    cells.append("-")
                    continue
                case = make(size)
                micros, foreign = _measure_over_wire(server, case, work, requests)
                series[name].append((len(case.body), micros))
                cells.append(f"{micros:.0f} ({micros * 1000 / len(case.body):.2f})")
                noise.append(foreign)
            rows.append((f"{size:,}", *cells))
    per_byte = [[y / x for x, y in line] for line in series.values()]
    # From 32 KB on the fixed cost no longer counts: a cost per byte that rises beyond noise is worse than linear.
    worst = max(line[-1] / min(line[2:]) for line in per_byte)
    return Table(
        "Growth with the review",
        (
            "CPU us per review over the wire, one worker, one connection; in brackets nanoseconds per byte.",
            (
                "18.9 MB is the most that etcd allows: 1.5 MB of `<`, six bytes each when the API server sends them,"
                " in both objects."
            ),
            (
                "Of managedFields, 512 different entries are remembered from review to review, so from 512 KB on each"
                " is read."
            ),
        ),
        ("review bytes", *series),
        tuple(rows),
        (
            Bar(
                "cost per byte of the largest against the cheapest size from 32 KB on",
                "<= 2 (linear, with room for caches)",
                f"{worst:.2f}",
                worst <= 2,
            ),
        ),
        series,
        max(noise),
    )


_POLICIES: Final[dict[str, Callable[[int], str]]] = {
    "exemptions": lambda n: (
        "exempt:\n"
        + "".join(f"- {{users: [user-{i}], leases: ['lease-{i}-*'], owner: tests, reason: test}}\n" for i in range(n))
    ),
    "overrides": lambda n: (
        "overrides:\n"
        + "".join(
            f"- {{namespaces: [team-{i}], leases: ['l-{i}-*'], rules: {{takeover-before-expiry: {{mode: deny}}}}}}\n"
            for i in range(n)
        )
    ),
    "bindings": lambda n: (
        "bindings:\n"
        + "".join(
            f'- {{namespace: team-{i}, lease: lease-{i}, writers: ["user:writer-{i}"], holder: ["holder-{i}*"]}}\n'
            for i in range(n)
        )
    ),
}


def _measure_time(body: bytes, policy_text: str, *, short: bool) -> tuple[float, float]:
    began = time.perf_counter()
    policy = parse(policy_text) if policy_text else load(None)
    seconds = time.perf_counter() - began
    return find_best(partial(respond, body, policy, NOW), short=short), seconds


def find_best(call: Callable[[], object], *, short: bool) -> float:
    """Return the microseconds of one call: the best of many small batches, because noise only adds.

    A server's heap has free places; a fresh process may ask the kernel for an arena with each call and give it back,
    which costs more than the call. So half of a ballast is let go first.
    """
    ballast = [bytes(16 + 8 * (number % 56)) for number in range(40_000)]
    del ballast[::2]
    best = float("inf")
    gc.collect()
    gc.disable()
    try:
        for _ in range(300 if short else 1000):
            began = time.perf_counter_ns()
            for _ in range(_BATCH):
                call()
            best = min(best, (time.perf_counter_ns() - began) / _BATCH)
    finally:
        gc.enable()
    return best / 1000


def measure_policies(work: Path, *, short: bool) -> Table:
    """Measure CPU of the pure function against the length of the policy, with a review that has a finding."""
    del work
    from lab.bench.reviews import list_mixture  # noqa: PLC0415  # built from today's clock, so not at import

    body = next(case.body for case in list_mixture() if case.name == "early takeover in its own namespace")
    rows = []
    series: dict[str, list[tuple[float, float]]] = {name: [] for name in _POLICIES}
    for count in ENTRIES:
        cells = []
        for name, make in _POLICIES.items():
            text = f"apiVersion: lease-webhook/v1\npreset: standard\n{make(count)}" if count else ""
            micros, seconds = _measure_time(body, text, short=short)
            series[name].append((float(count), micros))
            cells.append(f"{micros:.1f} ({seconds:.2f} s)" if count else f"{micros:.1f}")
        rows.append((f"{count:,}", *cells))
    worst = max(line[-1][1] / line[0][1] for line in series.values())
    return Table(
        "Growth with the policy",
        (
            (
                "us of one call (best of many) for an early takeover, which asks overrides, bindings and exemptions;"
                " in brackets the time to read such a file once."
            ),
            f"CPython {sys.version.split()[0]}, in process.",
        ),
        ("entries", *series),
        tuple(rows),
        (
            Bar(
                "10,000 entries against none: lookups must not scan",
                "<= 2 times",
                f"{worst:.2f} times",
                worst <= 2,
            ),
        ),
        series,
    )


def measure_workers(work: Path, *, short: bool) -> Table:
    """Measure CPU per review and reviews per second against the number of workers, 16 connections, nothing pinned.

    One worker is also measured beside a busy program: then as many processes share the processors as with two workers.
    """
    cases = write_cases([make_renewal_case()], work / "renewal")
    rounds, seconds = (1, 2) if short else (4, 5)
    with (
        run_server(make_own_server(), work / "one", workers=1) as single,
        run_server(make_own_server(), work / "two", workers=2) as two,
    ):
        runs = [("1", single, 0), ("1, and a busy program", single, 1), ("2", two, 0)]
        micros: dict[str, list[float]] = {name: [] for name, _, _ in runs}
        rates: dict[str, list[float]] = {name: [] for name, _, _ in runs}
        noise, wrong = [0.0], 0
        for number in range(rounds):
            for name, server, others in runs if number % 2 == 0 else reversed(runs):
                with measure_tree(server.pid) as usage, _keep_busy(others):
                    report = run_load(server, "closed", cases, "-duration", f"{seconds}s", "-connections", "16")
                micros[name].append(report.compute_micros(usage.cpu))
                rates[name].append(report.right / report.seconds)
                wrong += report.wrong_or_missing
                noise.append(usage.foreign_cores)
    cost = {name: find_median(values) for name, values in micros.items()}
    ratio = cost["2"] / cost["1, and a busy program"]
    return Table(
        "Growth with the workers",
        (
            (
                "Closed loop, 16 connections. On two cores the loader takes its share, so reviews/s cannot double;"
                " the cost of a review is what must not rise. Three busy processes on two cores make each other slower,"
                " whatever they do, so two workers are compared with one beside a busy program."
            ),
        ),
        ("workers", "CPU us per review", "reviews/s"),
        tuple((name, f"{cost[name]:.0f}", f"{find_median(rates[name]):.0f}") for name in micros),
        (
            Bar(
                "CPU per review, 2 workers against 1 beside a busy program",
                "<= 1.25",
                f"{ratio:.2f}; {cost['2'] / cost['1']:.2f} against 1 alone",
                ratio <= 1.25,
            ),
            make_answers_bar("growth with the workers", wrong),
        ),
        {"workers": [(float(name), cost[name]) for name in ("1", "2")]},
        max(noise),
    )


@contextmanager
def _keep_busy(number: int) -> Iterator[None]:
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()
