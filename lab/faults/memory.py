"""A soak of bursts: the cost of a leftover timer or connection shows only here."""

import time
from pathlib import Path

from lab.bench.load import start_load, wait_for_load, write_cases
from lab.bench.processes import measure_tree, read_memory_mib
from lab.bench.reviews import make_renewal_case
from lab.bench.servers import make_own_server, run_server
from lab.bench.table import Table
from lab.faults.watched import make_bar, make_correctness_bar, make_loss_bar, make_row, make_table

BURST = 40


def soak(work: Path, *, short: bool) -> Table:
    """Send bursts of 40 at 600/s: more than 25 idle connections, so each burst opens and drops some."""
    requests = 12_000 if short else 90_000
    cases = write_cases([make_renewal_case()], work / "renewal")
    samples: list[tuple[float, float]] = []
    with run_server(make_own_server(), work / "server", workers=2) as server:
        idle = read_memory_mib(server.pid)
        with measure_tree(server.pid) as usage:
            began = time.monotonic()
            loading = start_load(
                server, "open", cases, "-rate", "600", "-burst", str(BURST), "-requests", str(requests)
            )
            while loading.poll() is None:
                samples.append((time.monotonic() - began, read_memory_mib(server.pid)))
                time.sleep(1 if short else 3)
            report = wait_for_load(loading)
        end = read_memory_mib(server.pid)
        note = f"{report.connections} connections; {idle:.0f} MiB idle, {end:.0f} MiB at the end"
        rows = [make_row(f"bursts of {BURST} at 600/s", server, report, note)]
    half = [size for moment, size in samples if moment >= samples[-1][0] / 2]
    growth = half[-1] - half[0]
    bars = [
        make_bar(
            f"memory of 2 workers after {requests:,} reviews in bursts",
            "<= 100 MiB (stretch 70)",
            f"{end:.0f} MiB",
            met=end <= 100,
            of_load=True,
        ),
        make_bar("growth over the last half", "<= 2 MiB (flat)", f"{growth:+.1f} MiB", met=growth <= 2, of_load=True),
        make_loss_bar("burst soak", report.not_answered),
        make_correctness_bar("burst soak", report),
    ]
    notes = (
        "PSS of the whole process tree.",
        "Samples: "
        + ", ".join(f"{moment:.0f} s {size:.1f}" for moment, size in samples[:: max(1, len(samples) // 12)]),
    )
    return make_table("Burst soak", notes, rows, bars, usage.foreign_cores)
