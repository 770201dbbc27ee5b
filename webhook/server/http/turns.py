"""Reads that hold more than a request: each connection reads a little, then it is the turn of the others.

A read may be 256 KiB of pipelined requests, thousands of them. If they were answered in one go, no other connection of
this event loop would get a response meanwhile.
"""

import asyncio
import time
from collections import OrderedDict
from typing import Final, Protocol

STEP: Final = 1024
"""Bytes that are parsed at once at most, but for a body whose length is known: 200 headers or 170 chunks."""

BYTES_A_TURN: Final = 4096
"""Bytes of a large head, or of chunks, that are parsed before the others get their turn: at most 1 ms of work."""

TURN_SECONDS: Final = 0.002
"""How long all connections that wait are served together before the event loop looks at the others."""

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
        self._waiting: OrderedDict[Waiting, None] = OrderedDict()
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    def queue(self, connection: Waiting) -> None:
        """Give a connection its turns until it has none left."""
        self._waiting[connection] = None
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            loop.call_soon(self._serve, loop)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        # Not the loop's time, which does not advance within a turn.
        until = time.monotonic() + TURN_SECONDS
        while self._waiting and time.monotonic() < until:
            connection, _ = self._waiting.popitem(last=False)
            if connection.take_turn():
                self._waiting[connection] = None
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            loop.call_later(PAUSE_SECONDS, self._serve, loop)
