"""A history as data: its beginning, and steps that each draw their own details.

A step that is taken out leaves the others as they are, so a history that breaks a law can be made shorter.
"""

from random import Random
from typing import Final

from msgspec import Struct


class Forgery(Struct, frozen=True):
    """One mutation of the list that an attacker sends."""

    mutation: str
    seed: int


class Step(Struct, frozen=True):
    """One action of somebody, after some time."""

    action: str
    seed: int
    forgeries: tuple[Forgery, ...] = ()


class History(Struct, frozen=True):
    """A drawn history. `seed` fixes the clocks and the electors; `far` puts the webhook's clock off by up to an hour.

    `stamps`: the API server stamps writers from the beginning. `listed`: the policy says so.
    """

    seed: int
    steps: tuple[Step, ...]
    attacked: bool = False
    far: bool = False
    stamps: bool = False
    listed: bool = False


SEEDS: Final = 1 << 62


def draw_seed(random: Random) -> int:
    """Return a seed for a step or a mutation."""
    return random.randrange(SEEDS)
