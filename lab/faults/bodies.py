"""Bodies of every kind: none holds a worker for a second or lifts it above 256 MiB."""

import time
from pathlib import Path
from typing import Final

from lab.bench.processes import measure_tree, read_cpu_seconds, read_peak_rss_mib
from lab.bench.servers import Running, make_own_server, run_server
from lab.bench.table import Bar, Table
from lab.faults.hostile_bodies import BODIES, fill, make_candidate_update
from lab.faults.hostile_clients import post

SECONDS: Final = 1.0
MEMORY_MIB: Final = 256
_POLICY: Final = """\
apiVersion: lease-webhook/v1
preset: strict
bindings:
- namespace: shop
  lease: checkout
  writers: [shop/checkout]
  holder: ["${pod}_*"]
"""
HEADER: Final = ("body", "MiB", "worker's CPU s", "answer after s", "peak MiB", "answer")
_VERSIONS: Final = 24


def _send_body(server: Running, name: str, body: bytes) -> tuple[tuple[str, ...], float, float]:
    """Return the row of one body, the worker's seconds and its peak; the peak is set back before."""
    (worker,) = server.workers
    Path(f"/proc/{worker}/clear_refs").write_text("5")
    before, began = read_cpu_seconds(worker), time.monotonic()
    answer = post(server, body)
    seconds, usage, peak = time.monotonic() - began, read_cpu_seconds(worker) - before, read_peak_rss_mib(worker)
    size = f"{len(body) / 2**20:.1f}"
    return (name, size, f"{usage:.2f}", f"{seconds:.2f}", f"{peak:.0f}", answer), usage, peak


def send_bodies(work: Path, *, short: bool) -> Table:
    """Send every body alone, on one worker under `strict` with a binding, and then some that could be kept."""
    (work / "policy.yaml").write_text(_POLICY)
    rows, slowest, highest = [], ("", 0.0), ("", 0.0)
    with (
        run_server(make_own_server("--policy", str(work / "policy.yaml")), work / "server") as server,
        measure_tree(server.pid) as usage,
    ):
        (worker,) = server.workers
        for name, make in BODIES.items():
            cells, seconds, peak = _send_body(server, name, make())
            rows.append(cells)
            slowest = max(slowest, (name, seconds), key=lambda one: one[1])
            highest = max(highest, (name, peak), key=lambda one: one[1])
        for number in range(_VERSIONS):
            version = b'"1.0.%d-' % number
            post(server, fill(make_candidate_update("request.object.spec.binaryVersion"), version, b"a", b'"'))
        time.sleep(2)
        Path(f"/proc/{worker}/clear_refs").write_text("5")
        memory = read_peak_rss_mib(worker)
        survived = server.workers == [worker]
    bars = (
        Bar(
            "a hostile body of up to 20 MiB: the worker's CPU time",
            f"<= {SECONDS:g} s",
            f"{slowest[1]:.2f} s ({slowest[0]})",
            slowest[1] <= SECONDS,
            of_load=True,
        ),
        Bar(
            "a hostile body of up to 20 MiB: peak RSS of the worker",
            f"<= {MEMORY_MIB} MiB",
            f"{highest[1]:.0f} MiB ({highest[0]})",
            highest[1] <= MEMORY_MIB,
        ),
        Bar(
            f"after {_VERSIONS} versions of 20 MiB and all bodies: RSS",
            "<= 100 MiB",
            f"{memory:.0f} MiB",
            memory <= 100,
        ),
        Bar("hostile bodies: the same worker afterwards", "yes", str(survived), survived),
    )
    notes = (
        "One body at a time. CPU time counts TLS as well; a busy machine adds to it and to the time of the answer.",
    )
    return Table("Hostile bodies", notes, HEADER, tuple(rows), bars, {}, usage.foreign_cores)
