"""Plays histories, has the commands read them, and prints which claims are false: `make truth`.

Two processes play; each history is read in every kind of input. What is false is shrunk and written as a plan, which
`--plan FILE` plays again and shows.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.truth.draw import draw
from tests.truth.evaluation import CLAIMING, COMMANDS, evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.page import PAGE, page
from tests.truth.plans import Plan, from_json, to_json
from tests.truth.play import play
from tests.truth.shrink import shrink
from tests.truth.tally import Tally, false_in, is_false_in, run


def _print_tally(tally: Tally) -> None:
    by_claim: dict[str, Counter[str]] = defaultdict(Counter)
    for (claim, _, outcome), number in tally.claims.items():
        by_claim[claim][outcome] += number
    print(f"{'claim':<28}{'true':>9}{'false':>7}{'?':>5}")
    for claim, outcomes in sorted(by_claim.items(), key=lambda item: (-item[1]["false"], item[0])):
        print(f"{claim:<28}{outcomes['true']:>9}{outcomes['false']:>7}{outcomes['unknown']:>5}")
    print(f"of no history: {', '.join(tally.vacuous())}")
    histories = ", ".join(f"{kind} {number}" for kind, number in sorted(tally.histories.items()))
    print(f"histories: {histories}")
    for (claim, outcome), examples in sorted(tally.false.items()):
        seeds = sorted({seed for seed, *_ in examples})
        print(f"{outcome}: {claim} in {len(seeds)} histories: {', '.join(map(str, seeds[:8]))}")
    print(f"{tally.count('true')} true, {tally.count('false')} false, {tally.count('unknown')} unknown")


def _store_false(tally: Tally, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for (claim, outcome), examples in sorted(tally.false.items(), key=lambda item: -len(item[1])):
        if outcome != "false":
            continue
        seed, kind, command, _ = examples[0]
        small = shrink(draw(seed), partial(is_false_in, kind=Kind(kind), command=command, claim=claim))
        path = folder / f"{claim}-{seed}.json"
        path.write_bytes(to_json(small))
        print(f"\n## {claim}: {len(examples)} times; {kind}, {command}, {path}")
        for evaluated in false_in(small, Kind(kind), command, claim):
            print(f"   {json.dumps(evaluated.claim)}")


def show(plan: Plan) -> Iterator[str]:
    """Yield what happened in a history, in the order of time."""
    history = play(plan)

    def at(instant: int) -> str:
        return f"{(instant - history.begin) / 1_000_000:8.3f}"

    for process in history.processes:
        works = ", ".join(f"{at(one.begin)} to {at(min(one.end, history.end))}" for one in process.works)
        who = f"{process.role}, {process.identity or '-'}, uid {process.uid or '-'}"
        yield f"{process.name} ({who}) leads: {works or '-'}"
    for fault in plan.faults:
        yield f"{fault.at / 1000:8.3f} for {fault.length / 1000} s: {fault.kind} {fault.target} {fault.amount or ''}"
    before: Any = None
    for request in history.requests:
        if request.verb == "get" and request.code == 200:
            continue
        spec = request.after.lease.spec if request.after and request.after.lease else None
        kept = (request.process, request.verb, request.code, spec and (spec.holder, spec.duration, spec.preferred))
        if kept == before:
            continue
        before = kept
        text = (
            spec and f"{spec.holder!r} for {spec.duration} s{f', preferred {spec.preferred}' if spec.preferred else ''}"
        )
        why = request.refused.by if request.refused else ""
        target = f"{request.namespace}/{request.name}"
        yield f"{at(request.answered)} {request.process} {request.verb} {target} {request.code} {why} {text or ''}"


def main() -> int:
    """Return 1 if a command fails, or a claim is false or has no known meaning.

    What timelines and tables show beside claims is counted: of the stored histories, none of it may be false.
    """
    parser = argparse.ArgumentParser(prog="make truth", description=__doc__)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=200, help="how many histories")
    parser.add_argument("--input", action="append", help="a kind of input; default: all")
    parser.add_argument("--command", action="append", help="a command; default: all")
    parser.add_argument("--store", type=Path, help="shrink what is false, and write plans into this folder")
    parser.add_argument("--results", action="store_true", help="write docs/claims-figures.md")
    parser.add_argument("--plan", type=Path, help="show one stored plan, and what is false in it")
    given = parser.parse_args()
    kinds = [Kind(one) for one in given.input or [*Kind]]
    commands = given.command or COMMANDS
    if given.plan:
        plan = from_json(given.plan.read_bytes())
        print("\n".join(show(plan)))
        history = play(plan)
        for kind in kinds:
            read = input_of(history, kind)
            for evaluated in evaluate(history, read, commands) if read else ():
                if evaluated.is_true is not True:
                    print(f"{kind}, {evaluated.command}: {evaluated.is_true} {json.dumps(evaluated.claim)}")
        return 0
    tally = run(given.first, given.count, kinds, commands)
    _print_tally(tally)
    if given.results:
        PAGE.write_text(page(tally, given.first, given.count))
    if given.store:
        _store_false(tally, given.store)
    return int(any(command in CLAIMING for found in tally.false.values() for _, _, command, _ in found))


if __name__ == "__main__":
    sys.exit(main())
