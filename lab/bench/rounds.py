"""Rounds on a machine that others use as well: noisy ones are repeated, chosen by the noise and never by the result."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")
QUIET_CORES: Final = 0.25
"""Foreign load up to which a round counts as quiet."""
TRIES: Final = 2
"""How many times more rounds are run, at most, to find enough quiet ones."""


class Round(Struct, Generic[T]):
    """The result of one round, and the number of cores that other programs kept busy at its worst moment."""

    foreign_cores: float
    result: T


class Rounds(Struct, Generic[T]):
    """The quietest rounds, in the order in which they ran; `count` is the number of all."""

    quietest: list[Round[T]]
    count: int

    @property
    def results(self) -> list[T]:
        """Results of the quietest rounds."""
        return [one.result for one in self.quietest]

    @property
    def foreign_cores(self) -> float:
        """Foreign cores of the noisiest of the quietest rounds."""
        return max(one.foreign_cores for one in self.quietest)

    @property
    def explanation(self) -> str:
        """Choice of the rounds, as a sentence."""
        return f"The {len(self.quietest)} quietest of {self.count} rounds, by the CPU that other programs used."


def run_quietest(one_round: Callable[[int], Round[T]], count: int) -> Rounds[T]:
    """Run rounds until `count` were quiet, or enough were tried; keep the `count` quietest.

    `one_round` gets the number of the round, so that it can turn the order of the servers around.
    """
    rounds: list[Round[T]] = []
    while len(rounds) < count * TRIES and sum(1 for one in rounds if one.foreign_cores <= QUIET_CORES) < count:
        rounds.append(one_round(len(rounds)))
    limit = sorted(one.foreign_cores for one in rounds)[count - 1]
    return Rounds([one for one in rounds if one.foreign_cores <= limit][:count], len(rounds))
