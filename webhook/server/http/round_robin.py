"""Connections take turns, so that one with thousands of requests in a read does not keep the others waiting."""

import asyncio
import time
from collections import OrderedDict
from typing import Final, Protocol

PAUSE_SECONDS: Final = 0.002
"""Between two rounds. Those that wait get about half of the worker's time: a process that sleeps now and then is run
sooner by a busy kernel once a request comes."""
_ROUND_SECONDS: Final = 0.002
"""Given to all connections that wait, together, before the event loop looks at the others."""


class TurnTaker(Protocol):
    """A connection, as far as its turns go."""

    def take_turn(self) -> bool:
        """Read some of what waits; True if there is more."""


class RoundRobin:
    """Reads that hold more than a request: each connection reads a little, then the others are served.

    A read may be 256 KiB of pipelined requests, thousands of them. If they were answered in one go, no other connection
    of this event loop would get a response meanwhile.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[TurnTaker, None] = OrderedDict()
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: TurnTaker) -> None:
        """Serve a connection in turns until nothing of it waits."""
        self._waiting[connection] = None
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            loop.call_soon(self._serve, loop)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        # Not the loop's time, which does not advance within a round.
        until = time.monotonic() + _ROUND_SECONDS
        while self._waiting and time.monotonic() < until:
            connection, _ = self._waiting.popitem(last=False)
            if connection.take_turn():
                self._waiting[connection] = None
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            loop.call_later(PAUSE_SECONDS, self._serve, loop)
