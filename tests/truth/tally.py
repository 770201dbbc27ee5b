"""Counts what is true and false in the histories of some seeds, in two processes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

from msgspec import Struct, field

from tests.truth.completeness import count_losses
from tests.truth.draw import draw
from tests.truth.evaluation import COMMANDS, Evaluated, evaluate
from tests.truth.inputs import LISTS, Kind, input_of
from tests.truth.plans import Plan
from tests.truth.play import play
from tests.truth.predicates import NOT_PLAYED
from webhook.analysis.audit.leases import STORED_RULES
from webhook.analysis.claims.registry import KINDS

PROCESSES: Final = 2
_BATCH: Final = 10


class Tally(Struct):
    """How often each claim was true, false, or of no known meaning, by input; and where it was false first.

    `said` counts, by input, losses of a holder and what was said of them.
    """

    histories: Counter[str] = field(default_factory=Counter)
    claims: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    false: dict[tuple[str, str], list[tuple[int, str, str, str]]] = field(default_factory=dict)
    said: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, seed: int, kind: Kind, evaluated: Evaluated) -> None:
        """Count one claim."""
        outcome = "unknown" if evaluated.is_true is None else str(evaluated.is_true).lower()
        self.claims[evaluated.id, kind.value, outcome] += 1
        if evaluated.is_true is not True:
            examples = self.false.setdefault((evaluated.id, outcome), [])
            examples.append(
                (seed, kind.value, evaluated.command, evaluated.problem or str(evaluated.claim.get("text", "")))
            )

    def merge(self, other: "Tally") -> None:
        """Add another one."""
        self.histories += other.histories
        self.claims += other.claims
        for key, examples in other.false.items():
            self.false.setdefault(key, []).extend(examples)
        for kind, counts in other.said.items():
            self.said.setdefault(kind, Counter()).update(counts)

    def count(self, outcome: str) -> int:
        """Return how many claims had an outcome."""
        return sum(number for (_, _, what), number in self.claims.items() if what == outcome)

    def vacuous(self) -> list[str]:
        """Return the kinds of claims that were made of no history."""
        return sorted(KINDS.keys() - {claim for claim, _, _ in self.claims} - STORED_RULES.keys() - NOT_PLAYED)

    def count_input(self, kind: str) -> Counter[str]:
        """Return how many claims from one kind of input had each outcome."""
        counts: Counter[str] = Counter()
        for (_, kind_of_input, outcome), number in self.claims.items():
            counts[outcome] += number if kind_of_input == kind else 0
        return counts

    def count_claim(self, claim: str) -> Counter[str]:
        """Return how many claims of one kind had each outcome."""
        counts: Counter[str] = Counter()
        for (kind_of_claim, _, outcome), number in self.claims.items():
            counts[outcome] += number if kind_of_claim == claim else 0
        return counts


def tally_of(seeds: Sequence[int], kinds: Sequence[Kind], commands: Sequence[str] = COMMANDS) -> Tally:
    """Return what is true and false in the histories of some seeds."""
    tally = Tally()
    for seed in seeds:
        history = play(draw(seed))
        for kind in kinds:
            given = input_of(history, kind)
            if given is None:
                continue
            tally.histories[kind.value] += 1
            evaluated = list(evaluate(history, given, commands))
            for evaluation in evaluated:
                tally.add(seed, kind, evaluation)
            if kind not in LISTS:
                losses = count_losses(history, given, (one for one in evaluated if one.command == "why"))
                tally.said.setdefault(kind.value, Counter()).update(losses)
    return tally


def run(first: int, count: int, kinds: Sequence[Kind], commands: Sequence[str] = COMMANDS) -> Tally:
    """Evaluate the histories of so many seeds, in two processes."""
    seeds = range(first, first + count)
    batches = [seeds[at : at + _BATCH] for at in range(0, count, _BATCH)]
    tally = Tally()
    with ProcessPoolExecutor(PROCESSES) as pool:
        for part in pool.map(partial(tally_of, kinds=kinds, commands=commands), batches):
            tally.merge(part)
    return tally


def is_false_in(plan: Plan, kind: Kind, command: str, claim: str) -> bool:
    """Return whether a command makes a false claim of a kind when it reads the history of a plan."""
    return any(True for _ in false_in(plan, kind, command, claim))


def false_in(plan: Plan, kind: Kind, command: str, claim: str) -> Iterator[Evaluated]:
    """Yield the false claims of a kind."""
    history = play(plan)
    given = input_of(history, kind)
    if given is not None:
        evaluated = evaluate(history, given, (command,))
        yield from (one for one in evaluated if one.id == claim and one.is_true is not True)
