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
    """The quietest rounds, in the order in which they ran; `run` counts all."""

    kept: list[Round[T]]
    run: int

    @property
    def results(self) -> list[T]:
        """Results of the kept rounds."""
        return [one.result for one in self.kept]

    @property
    def foreign_cores(self) -> float:
        """Foreign cores of the noisiest kept round."""
        return max(one.foreign_cores for one in self.kept)

    @property
    def explanation(self) -> str:
        """Choice of the rounds, as a sentence."""
        return f"The {len(self.kept)} quietest of {self.run} rounds, by the CPU that other programs used."


def run_quietest(one_round: Callable[[int], Round[T]], wanted: int) -> Rounds[T]:
    """Run rounds until `wanted` were quiet, or enough were tried; keep the `wanted` quietest.

    `one_round` gets the number of the round, so that it can turn the order of the servers around.
    """
    ran: list[Round[T]] = []
    while len(ran) < wanted * TRIES and sum(1 for one in ran if one.foreign_cores <= QUIET_CORES) < wanted:
        ran.append(one_round(len(ran)))
    limit = sorted(one.foreign_cores for one in ran)[wanted - 1]
    return Rounds([one for one in ran if one.foreign_cores <= limit][:wanted], len(ran))
