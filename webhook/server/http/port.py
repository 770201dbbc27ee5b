"""The part that all connections of one port share: guards, known heads, round robin, and bytes in flight."""

import asyncio
import ctypes
import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol

from webhook.server.http.message import REFUSAL_KINDS, UNUSUAL_HEADERS, Head, HttpResponse, RefusedError, Request
from webhook.server.http.state import CLOSING, IDLE, READING, State
from webhook.server.http.stream import Stream
from webhook.server.logs import LOG, LogThrottle
from webhook.server.settings import Guards

PAUSE_SECONDS: Final = 0.002
"""Between two rounds. Those that wait get about half of the worker's time: a process that sleeps now and then is run
sooner by a busy kernel once a request comes."""
_ROUND_SECONDS: Final = 0.002
"""Given to all connections that wait, together, before the event loop looks at the others."""

_SECONDS_BETWEEN_LINES: Final = 10
"""Between two log lines about bad requests; many of them must not cause as many lines."""


Response = HttpResponse | asyncio.Future[HttpResponse | Stream]
"""A future if the response is made in a thread."""


class PortConnection(Protocol):
    """A connection, as far as its port knows it."""

    state: State
    expires: float
    weight: int

    def take_turn(self) -> bool:
        """Read some of what waits; True if there is more."""

    def expire(self) -> None:
        """End the connection: called when `expires` has passed."""

    def abort(self) -> None:
        """Close without waiting for anything."""


class KnownHeads:
    """Heads that were answered before, so that the same bytes are not parsed and checked again.

    Parsing and checking them costs a third of a review without TLS (`make fast-paths`). kube-apiserver sends the same
    few headers with each review; only Content-Length differs. The meaning of a head
    follows from its bytes alone, as long as they stand where a request may begin. Only heads that were answered and
    left the connection open are kept. The bounds keep what clients can fill with heads of their own at about 4 MiB.
    """

    MAX_HEADS: Final = 1024
    MAX_HEAD_BYTES: Final = 512
    """kube-apiserver's heads have about 250 bytes; one that carries a token is not kept."""
    MAX_FIELDS: Final = 16

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return head and body of `data`, if it is one whole request, and nothing more, with a known head."""
        begin = self._begin_of_body(data)
        head = self._heads.get(data[:begin])
        if head is None or len(data) != begin + head.length:
            return None
        return head, data[begin:]

    def remember(self, data: bytes, head: Head) -> None:
        """Remember `head`, the last one that was read from `data`, which began where a request may begin.

        The sum shows that `data` was this request alone: with anything before, between or after it would be larger.
        """
        begin = self._begin_of_body(data)
        is_alone = begin > 0 and len(data) == begin + head.length
        if not is_alone or len(head.fields) > self.MAX_FIELDS or not head.fields.keys().isdisjoint(UNUSUAL_HEADERS):
            return
        if len(self._heads) >= self.MAX_HEADS:
            del self._heads[next(iter(self._heads))]
        self._heads[data[:begin]] = head

    def _begin_of_body(self, data: bytes) -> int:
        """Return where a head that is not too long has ended; 0 if none has."""
        end = data.find(b"\r\n\r\n", 0, self.MAX_HEAD_BYTES)
        return 0 if end < 0 else end + 4


class RoundRobin:
    """Reads that hold more than a request: each connection reads a little, then the others are served.

    A read may be 256 KiB of pipelined requests, thousands of them. If they were answered in one go, no other connection
    of this event loop would get a response meanwhile.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[PortConnection, None] = OrderedDict()
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: PortConnection) -> None:
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


class Port:
    """`bytes_in_flight` is kept by the connections. `idle_seconds` is how long a connection may wait for a request.

    What it is made with must not wait or block. `count` adds one to a counter, with the values of its labels.
    `check_client` takes a head and the names in the client's certificate, and `check_beginning` the size of a body in
    bytes, as far as it is known, and its beginning; both may raise RefusedError. `variables` are what the environ of
    each request has in common with all others.
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
        self.respond, self.check_client, self.check_beginning = respond, check_client, check_beginning
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
        return sum(1 for one in self._connections if one.state in READING)

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
        """Count a connection, or what it has grown by; above the limit the one that has been idle longest is closed."""
        self._connections.add(connection)
        connection.weight += weight
        self._weight += weight
        while self._weight > self.guards.max_connections and self._connections:
            # `expires` is a fixed time after the last response, or after the first byte of a request.
            last = min(self._connections, key=lambda one: (one.state not in (IDLE, CLOSING), one.expires))
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
