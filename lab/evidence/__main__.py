"""`make evidence`: new writes through the API server's field manager, each reviewed, each checked by the laws."""

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from lab.evidence.field_manager import FieldManager
from lab.evidence.history import History
from lab.evidence.play import CATEGORIES, Category, draw, play
from lab.evidence.recorded import REPRODUCED, count_reproduced
from lab.evidence.reduction import reduce_history
from lab.evidence.tally import WRITES, count_rows, render_table
from lab.evidence.toolchain import build_field_manager
from tests.evidence import reviews
from tests.evidence.cases import FOLDER, store
from tests.evidence.records import Record
from tools.circumstances import find_circumstances

RESULTS: Final = Path(__file__).parent / "RESULTS.md"
STORED: Final = 3
"""Broken histories that one run of a category reduces and stores; all of them are counted."""
WIDEST: Final = 5
"""Categories in one table: more columns do not fit the width of a page on GitHub."""


class Run(Struct, frozen=True):
    """The results of one category with one seed."""

    category: str
    seed: int
    count: Counter[str]
    stored: tuple[str, ...]


def run(category: Category, seed: int, writes: int, program: Path, folder: Path) -> Run:
    """Play fresh histories until at least `writes` writes were made."""
    random = Random(f"{seed} {category.name}")
    count: Counter[str] = Counter()
    stored: list[str] = []
    with FieldManager(program) as manager:
        while count[WRITES] < writes:
            history = draw(category, random)
            game = play(history, manager, reviews.evaluate)
            count += count_rows(game.records, game.law)
            if game.law and len(stored) < STORED:
                stored.append(str(store(game.law, reduce_records(history, game.law, manager), folder)))
    return Run(category.name, seed, count, tuple(stored))


def reduce_records(history: History, law: str, manager: FieldManager) -> tuple[Record, ...]:
    """Return the records of the shortest history that breaks the same law."""
    shortest = reduce_history(history, lambda shorter: play(shorter, manager, reviews.evaluate).law == law)
    return play(shortest, manager, reviews.evaluate).records


def main() -> int:
    """Run the categories, print the table, and store histories that broke a law; return 1 if there was one."""
    options = _parse_options()
    program = build_field_manager()
    categories = [one for one in CATEGORIES if not options.only or one.name in options.only]
    print(
        f"seeds {' '.join(map(str, options.seeds))}, {options.count} writes in each of {len(categories)} categories",
        flush=True,
    )
    began = time.monotonic()
    jobs = [(one, seed) for one in categories for seed in options.seeds]
    share = options.count // len(options.seeds)
    with FieldManager(program) as manager:
        same, updates = count_reproduced(manager)
    sentence = f"{same} of {updates} recorded updates come out of the field manager as kube-apiserver stored them"
    print(sentence, flush=True)
    with ProcessPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        futures = [pool.submit(run, one, seed, share, program, options.into) for one, seed in jobs]
        runs = [_show(future.result()) for future in futures]
    counts = [(one.name, _add_counts(found for found in runs if found.category == one.name)) for one in categories]
    tables = [render_table(counts[start : start + WIDEST]) for start in range(0, len(counts), WIDEST)]
    print("\n\n".join(tables))
    print(f"{time.monotonic() - began:.0f} s")
    if options.results:
        RESULTS.write_text(_render_page(options.seeds, categories, sentence, tables))
    stored = [file for found in runs for file in found.stored]
    for file in stored:
        print(f"a law is broken: {file}", file=sys.stderr)
    if same < REPRODUCED:
        print(
            f"the field manager must make {REPRODUCED} recorded updates as recorded, and makes {same}", file=sys.stderr
        )
    return 1 if stored or same < REPRODUCED else 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.evidence", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", help="of the histories; fresh ones are drawn without it")
    parser.add_argument("--count", type=int, help="writes in each category, over all seeds")
    parser.add_argument("--short", action="store_true", help="fewer writes, for one or two minutes")
    parser.add_argument("--only", nargs="*", choices=[one.name for one in CATEGORIES], help="these categories alone")
    parser.add_argument("--results", action="store_true", help=f"write the table to {RESULTS.name}")
    parser.add_argument("--into", type=Path, default=FOLDER, help="where histories that break a law are stored")
    options = parser.parse_args()
    options.seeds = options.seeds or [secrets.randbelow(1_000_000) for _ in range(1 if options.short else 2)]
    options.count = options.count or (4000 if options.short else 30_000)
    return options


def _show(result: Run) -> Run:
    print(f"{result.category}, seed {result.seed}: {result.count[WRITES]:,} writes", flush=True)
    return result


def _add_counts(runs: Iterable[Run]) -> Counter[str]:
    total: Counter[str] = Counter()
    for run in runs:
        total += run.count
    return total


def _render_page(seeds: list[int], categories: list[Category], sentence: str, tables: list[str]) -> str:
    says = [f"- {one.name}: {one.says}" for one in categories]
    return "\n".join(
        [
            "# What managedFields prove, tried on the API server's field manager",
            "",
            "Written by `make evidence`. Each write is made by the field manager of apimachinery v0.36.3, sent if the",
            "shipped matchConditions send it, reviewed under `strict` with nobody exempt, and stored if it is allowed.",
            f"{sentence}.",
            f"Seeds {', '.join(map(str, seeds))}. Made {find_circumstances()}.",
            "",
            *says,
            "",
            "\n\n".join(tables),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
