"""What all connections of one port share: its guards, known heads, turns, and the bytes in flight."""

import asyncio
import ctypes
import functools
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol

from webhook.server.http.known_heads import KnownHeads
from webhook.server.http.message import REFUSAL_KINDS, Head, HttpResponse, RefusedError, Request
from webhook.server.http.round_robin import RoundRobin, TurnTaker
from webhook.server.http.state import CLOSING, DISCARDING, IDLE, IN_REQUEST, State
from webhook.server.http.stream import Stream
from webhook.server.logs import LOG, LogThrottle
from webhook.server.settings import Guards

_SECONDS_BETWEEN_LINES: Final = 10
"""Between two log lines about bad requests; many of them must not cause as many lines."""

_SECONDS_TO_SEND: Final = 1.0
"""In which an API server sends its whole review, from its handshake or its first byte on: that takes milliseconds."""


Response = HttpResponse | asyncio.Future[HttpResponse | Stream]
"""A future if the response is made in a thread."""


class PortConnection(TurnTaker, Protocol):
    """A connection, as far as its port knows it."""

    state: State
    expires: float
    waits_since: float
    """When it came, its present request began, or its last response was written, in monotonic seconds."""
    is_answered: bool
    """A response to a whole request was written."""
    weight: int

    def expire(self) -> None:
        """End the connection: called when `expires` has passed."""

    def abort(self) -> None:
        """Close without waiting for anything."""


class Port:
    """One listening address: the application behind it, the limits for its clients, and what its connections share.

    The callables must neither wait nor block.

    - `respond` answers a whole request.
    - `count(counter, *labels)` adds one to a counter.
    - `check_client(head, names)` gets the names in the client's certificate, and `check_beginning(size, beginning)` the
      first bytes of a body and its size in bytes, as far as it is known. Both refuse by raising RefusedError.

    `variables` are what the environ of all requests has in common. `bytes_in_flight` is kept by the readers.
    `idle_seconds` is how long a connection may wait for its next request.
    """

    def __init__(
        self,
        respond: Callable[[Request], Response],
        guards: Guards,
        count: Callable[..., None],
        check_client: Callable[[Head, frozenset[str]], None] = lambda _head, _names: None,
        check_beginning: Callable[[int, bytes | bytearray], None] = lambda _size, _beginning: None,
        *,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        self.variables = variables or {}
        self.respond = respond
        self.check_client = check_client
        self.check_beginning = check_beginning
        self.guards = guards
        self.bytes_in_flight = 0
        self.known_heads = KnownHeads()
        self.round_robin = RoundRobin()
        self.has_freed_much = False
        self.is_draining = False
        self.idle_seconds = guards.keep_alive_seconds
        self._count = count
        self._connections: set[PortConnection] = set()
        self._weight = 0
        self._throttle = LogThrottle(_SECONDS_BETWEEN_LINES)

    @property
    def connections(self) -> int:
        """The number of open ones."""
        return len(self._connections)

    @property
    def requests_in_flight(self) -> int:
        """The number of requests that have begun and are not whole."""
        return sum(1 for one in self._connections if one.state in IN_REQUEST)

    def may_read(self, more: int) -> bool:
        """Return whether this many more bytes may be read in addition to those being read."""
        return self.bytes_in_flight + more <= self.guards.max_bytes_in_flight

    def check_body(self, size: int, more: int = 0) -> None:
        """Raise RefusedError if a body of this size is too large, or if `more` bytes in flight would be too many."""
        if size > self.guards.max_body:
            raise RefusedError(413, "the body is too large")
        if not self.may_read(more):
            raise RefusedError(503, "too many bytes are being read", b"retry-after: 1\r\n")

    def add(self, connection: PortConnection, weight: int) -> None:
        """Count a connection, or what it has grown by; above the limit the one that is missed least is closed."""
        self._connections.add(connection)
        connection.weight += weight
        self._weight += weight
        while self._weight > self.guards.max_connections and self._connections:
            rank = functools.partial(_rank_to_keep, now=time.monotonic())
            last = min(self._connections, key=rank)
            self.remove(last)
            self._count("connections_closed")
            last.abort()

    def remove(self, connection: PortConnection) -> None:
        """Stop counting a connection."""
        self._connections.discard(connection)
        self._weight -= connection.weight
        if connection.weight > 1:
            self.has_freed_much = True
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
        """Answer one more request on each connection, then close it: the server stops."""
        self.is_draining = True
        self.idle_seconds = self.guards.drain_seconds
        for connection in self._connections:
            connection.expires = min(connection.expires, now + self.guards.drain_seconds)

    def trim_memory(self) -> None:
        """Return freed memory to the system if there is much; some milliseconds. glibc keeps it otherwise."""
        if self.has_freed_much:
            self.has_freed_much = False
            if trim := _malloc_trim():
                trim(ctypes.c_size_t(0))

    def count_refusal(self, refusal: RefusedError, client: object) -> None:
        """Count a refused request, and log it unless one was logged a moment ago."""
        status = refusal.response.status
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._count("shed")
        else:
            self._count("malformed", REFUSAL_KINDS[status])
        silent = self._throttle.admit(time.monotonic())
        if silent is not None:
            fields = {"status": status, "reason": refusal.reason, "client": str(client), "more_since_last_line": silent}
            LOG.warning("bad request", extra={"fields": fields})


@functools.cache
def _malloc_trim() -> Callable[[ctypes.c_size_t], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None  # musl and others


def _rank_to_keep(connection: PortConnection, now: float) -> tuple[int, float]:
    """Return which of many connections to keep: the higher the rank, the longer; of one rank, the latest.

    Whoever holds many connections keeps them in the middle of a request, so that none of them is idle: the one that has
    just come, and has not sent its first byte, may be that of an API server.

    | rank | connection |
    |---|---|
    | 0 | was refused or closed, or has not sent a whole request in a second |
    | 1 | was answered, and is idle: an API server opens another one |
    | 2 | came, or began a request, within the last second |
    | 3 | waits for its response, or reads it |
    """
    if connection.state in (CLOSING, DISCARDING):
        rank = 0
    elif connection.state is IDLE and connection.is_answered:
        rank = 1
    elif connection.state in (IDLE, *IN_REQUEST):
        rank = 2 if now - connection.waits_since < _SECONDS_TO_SEND else 0
    else:
        rank = 3
    return rank, connection.waits_since
