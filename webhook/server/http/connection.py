"""One connection with a client that may be hostile: how long it may live, what it holds, and how it ends.

It leans on names inside uvicorn (`flow`, `connections`), which is why uvicorn is pinned exactly and each guard has a
test. No request reaches an ASGI application, and uvicorn's own timers are not used: `expires` is one number for each
connection, which the sweep compares with the clock, so there is no timer that could outlive a connection.

What is overridden, and why:
- connection_made, connection_lost: a connection that never sends a request is closed as well; counts are given back.
- shutdown: draining by `expires`, which serves one more request.
- pause_writing, resume_writing: a client that does not read its answers is not read from.
"""

import abc
import asyncio
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from webhook.server.http.message import Answer, message
from webhook.server.http.port_state import Load
from webhook.server.logs import LOG

CLOSE_SECONDS: Final = 2
"""How long a client may take to let go after we closed."""


class Connection(HttpToolsProtocol, abc.ABC):
    """A connection whose requests a subclass reads."""

    kinds: ClassVar[Mapping[int, str]] = {
        400: "framing",
        403: "client",
        405: "method",
        408: "slow",
        413: "body-size",
        417: "expectation",
        431: "head-size",
        500: "bug",
    }

    def __init__(self, load: Load, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, state, {}, loop)
        self.load = load
        self.guards = load.guards
        self.expires = 0.0
        self.weight = 0
        self.body: bytes | bytearray | None = None
        self._unread: bytes | memoryview = b""  # what of a read waits for its turn
        self._open = False  # a request has begun and is not whole
        self._held = 0
        self._waiting = False
        self._refused = False
        self._closing = False
        self._draining = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock: silence after the handshake ends at keep-alive."""
        super().connection_made(transport)  # type: ignore[arg-type] # uvicorn narrows it to Transport
        self.expires = time.monotonic() + self.guards.keep_alive_seconds
        self.load.opened(self, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what this connection held."""
        self._release()
        self._unread = b""
        self.load.closed(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read: do not read from it either, and do not wait for ever."""
        super().pause_writing()
        self.flow.pause_reading()
        self.expires = time.monotonic() + self.guards.request_seconds

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._unread:
            self.load.turns.queue(self, self.loop)
        else:
            self.flow.resume_reading()
        if not self._open and not self._closing:
            self._rest()

    @property
    def is_idle(self) -> bool:
        """Between two requests."""
        return not self._open and not self._unread

    @abc.abstractmethod
    def take_turn(self) -> bool:
        """Parse a little of what waits; whether there is more."""

    def expire(self) -> None:
        """Called by the sweep when `expires` has passed."""
        if self._closing or self.flow.write_paused:
            self.transport.abort()
        elif self._open and not self._refused:
            self.refuse(408, "the request took too long")
        else:
            self._close()

    def shutdown(self) -> None:
        """The server stops: answer one more request on an idle connection, then close it."""
        self._draining = True
        self.expires = min(self.expires, time.monotonic() + self.guards.drain_seconds)

    def refuse(self, status: int, text: str) -> None:
        """Answer what is no review, and close: nobody knows where a next request would begin."""
        if self._refused:
            return
        self._refused = True
        self.body = None
        self._unread = b""
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.load.metrics.shed()
        else:
            self.load.metrics.refused(self.kinds[status])
        self.load.complain(status, text, self.client)
        self._release()
        extra = b"connection: close\r\n"
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            extra += b"retry-after: 1\r\n"
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            extra += b"allow: POST\r\n"
        self.transport.write(message(Answer(status, text.encode() + b"\n"), extra))
        if self._open:
            self.expires = time.monotonic() + self.guards.linger_seconds
        else:
            self._close()

    def _count(self, size: int) -> None:
        self._held += size
        self.load.bytes_in_flight += size
        if self._held > self.guards.largest_body:
            self.refuse(413, "the body is too large")
        elif not self.load.has_room():
            self.refuse(503, "too many bytes are being read")

    def _release(self) -> None:
        self.load.bytes_in_flight -= self._held
        self._held = 0
        if self._waiting:
            self._waiting = False
            self.load.metrics.waiting(-1)

    def _rest(self) -> None:
        """Nothing to do: wait for the next request."""
        if self.flow.write_paused:
            return
        wait = self.guards.drain_seconds if self._draining else self.guards.keep_alive_seconds
        self.expires = time.monotonic() + wait

    def _close(self) -> None:
        self._closing = self._refused = True
        self.expires = time.monotonic() + CLOSE_SECONDS
        self.transport.close()

    def _met_bug(self, bug: BaseException | None) -> None:
        LOG.error("a connection met a bug", exc_info=bug)
        self.refuse(500, "a connection met a bug")


def sweep(connections: set[Any], now: float) -> None:
    """Let go of every connection whose time has passed; a bug with one must not keep the others."""
    for connection in [one for one in connections if now >= one.expires]:
        try:
            connection.expire()
        except Exception:  # noqa: BLE001 - whatever it is, the connection goes
            LOG.exception("a connection that could not expire is aborted")
            connection.transport.abort()
