"""One connection with a client that may be hostile: what it reads, how long it may stay open, and how it ends.

`State` lists every change of its state. `expires` is one number for each connection, which is compared with the clock
from time to time, so no timer can outlive a connection.
"""

import asyncio
import functools
import itertools
from time import monotonic
from typing import Any, Final

import httptools

from webhook.server.http import message
from webhook.server.http.message import HttpResponse, RefusedError
from webhook.server.http.port import (
    BODY,
    CLOSED,
    CLOSING,
    DISCARDING,
    HEAD,
    IDLE,
    MAX_TURN_BYTES,
    READING,
    RESPONDING,
    STEP,
    Port,
)
from webhook.server.logs import LOG

WIDE_READ: Final = 32 * 1024
"""Bytes of one read; a larger one leaves OpenSSL's and uvloop's buffers of its connection as large."""
WIDE_CONNECTION: Final = 8
"""The weight of a connection with such buffers among `Guards.max_connections`."""
CLOSE_SECONDS: Final = 2
"""Given to the peer to close after we closed."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_EMPTY_LINE: Final = b"\r\n\r\n"
_NO_VERSION: Final = "0.0"
"""The parser's version before the first request line has ended."""
_MUCH: Final = 1024 * 1024
"""Bytes of a body after which freed memory is returned to the system."""
_NOT_HTTP: Final = "not an HTTP/1.1 request"


class _EndOfReading(Exception):  # noqa: N818 - not an error
    """Raised to read nothing more of this piece."""


class Connection(asyncio.Protocol):
    """Reads requests, one after the other, and writes what the port responds."""

    transport: asyncio.Transport

    def __init__(self, port: Port) -> None:
        self.state = IDLE
        self.expires = 0.0
        self.weight = 0
        self.client_names: frozenset[str] = frozenset()
        self._port = port
        self._now = 0.0  # of the last event, in monotonic seconds
        self._begun = 0.0  # the first byte of the request
        self._unread: bytes | memoryview = b""
        self._takes_turns = False  # it has pipelined, or sent a request that takes long to parse
        self._is_writing_paused = False
        self._response: asyncio.Future[HttpResponse] | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._requests = 0  # that were read to their end
        self._head = message.NO_HEAD
        self._target = b""
        self._headers: message.Headers = []
        self._body: bytes | bytearray = b""
        self._body_size = 0
        self._in_flight = 0
        self._piece_size = 0
        self._tail = b""  # of the last step: an empty line may be cut
        self._seen = 0  # bytes since the head began, or since a little before it

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
        self._end_parsing()
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
            self._unread = self._read_some(self._unread)
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

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        """Begin a request, and start its clock."""
        self._target = b""
        self._headers = []
        self._body = b""
        self._body_size = 0
        self._seen = self._piece_size
        if self.state is IDLE:
            self.state = HEAD
            self._begun = self._now
            self.expires = self._begun + self._port.guards.request_seconds
        elif self.state is not HEAD:
            raise _EndOfReading

    def on_url(self, target: bytes) -> None:
        """Take a piece of the request target."""
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; after the body it is a trailer, which is counted and ignored."""
        if self.state is HEAD:
            self._headers.append((name.lower(), value))
        else:
            self._grow(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """Refuse what can be refused from the head."""
        if self._asks_for_other_protocol():
            if dict(self._headers).get(b"upgrade", b"").lower() == b"websocket":
                raise RefusedError(400, "WebSocket is not supported")
            return
        parser, headers = self._parser, self._headers
        head = self._head = message.Head.of(parser.get_method(), self._target, headers)
        if self._seen > self._port.guards.max_head:
            # It may hold the end of the request before.
            size = len(self._target) + sum(len(name) + len(value) + 4 for name, value in headers)
            if size > self._port.guards.max_head:
                raise RefusedError(431, message.HEAD_TOO_LARGE)
        message.check_head(head, headers, parser.get_http_version())
        self._port.check_body(head.length, head.length)
        self._port.accept(head, self.client_names)
        self.state = BODY
        if b"expect" in head.fields:
            self.transport.write(_CONTINUE)

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._grow(len(piece))
        # One piece stays as it is; more become one buffer, because small pieces cost more than what they hold.
        if not self._body:
            self._body = piece
        elif isinstance(self._body, bytearray):
            self._body += piece
        else:
            self._body = bytearray(self._body + piece)
        self._port.accept_body(max(self._head.length, self._body_size), self._body)

    def on_message_complete(self) -> None:
        """Respond to the whole request."""
        if self._asks_for_other_protocol():
            return
        self._requests += 1
        body, self._body = bytes(self._body), b""
        self.state = IDLE
        self._respond(self._head, body, keep_alive=self._parser.should_keep_alive())
        if self._response is None:
            self._release()

    # Reading.

    def _is_open(self) -> bool:
        """Return whether more input is read; in any other state all of it is ignored."""
        return self.state is IDLE or self.state in READING

    def _read(self, data: bytes) -> None:
        was_idle, requests = self.state is IDLE, self._requests
        self._unread = self._read_some(data)
        if self._unread:
            self._takes_turns = True
            self._continue_reading()
        elif was_idle and self.state is IDLE and self._requests == requests + 1:
            self._port.known_heads.remember(data, self._head)

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

    def _read_some(self, data: bytes | memoryview) -> memoryview:
        """Read to the end of a request, or MAX_TURN_BYTES; return the rest. After an error it takes no more bytes."""
        view, left = memoryview(data), MAX_TURN_BYTES
        requests = self._requests
        while view and left > 0 and self._requests == requests:
            size = self._size_of_step(view)
            step = view[:size]
            self._feed(step)
            self._tail = (self._tail + step[-3:])[-3:]
            view, left = view[size:], left - size
        return view

    def _size_of_step(self, data: memoryview) -> int:
        """Return how many bytes to parse at once: no step holds the end of one request and the start of another."""
        if self.state is BODY and self._body_size < self._head.length:
            return self._head.length - self._body_size
        # A head and a body in chunks both end with an empty line.
        end = (self._tail + data[:STEP]).find(_EMPTY_LINE)
        return STEP if end < 0 else end + len(_EMPTY_LINE) - len(self._tail)

    def _feed(self, piece: memoryview) -> None:
        had_begun = self.state is HEAD
        rest: bytes | memoryview = piece
        while rest:
            rest = self._parse(rest)
        if self.state is HEAD:
            if self._seen > self._port.guards.max_head:
                raise RefusedError(431, message.HEAD_TOO_LARGE)
            # Of another version the parser would wait for headers that never come; a line without one is HTTP/0.9.
            version = self._parser.get_http_version()
            if version not in message.VERSIONS:
                # Empty lines may come before a request.
                line = bytes(piece) if had_begun else bytes(piece).lstrip(b"\r\n")
                if version != _NO_VERSION or b"\n" in line:
                    raise RefusedError(400, _NOT_HTTP)

    def _parse(self, piece: bytes | memoryview) -> bytes:
        """Parse one piece; return what must be parsed instead of a head that asks for another protocol."""
        self._piece_size = len(piece)
        if self.state is HEAD:
            self._seen += len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            # The parser takes what follows for the other protocol, so it gets the head again, without that wish.
            parser, self._parser = self._parser, httptools.HttpRequestParser(self)
            head = message.without_upgrade(parser.get_method(), self._target, self._headers, parser.get_http_version())
            return head + bytes(piece[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError:
            raise RefusedError(400, _NOT_HTTP) from None
        return b""

    def _grow(self, size: int) -> None:
        self._body_size += size
        self._in_flight += size
        self._port.bytes_in_flight += size
        self._port.check_body(self._body_size)

    def _asks_for_other_protocol(self) -> bool:
        # CONNECT does as well, but that is refused.
        return bool(self._parser.should_upgrade()) and self._parser.get_method() != b"CONNECT"

    # Responding, and the end.

    def _respond(self, head: message.Head, body: bytes, *, keep_alive: bool) -> None:
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
        self._release()
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
        self.transport.write(message.to_bytes(response, close=close))
        if close:
            self._close()
        elif not self._is_writing_paused:
            self.expires = self._now + self._port.idle_seconds

    def _refuse(self, refusal: RefusedError) -> None:
        """Respond to what will not be read to its end, and close: the next request could begin anywhere."""
        self._port.count_refusal(refusal, self.transport.get_extra_info("peername"))
        self.transport.write(message.to_bytes(refusal.response, close=True))
        if self.state in READING:
            self.state = DISCARDING
            self.expires = monotonic() + self._port.guards.linger_seconds
        else:
            self._close()
        self._end_parsing()

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

    def _end_parsing(self) -> None:
        """Hold nothing more: the parser holds this connection too. It takes no more bytes."""
        self._release()
        self._parser = None  # type: ignore[assignment] # nothing is fed any more
        self._body = b""

    def _release(self) -> None:
        """Stop counting the body as in flight."""
        self._port.has_freed_much |= self._in_flight > _MUCH
        self._port.bytes_in_flight -= self._in_flight
        self._in_flight = 0


def _names_in(certificate: dict[str, Any]) -> frozenset[str]:
    """Return the common name and DNS names of a verified client certificate, from `SSLObject.getpeercert`."""
    subject = itertools.chain.from_iterable(certificate.get("subject", ()))
    alternatives = certificate.get("subjectAltName", ())
    return frozenset(value for kind, value in (*subject, *alternatives) if kind in {"commonName", "DNS"})
