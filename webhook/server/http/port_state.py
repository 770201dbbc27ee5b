"""What all connections of one port share: the guards, the counters, known heads, and the bytes that are being read."""

import asyncio
import time
from typing import Final, Protocol

from webhook.server.http import memory
from webhook.server.http.known_heads import KnownHeads
from webhook.server.http.turns import Turns
from webhook.server.logs import LOG, Seldom
from webhook.server.observe.metrics import Metrics
from webhook.server.settings import Guards

COMPLAIN_EVERY: Final = 10
"""Seconds between two log lines about bad requests; a flood of them must not become a flood of lines."""


class Counted(Protocol):
    """A connection as it is counted; it is idle between two requests."""

    weight: int
    expires: float
    transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is being read or answered."""


class Load:
    """`bytes_in_flight` is kept by the connections."""

    def __init__(self, guards: Guards, metrics: Metrics) -> None:
        self.guards = guards
        self.metrics = metrics
        self.bytes_in_flight = 0
        self.known_heads = KnownHeads()
        self.turns = Turns()
        self.has_freed_much = False
        self._connections: set[Counted] = set()
        self._weight = 0
        self._seldom = Seldom(COMPLAIN_EVERY)

    def has_room(self, more: int = 0) -> bool:
        """Whether so many more bytes may be read beside those that are being read."""
        return self.bytes_in_flight + more <= self.guards.largest_bytes_in_flight

    def opened(self, connection: Counted, weight: int) -> None:
        """Count a connection, or what it has grown by; above the limit the one that has been idle longest is closed."""
        self._connections.add(connection)
        connection.weight += weight
        self._weight += weight
        while self._weight > self.guards.largest_connections and self._connections:
            # `expires` is a fixed time after the last answer, or after the first byte of a request.
            last = min(self._connections, key=lambda one: (not one.is_idle, one.expires))
            self.closed(last)
            self.metrics.closed_for_others()
            last.transport.abort()

    def closed(self, connection: Counted) -> None:
        """Count a connection no more."""
        self._connections.discard(connection)
        self._weight -= connection.weight
        self.has_freed_much |= connection.weight > 1
        connection.weight = 0

    def give_back(self) -> None:
        """Return freed memory to the system, if there is much."""
        if self.has_freed_much:
            self.has_freed_much = False
            memory.give_back()

    def complain(self, status: int, text: str, client: object) -> None:
        """Say in the log, now and then, that a client sends bad requests."""
        silent = self._seldom.admit(time.monotonic())
        if silent is not None:
            fields = {"status": status, "reason": text, "client": str(client), "more_since_last_line": silent}
            LOG.warning("bad request", extra={"fields": fields})
