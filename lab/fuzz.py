"""`make fuzz`: hundreds of thousands of plays on a port, drawn at random: `python -m lab.fuzz --count N`.

Hypothesis draws a few hundred for each change and makes what fails small; this covers the ground. What a number stands
for follows from the seed, so `--only NUMBER` plays one again.
"""

import argparse
import asyncio
import itertools
import random
import time
from collections.abc import Iterable
from typing import Final

from tests.server.plays import ACTIONS, MESSAGES, Play, heard_in_pieces, quiet, run

DEFAULT: Final = 200_000
BATCH: Final = 1000
"""Plays in one event loop."""


def draw_stream(draw: random.Random) -> bytes:
    """Return some messages in a row, half of the time with bytes changed, added or lost."""
    data = bytearray(b"".join(draw.choices(MESSAGES, k=draw.randint(1, 5))))
    for _ in range(draw.choice((0, 0, 0, 1, 2, 8))):
        at = draw.randint(0, len(data))
        data[at : at + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
    return bytes(data)


def draw_pieces(draw: random.Random, data: bytes) -> list[bytes]:
    """Return the bytes in reads of any sizes: cut at some places, and byte by byte around one."""
    cuts = {0, len(data), *(draw.randint(0, len(data)) for _ in range(draw.choice((0, 1, 3, 20))))}
    if draw.random() < 0.5:
        at = draw.randint(0, len(data))
        cuts.update(range(at, min(at + draw.randint(1, 20), len(data))))
    return [data[start:end] for start, end in itertools.pairwise(sorted(cuts))]


def draw_play(draw: random.Random) -> Play:
    """Return reads, and between some of them other events."""
    play: Play = []
    seldom = draw.choice((0.02, 0.2, 0.7))
    for _ in range(draw.randint(1, 3)):
        for piece in draw_pieces(draw, draw_stream(draw)):
            play.append(piece)
            while draw.random() < seldom:
                play.append(draw.choice(ACTIONS))
    return play


async def play_number(seed: int, number: int) -> None:
    """Run one play; an AssertionError says what did not hold."""
    draw = random.Random(f"{seed}/{number}")
    if number % 4:
        await run(draw_play(draw))
        return
    data = draw_stream(draw)
    assert await heard_in_pieces(draw_pieces(draw, data)) == await heard_in_pieces([data]), "cuts change the responses"


def fuzz(seed: int, numbers: Iterable[int]) -> int:
    """Play these numbers; return how many there were."""

    async def play_all(batch: list[int]) -> None:
        for number in batch:
            try:
                await play_number(seed, number)
            except BaseException as error:
                error.add_note(f"play again: python -m lab.fuzz --seed {seed} --only {number}")
                raise

    listed = list(numbers)
    with quiet():
        for start in range(0, len(listed), BATCH):
            asyncio.run(play_all(listed[start : start + BATCH]))
    return len(listed)


def main() -> None:
    """Play, and print the number of plays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=DEFAULT)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", type=int, help="one number")
    options = parser.parse_args()
    began = time.monotonic()
    print(f"seed {options.seed}", flush=True)
    count = fuzz(options.seed, range(options.count) if options.only is None else [options.only])
    print(f"{count} plays on a port in {time.monotonic() - began:.0f} s: all promises held")


if __name__ == "__main__":
    main()
