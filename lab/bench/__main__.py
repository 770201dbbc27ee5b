"""`python -m lab.bench`: measure, print the tables, write RESULTS.md, the plots and a part of docs/figures.md."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from lab.bench import results, toolchain
from lab.bench.table import Bar, Table
from lab.bench.tables import correctness, cpu, growth, kinds, layers, open_loop
from tools.circumstances import find_circumstances


class Measurement(Protocol):
    """A function that returns one table; `work` is an empty directory, `short` asks for a run of seconds."""

    def __call__(self, work: Path, *, short: bool) -> Table: ...


TABLES: dict[str, Measurement] = {
    "kinds": kinds.measure_beside_controller_runtime,
    "by-layer": kinds.measure_layers,
    "cluster": kinds.make_cluster_table,
    "cpu": cpu.run,
    "open-loop": open_loop.run,
    "pure": layers.measure_pure_function,
    "layers": layers.sample_worker,
    "growth-review": growth.measure_reviews,
    "growth-policy": growth.measure_policies,
    "growth-workers": growth.measure_workers,
    "mixed": correctness.check_mixed,
    "large": correctness.check_large_beside_small,
    "kills": correctness.check_kills,
}


def measure(tables: dict[str, Measurement], only: list[str], command: str, *, short: bool) -> dict[str, Table]:
    """Run the measurements and print each table as soon as it is complete."""
    results_by_name = {}
    for key, run in tables.items():
        if only and key not in only:
            continue
        print(f"{key} ...", file=sys.stderr, flush=True)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="lease-webhook-") as work:
            table = run(Path(work), short=short)
        results_by_name[key] = msgspec.structs.replace(
            table,
            seconds=round(time.monotonic() - began, 1),
            command=f"{command} --only {key}",
            circumstances=find_circumstances(),
        )
        print("\n" + results.format_table(results_by_name[key]), flush=True)
    return results_by_name


def run_program(
    prog: str, tables: dict[str, Measurement], publish: Callable[[dict[str, Table]], None], *, strict: bool
) -> int:
    """Run the command line that the benchmark and the fault program share.

    `strict`: a missed bar is exit code 1; otherwise only one of answers is. A short run, on any machine, checks no bar
    of the load.
    `publish` writes the results of a full run to the docs.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=sys.modules["__main__"].__doc__)
    parser.add_argument("--short", action="store_true", help="seconds instead of minutes; prints, writes nothing")
    parser.add_argument("--only", action="append", choices=tables, default=[], help="this table only; may be repeated")
    arguments = parser.parse_args()
    try:
        toolchain.build_go_program("loader")
    except toolchain.MissingError as reason:
        print(f"the load generator cannot be built: {reason}", file=sys.stderr)
        return 2
    short = arguments.short
    results_by_name = measure(tables, arguments.only, f"python -m {prog}", short=short)
    print("\n" + results.format_bars(results_by_name))
    if not short:
        publish(results_by_name)
    bars = [bar for table in results_by_name.values() for bar in table.bars]
    return int(has_missed(bars, strict=strict, short=short))


def has_missed(bars: Sequence[Bar], *, strict: bool, short: bool) -> bool:
    """Return whether a bar was missed that decides the exit code."""
    return any((strict or bar.of_answers) and not (bar.of_load and short) for bar in bars if not bar.met)


if __name__ == "__main__":
    sys.exit(run_program("lab.bench", TABLES, results.publish_bench, strict=False))
