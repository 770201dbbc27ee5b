"""Reduction of a history that breaks a law: it gets shorter while it still breaks the same law."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from lab.evidence.history import History

MAX_TRIES: Final = 400

Breaks = Callable[[History], bool]


def reduce_history(history: History, breaks: Breaks) -> History:
    """Return the shortest history found by removing runs of steps, then single mutations, until nothing more can go."""
    tries = MAX_TRIES
    while tries > 0:
        for shorter in _list_shorter(history):
            tries -= 1
            if tries < 0:
                return history
            if breaks(shorter):
                history = shorter
                break
        else:
            return history
    return history


def _list_shorter(history: History) -> Iterator[History]:
    """Yield candidates, the much shorter ones first; the first step stays, because it creates the lease."""
    steps = history.steps
    size = len(steps) // 2
    while size:
        for start in range(1, len(steps), size):
            yield replace(history, steps=steps[:start] + steps[start + size :])
        size //= 2
    for index, step in enumerate(steps):
        for position in range(len(step.forgeries)):
            forgeries = step.forgeries[:position] + step.forgeries[position + 1 :]
            yield replace(history, steps=(*steps[:index], replace(step, forgeries=forgeries), *steps[index + 1 :]))
