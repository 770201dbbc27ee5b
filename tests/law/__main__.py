"""`make law`: play histories with us and without, and fail at the first law that a mode breaks.

A history that breaks one is made small and kept in tests/data/law, where `make test` plays it again.
"""

import argparse
import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tests.law.history import Broken, History, drawn, outcomes_without_us, play, shrunk
from tests.law.modes import MODES, Mode

DATA: Final = Path(__file__).parents[1] / "data" / "law"
HONEST: Final = ("create", "claim", "renewal", "takeover", "release")
_CHUNK: Final = 20


class Kept(Struct, frozen=True):
    """A history that broke a law in a mode once, and the planted defect that it shows, if it shows one."""

    mode: str
    law: str
    text: str
    history: History
    defect: str = ""


class Result(Struct, frozen=True):
    """What some histories came to: counts by mode, and the first that broke each law in each mode, with its seed."""

    counts: dict[str, Counter[str]]
    broken: tuple[tuple[int, Broken], ...]
    number: int


def played(seeds: Iterable[int], modes: Iterable[Mode] = MODES, *, in_turns: bool = False) -> Result:
    """Play the histories of these seeds in every mode, or each in one of them."""
    modes = tuple(modes)
    counts: dict[str, Counter[str]] = {mode.name: Counter() for mode in modes}
    first: dict[tuple[str, str], tuple[int, Broken]] = {}
    number = 0
    for seed in seeds:
        history = drawn(seed)
        alone = outcomes_without_us(history)
        number += 1
        for mode in modes[seed % len(modes) :][:1] if in_turns else modes:
            done = play(history, mode, alone=alone)
            counts[mode.name] += done.counts
            for failure in done.broken:
                first.setdefault((failure.mode, failure.law), (seed, failure))
    return Result(counts, tuple(first.values()), number)


def smallest(history: History, broken: Broken) -> History:
    """The history made small; it still breaks the same law in the same mode."""
    (mode,) = (one for one in MODES if one.name == broken.mode)
    return shrunk(history, partial(_is_broken, mode=mode, law=broken.law))


def _is_broken(history: History, mode: Mode, law: str) -> bool:
    return any(one.law == law for one in play(history, mode).broken)


def keep(history: History, broken: Broken) -> Path:
    """Keep a history in tests/data/law."""
    body = msgspec.json.format(msgspec.json.encode(Kept(broken.mode, broken.law, broken.text, history)), indent=1)
    DATA.mkdir(exist_ok=True)
    file = DATA / f"{hashlib.sha256(body).hexdigest()[:12]}.json"
    file.write_bytes(body + b"\n")
    return file


def main() -> int:
    """Play, print a row for each mode, and keep what broke a law."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="the first of the seeds")
    parser.add_argument("--in-turns", action="store_true", help="play each history in one of the modes, not in all")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    began = time.monotonic()
    seeds = range(options.seed, options.seed + options.histories)
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    counts: dict[str, Counter[str]] = {mode.name: Counter() for mode in MODES}
    broken: dict[tuple[str, str], tuple[int, Broken]] = {}
    with ProcessPoolExecutor(options.workers) as pool:
        for result in pool.map(partial(played, in_turns=options.in_turns), chunks):
            for mode, counted in result.counts.items():
                counts[mode] += counted
            for seed, failure in result.broken:
                broken.setdefault((failure.mode, failure.law), (seed, failure))
    print(f"{options.histories} histories from seed {options.seed} in {time.monotonic() - began:.0f} s")
    print(table(counts), end="")
    for seed, failure in broken.values():
        history = smallest(drawn(seed), failure)
        print(
            f"FAILED {failure.mode}, seed {seed}: {failure.law}\n  {failure.text}\n  kept in {keep(history, failure)}"
        )
    return int(bool(broken))


def table(counts: dict[str, Counter[str]]) -> str:
    """Honest writes by mode, and what strangers wrote."""
    rows = [f"| mode | {' | '.join(HONEST)} | of strangers: stored | refused |\n|---|{'--:|' * (len(HONEST) + 2)}\n"]
    for mode, counted in counts.items():
        cells = [f"{counted[f'{kind} stored']:,}" for kind in HONEST]
        cells += [f"{counted[f'a stranger{chr(39)}s write {how}']:,}" for how in ("stored", "refused")]
        rows.append(f"| {mode} | {' | '.join(cells)} |\n")
    return "".join(rows)


if __name__ == "__main__":
    sys.exit(main())
