"""One connection with a client that may be hostile: how long it may stay open, what it holds, and how it ends.

`State` lists every change of its state. `expires` is one number for each connection, which is compared with the clock
from time to time, so no timer can outlive a connection.
"""

import asyncio
import functools
import itertools
from time import monotonic
from typing import Any, Final

from webhook.server.http.message import Head, HttpResponse, RefusedError, to_bytes
from webhook.server.http.port import BODY, CLOSED, CLOSING, DISCARDING, HEAD, IDLE, READING, RESPONDING, Port
from webhook.server.http.request_reader import RequestReader
from webhook.server.logs import LOG

WIDE_READ: Final = 32 * 1024
"""Bytes of one read; a larger one leaves OpenSSL's and uvloop's buffers of its connection as large."""
WIDE_CONNECTION: Final = 8
"""The weight of a connection with such buffers among `Guards.max_connections`."""
CLOSE_SECONDS: Final = 2
"""Given to the peer to close after we closed."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class _EndOfReading(Exception):  # noqa: N818 - not an error
    """Raised to read nothing more of this piece."""


class Connection(asyncio.Protocol):
    """Reads requests, and writes what the port responds."""

    transport: asyncio.Transport

    def __init__(self, port: Port) -> None:
        self.state = IDLE
        self.expires = 0.0
        self.weight = 0
        self.client_names: frozenset[str] = frozenset()
        self._port = port
        self._reader = RequestReader(self, port)
        self._now = 0.0  # of the last event, in monotonic seconds
        self._begun = 0.0  # the first byte of the request
        self._unread: bytes | memoryview = b""
        self._takes_turns = False  # it has pipelined, or sent a request that takes long to parse
        self._is_writing_paused = False
        self._response: asyncio.Future[HttpResponse] | None = None

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock: silence after the handshake ends like silence after a response."""
        self.transport = transport  # type: ignore[assignment] # it is one that writes
        self.client_names = _names_in(transport.get_extra_info("peercert") or {})
        self.expires = monotonic() + self._port.idle_seconds
        self._port.opened(self, 1)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it was lost
        """Release what this connection held."""
        self.state = CLOSED
        self._unread = b""
        self._reader.close()
        self._port.closed(self)
        if self._response is not None:
            self._response.cancel()

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read, and close it if that lasts."""
        self._is_writing_paused = True
        self._continue_reading()
        self.expires = monotonic() + self._port.guards.request_seconds

    def resume_writing(self) -> None:
        """Read again."""
        self._is_writing_paused = False
        if self.state is IDLE:
            self.expires = monotonic() + self._port.idle_seconds
        elif self.state in READING:
            self.expires = self._begun + self._port.guards.request_seconds
        self._continue_reading()

    def data_received(self, data: bytes) -> None:
        """Read, or let it wait; whatever goes wrong ends this connection only."""
        port = self._port
        self._now = monotonic()
        if len(data) > WIDE_READ and self.weight == 1:
            port.opened(self, WIDE_CONNECTION - 1)
        try:
            if self.state is IDLE:
                known = None if self._unread or len(data) > WIDE_READ else port.known_heads.find(data)
                if known is not None and port.may_read(known[0].length):
                    self._begun = self._now
                    port.accept(known[0], self.client_names)
                    self._respond(*known, keep_alive=True)
                    return
            elif self.state not in READING and self.state is not RESPONDING:
                return
            if self._unread or self._takes_turns or self.state is RESPONDING:
                self._unread = bytes(self._unread) + data
                self._continue_reading()
            else:
                self._read(data)
        except Exception as error:  # noqa: BLE001 - as it says
            self._end_reading(error)

    # What the port calls.

    def take_turn(self) -> bool:
        """Read some of what waits; True if there is more."""
        if not self._unread or self._is_writing_paused or not self._is_open():
            return False
        self._now = monotonic()
        try:
            self._unread = self._reader.read_some(self._unread)
        except Exception as error:  # noqa: BLE001 - as above
            self._end_reading(error)
        if self._unread and self._is_open():
            return True
        self._continue_reading()
        return False

    def expire(self) -> None:
        """End the connection: called when `expires` has passed."""
        if self.state in (CLOSING, CLOSED) or self._is_writing_paused:
            self.abort()
        elif self.state in READING:
            self._refuse(RefusedError(408, "the request took too long"))
        elif self.state is RESPONDING:
            self._refuse(RefusedError(503, "the response took too long", b"retry-after: 1\r\n"))
        else:
            self._close()

    def abort(self) -> None:
        """Close without waiting for anything: what is unread and what is not written yet are lost."""
        self.state = CLOSED
        self._unread = b""
        self.transport.abort()

    # What the reader calls.

    def request_began(self) -> None:
        """Start the clock of this request."""
        if self.state is IDLE:
            self.state = HEAD
            self._begun = self._now
            self.expires = self._begun + self._port.guards.request_seconds
        elif self.state is not HEAD:
            raise _EndOfReading

    def head_accepted(self, head: Head) -> None:
        """Expect its body."""
        self.state = BODY
        if b"expect" in head.fields:
            self.transport.write(_CONTINUE)

    def request_read(self, head: Head, body: bytes, *, keep_alive: bool) -> None:
        """Respond to a whole request."""
        self.state = IDLE
        self._respond(head, body, keep_alive=keep_alive)
        if self._response is None:
            self._reader.release()

    def _is_open(self) -> bool:
        """Return whether more input is read; in any other state all of it is ignored."""
        return self.state is IDLE or self.state in READING

    def _read(self, data: bytes) -> None:
        was_idle, requests = self.state is IDLE, self._reader.requests
        self._unread = self._reader.read_some(data)
        if self._unread:
            self._takes_turns = True
            self._continue_reading()
        elif was_idle and self.state is IDLE and self._reader.requests == requests + 1:
            self._port.known_heads.remember(data, self._reader.head)

    def _continue_reading(self) -> None:
        """Read what waits in turns, or what comes, unless the client does not read or a response must be awaited."""
        if self._is_writing_paused or self.state is RESPONDING:
            self.transport.pause_reading()
        elif not self._is_open():
            self._unread = b""
        elif self._unread:
            self.transport.pause_reading()
            self._port.round_robin.add(self)
        else:
            self.transport.resume_reading()

    def _respond(self, head: Head, body: bytes, *, keep_alive: bool) -> None:
        response = self._port.respond(head, body, self._begun)
        if isinstance(response, HttpResponse):
            self._send(response, keep_alive=keep_alive)
            return
        self.state = RESPONDING
        self.expires = self._now + self._port.guards.request_seconds
        self._response = response
        response.add_done_callback(functools.partial(self._responded, keep_alive=keep_alive))
        self._continue_reading()

    def _responded(self, response: asyncio.Future[HttpResponse], *, keep_alive: bool) -> None:
        self._reader.release()
        self._response = None
        if response.cancelled() or self.state is not RESPONDING:
            return
        self._now = monotonic()
        self.state = IDLE
        if bug := response.exception():
            self._end_reading(bug)
        else:
            self._send(response.result(), keep_alive=keep_alive)
        self._continue_reading()

    def _send(self, response: HttpResponse, *, keep_alive: bool) -> None:
        close = self._port.is_draining or not keep_alive
        self.transport.write(to_bytes(response, close=close))
        if close:
            self._close()
        elif not self._is_writing_paused:
            self.expires = self._now + self._port.idle_seconds

    def _refuse(self, refusal: RefusedError) -> None:
        """Respond to what will not be read to its end, and close: the next request could begin anywhere."""
        self._port.count_refusal(refusal, self.transport.get_extra_info("peername"))
        self.transport.write(to_bytes(refusal.response, close=True))
        if self.state in READING:
            self.state = DISCARDING
            self.expires = monotonic() + self._port.guards.linger_seconds
        else:
            self._close()
        self._reader.close()

    def _end_reading(self, error: BaseException) -> None:
        """Read nothing more. What is not a refusal is a bug of ours."""
        self._unread = b""
        if isinstance(error, _EndOfReading) or not self._is_open():
            return
        if not isinstance(error, RefusedError):
            LOG.error("a connection failed", exc_info=error)
            error = RefusedError(500, "internal error")
        self._refuse(error)

    def _close(self) -> None:
        self.state = CLOSING
        self.expires = monotonic() + CLOSE_SECONDS
        self._unread = b""
        self.transport.close()


def _names_in(certificate: dict[str, Any]) -> frozenset[str]:
    """Return the common name and DNS names of a verified client certificate, from `SSLObject.getpeercert`."""
    subject = itertools.chain.from_iterable(certificate.get("subject", ()))
    alternatives = certificate.get("subjectAltName", ())
    return frozenset(value for kind, value in (*subject, *alternatives) if kind in {"commonName", "DNS"})
