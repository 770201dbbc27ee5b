"""Reads that hold more than a request: each connection parses a little, then it is the turn of the others.

A read may be 256 KiB of pipelined requests, thousands of them. While they were answered in one go, nobody else on this
loop would get an answer.
"""

import asyncio
import time
from collections import deque
from typing import Final, Protocol

STEP: Final = 256
"""Bytes that are parsed at once where requests may follow each other; the smallest request has 27."""

STEP_OF_CHUNKS: Final = 1024
"""The same within a body whose length is not known; the smallest chunk has 6."""

STEPS_SECONDS: Final = 0.001
"""How long one connection may parse without an answer before the others get their turn: a large head, or chunks."""

TURN_SECONDS: Final = 0.002
"""How long all connections that wait are served together before the loop looks at the others."""

PAUSE_SECONDS: Final = 0.002
"""Between two turns. Those that wait get about half of the worker's time: a process that sleeps now and then is run
sooner by a busy kernel once a request comes."""


class Waiting(Protocol):
    """A connection with bytes that are not parsed yet."""

    def take_turn(self) -> bool:
        """Parse a little; whether there is more."""


class Turns:
    """Those of one port that wait, served round robin."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    def queue(self, connection: Waiting, loop: asyncio.AbstractEventLoop) -> None:
        """Give a connection its turns until it has none left."""
        self._waiting.append(connection)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._serve, loop)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        # Not the loop's time, which stands still within a turn.
        until = time.monotonic() + TURN_SECONDS
        while self._waiting and time.monotonic() < until:
            connection = self._waiting.popleft()
            if connection.take_turn():
                self._waiting.append(connection)
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            loop.call_later(PAUSE_SECONDS, self._serve, loop)
