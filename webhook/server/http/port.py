"""What all connections of one port share: its functions, guards and counters, and the bytes that are being read."""

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol

from webhook.server.http import memory, refusal_kinds
from webhook.server.http.guards import Guards
from webhook.server.http.known_heads import KnownHeads
from webhook.server.http.message import Head, HttpResponse, RefusedError
from webhook.server.http.state import BETWEEN, READING, State
from webhook.server.http.turns import Turns
from webhook.server.logs import LOG, LogThrottle

RETRY: Final = b"retry-after: 1\r\n"

SECONDS_BETWEEN_LINES: Final = 10
"""Between two log lines about bad requests; many of them must not cause as many lines."""


class Handlers(NamedTuple):
    """What a port does with requests. They must not wait or block.

    `accept` takes a head and the names in the client's certificate, and `accept_body` the size of a body in bytes, as
    far as it is known, and its beginning; both may raise RefusedError. `respond` takes head, body and the monotonic
    time of the first byte; it gives a future if the response is made off the event loop.
    """

    respond: Callable[[Head, bytes, float], HttpResponse | asyncio.Future[HttpResponse]]
    accept: Callable[[Head, frozenset[str]], None] = lambda _head, _names: None
    accept_body: Callable[[int, bytes | bytearray], None] = lambda _size, _beginning: None


class Counters(Protocol):
    """What is counted about requests that got no response of the port's own."""

    def refused(self, kind: str) -> None:
        """A refused request; `kind` is one of refusal_kinds.OF_CONNECTION."""

    def shed(self) -> None:
        """A request that was answered 503."""

    def closed_for_others(self) -> None:
        """A connection that was closed because there were too many."""


class SharedConnection(Protocol):
    """A connection as its port sees it."""

    state: State
    weight: int
    expires: float

    def expire(self) -> None:
        """Close it in some way, since `expires` has passed."""

    def abort(self) -> None:
        """Close it at once."""


class Port:
    """`bytes_in_flight` is kept by the connections. `idle_seconds` is how long a connection may wait for a request."""

    def __init__(self, handlers: Handlers, guards: Guards, counters: Counters) -> None:
        self.handlers = handlers
        self.accept, self.accept_body = handlers.accept, handlers.accept_body
        self.guards = guards
        self.bytes_in_flight = 0
        self.known_heads = KnownHeads()
        self.turns = Turns()
        self.has_freed_much = False
        self.is_draining = False
        self.idle_seconds = guards.keep_alive_seconds
        self._counters = counters
        self._connections: set[SharedConnection] = set()
        self._weight = 0
        self._throttle = LogThrottle(SECONDS_BETWEEN_LINES)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    @property
    def requests_in_flight(self) -> int:
        """How many requests have begun and are not whole."""
        return sum(one.state in READING for one in self._connections)

    def may_read(self, more: int = 0) -> bool:
        """Whether this many more bytes may be read in addition to those being read."""
        return self.bytes_in_flight + more <= self.guards.largest_bytes_in_flight

    def accept_size(self, size: int) -> None:
        """Raise RefusedError if a body of this many bytes is too large."""
        if size > self.guards.largest_body:
            raise RefusedError(413, "the body is too large")

    def check_bytes(self, more: int = 0) -> None:
        """Raise RefusedError if this many more bytes would be too many."""
        if not self.may_read(more):
            raise RefusedError(503, "too many bytes are being read", RETRY)

    def opened(self, connection: SharedConnection, weight: int) -> None:
        """Count a connection, or what it has grown by; above the limit the one that has been idle longest is closed."""
        self._connections.add(connection)
        connection.weight += weight
        self._weight += weight
        while self._weight > self.guards.largest_connections and self._connections:
            # `expires` is a fixed time after the last response, or after the first byte of a request.
            last = min(self._connections, key=lambda one: (one.state not in BETWEEN, one.expires))
            self.closed(last)
            self._counters.closed_for_others()
            last.abort()

    def closed(self, connection: SharedConnection) -> None:
        """Count a connection no more."""
        self._connections.discard(connection)
        self._weight -= connection.weight
        self.has_freed_much |= connection.weight > 1
        connection.weight = 0

    def close_expired(self, now: float) -> None:
        """Close every connection whose time has passed; a bug with one must not keep the others open."""
        for connection in [one for one in self._connections if now >= one.expires]:
            try:
                connection.expire()
            except Exception:  # noqa: BLE001 - whatever it is, the connection is closed
                LOG.exception("a connection that could not expire is aborted")
                connection.abort()

    def drain(self, now: float) -> None:
        """The server stops: answer one more request on each connection, then close it."""
        self.is_draining = True
        self.idle_seconds = self.guards.drain_seconds
        for connection in self._connections:
            connection.expires = min(connection.expires, now + self.guards.drain_seconds)

    def give_back(self) -> None:
        """Return freed memory to the system, if there is much."""
        if self.has_freed_much:
            self.has_freed_much = False
            memory.give_back()

    def count_refusal(self, refusal: RefusedError, client: object) -> None:
        """Count a refused request, and log it unless one was logged a moment ago."""
        status = refusal.response.status
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._counters.shed()
        else:
            self._counters.refused(refusal_kinds.OF_CONNECTION[status])
        silent = self._throttle.admit(time.monotonic())
        if silent is not None:
            fields = {"status": status, "reason": refusal.reason, "client": str(client), "more_since_last_line": silent}
            LOG.warning("bad request", extra={"fields": fields})
