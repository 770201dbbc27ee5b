"""`make e2e`: prove the webhook on real API servers, print a table, write RESULTS.md. Exit 1 when anything fails."""

import argparse
import concurrent.futures
import datetime as dt
import os
import platform
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.e2e import (
    item1_manifests,
    item2_kubectl,
    item3_elections,
    item4_outage,
    item5_counts,
    item6_rotation,
    item7_audit,
    item8_cost,
)
from tests.e2e.control_plane import ControlPlane
from tests.e2e.table import render
from tests.e2e.toolchain import Binaries, MissingToolchainError, all_binaries
from tests.e2e.world import Row, World

RESULTS = Path(__file__).parent / "RESULTS.md"
ITEMS: dict[int, Callable[[World], Iterator[Row]]] = {
    1: item1_manifests.run,
    2: item2_kubectl.run,
    3: item3_elections.run,
    4: item4_outage.run,
    5: item5_counts.run,
    6: item6_rotation.run,
    7: item7_audit.run,
    8: item8_cost.run,
}
PHASES = (((1,),), ((4,), (6,)), ((2, 5, 7), (3,)), ((8,),))
"""Phases follow each other, groups of a phase run side by side. The outage and the rotations take three minutes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, or the chosen items. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e", description=__doc__)
    parser.add_argument("--items", type=int, nargs="*", default=sorted(ITEMS), help="only these (1 always runs)")
    parser.add_argument("--kubernetes", default="", help="only versions that begin so, for example v1.36")
    parser.add_argument("--required", action="store_true", help="fail, and do not skip, where Go is missing")
    parser.add_argument("--keep", type=Path, help="keep logs in this directory")
    options = parser.parse_args(arguments)
    # Ended from outside, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        binaries = [entry for entry in all_binaries() if entry.version.startswith(options.kubernetes)]
    except MissingToolchainError as missing:
        if options.required:
            print(f"FAILED: {missing}", file=sys.stderr)
            return 1
        print(f"\n*** SKIPPED, nothing was proven: {missing} ***\n", file=sys.stderr)
        return 0
    begin = dt.datetime.now(dt.UTC)
    rows: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory(prefix="lease-webhook-e2e-") as temporary:
        for entry in binaries:
            directory = (options.keep or Path(temporary)) / entry.version
            rows[entry.version] = _prove(entry, directory.absolute(), {1, *options.items})
    minutes = (dt.datetime.now(dt.UTC) - begin).total_seconds() / 60
    table = render(rows)
    print(table)
    if set(options.items) == set(ITEMS) and len(rows) > 1:
        RESULTS.write_text(_report(binaries, table, minutes))
    return 0 if all(row.passed for entries in rows.values() for row in entries) else 1


def _prove(binaries: Binaries, directory: Path, chosen: set[int]) -> list[Row]:
    directory.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with ControlPlane(binaries, directory) as plane:
        world = World(plane)
        for phase in PHASES:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                groups = [[item for item in group if item in chosen] for group in phase]
                for found in pool.map(lambda group: [row for item in group for row in _item(world, item)], groups):
                    rows += found
    return sorted(rows, key=lambda row: row.item)


def _item(world: World, item: int) -> list[Row]:
    """All rows of one item. What it raises is a failed row, so that the other items still speak."""
    rows: list[Row] = []
    begin = dt.datetime.now(dt.UTC)
    try:
        for row in ITEMS[item](world):
            mark = "ok" if row.passed else "FAILED"
            print(f"{world.plane.binaries.version} {item} {mark}: {row.claim}: {row.seen}", file=sys.stderr, flush=True)
            rows.append(row)
    except Exception as error:  # noqa: BLE001 - any failure is a row, and the command fails
        traceback.print_exc()
        rows.append(Row(item, "runs to its end", f"{type(error).__name__}: {error}".splitlines()[0], passed=False))
    seconds = (dt.datetime.now(dt.UTC) - begin).total_seconds()
    print(f"{world.plane.binaries.version} {item} took {seconds:.0f} s", file=sys.stderr, flush=True)
    return rows


def _report(binaries: Sequence[Binaries], table: str, minutes: float) -> str:
    versions = ", ".join(f"kube-apiserver {entry.version} with client-go {entry.client_go}" for entry in binaries)
    return (
        "# Proven on real API servers\n\n"
        f"Made by `make e2e` on {dt.datetime.now(dt.UTC):%Y-%m-%d} in {minutes:.0f} minutes, after the builds.\n"
        f"{versions}; kubectl {binaries[0].version}, kubernetes_asyncio {binaries[0].kubernetes_asyncio}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores.\n"
        "Items 4 and 6 ran side by side on a busy machine: compare times within an item only.\n\n"
        f"{table}"
    )


if __name__ == "__main__":
    sys.exit(main())
