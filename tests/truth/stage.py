"""The time of a history: what happens when, and actors that wait, ask and are killed, paused and slowed down.

What an actor does is a generator. It yields `Wait`, which resumes it after a time, or a call to an API server, which
resumes it with the answer, or with None when its patience has ended or the connection failed.
"""

import heapq
from collections.abc import Callable, Generator
from typing import Any, Final

from msgspec import Struct

MILLISECOND: Final = 1000
SECOND: Final = 1_000_000


class Wait(Struct, frozen=True):
    """Go on after so many microseconds."""

    micros: int


Script = Generator[Any, Any, None]


class Agenda:
    """What is going to happen, in the order of time and, at one instant, in the order in which it was planned."""

    def __init__(self, now: int) -> None:
        self.now = now
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    def plan(self, instant: int, what: Callable[[], None]) -> None:
        """Plan something; what lies in the past happens next."""
        self._number += 1
        heapq.heappush(self._waiting, (max(instant, self.now), self._number, what))

    def run_until(self, end: int) -> None:
        """Let everything happen until then."""
        while self._waiting and self._waiting[0][0] <= end:
            self.now, _, what = heapq.heappop(self._waiting)
            what()
        self.now = end


class Actor:
    """A process that follows a script. `ask` sends a call: it gets the actor, the call, and what to do with the answer.

    A paused actor goes on when it is resumed; what came meanwhile comes then. `slowness` multiplies its waits.
    """

    def __init__(self, agenda: Agenda, ask: Callable[["Actor", Any, Callable[[Any], None]], None]) -> None:
        self.agenda = agenda
        self.is_alive = True
        self.slowness = 1
        self._ask = ask
        self._script: Script | None = None
        self._turn = 0
        self._is_stopped = False
        self._kept: list[Callable[[], None]] = []

    def follow(self, script: Script) -> None:
        """Follow a script from now on; what the one before waits for is forgotten."""
        if self._script is not None:
            self._script.close()
        self._script = script
        self._turn += 1
        self._next(self._turn, None)

    def kill(self) -> None:
        """End it; nothing of it happens any more."""
        self.is_alive = False
        self._turn += 1
        if self._script is not None:
            self._script.close()
        self._script = None

    def pause(self) -> None:
        """Keep whatever comes until it is resumed."""
        self._is_stopped = True

    def resume(self) -> None:
        """Let what was kept happen."""
        self._is_stopped = False
        kept, self._kept = self._kept, []
        for call in kept:
            call()

    def _next(self, turn: int, value: Any) -> None:
        if turn != self._turn or self._script is None:
            return
        if self._is_stopped:
            self._kept.append(lambda: self._next(turn, value))
            return
        try:
            wanted = self._script.send(value)
        except StopIteration:
            self._script = None
            return
        self._turn = turn = turn + 1
        if isinstance(wanted, Wait):
            self.agenda.plan(self.agenda.now + wanted.micros * self.slowness, lambda: self._next(turn, None))
        else:
            self._ask(self, wanted, lambda answer: self._next(turn, answer))
