"""One connection with a client that may be hostile: when it is read, how long it may stay open, and how it ends.

`webhook.server.http.state` has every change of its state. `expires` is one number for each connection, which is
compared with the clock from time to time, so no timer can outlive a connection.
"""

import asyncio
import functools
import itertools
from time import monotonic
from typing import Any, Final

from webhook.server.http import message
from webhook.server.http.message import Head, HttpResponse, RefusedError, Request
from webhook.server.http.port import Port
from webhook.server.http.request_reader import EndOfReadingError, RequestReader
from webhook.server.http.state import (
    ACCEPT,
    ANSWERING,
    BEGIN,
    CLOSE,
    CLOSED,
    CLOSING,
    COMPLETE,
    DISCARDED_IN,
    HEAD,
    IDLE,
    IN_REQUEST,
    LOSE,
    READ_IN,
    REFUSE,
    RESPOND,
    RESPONDING,
    STREAM,
    STREAMING,
    Event,
    advance,
)
from webhook.server.http.stream import BrokenStreamError, Stream
from webhook.server.logs import LOG

WIDE_READ: Final = 32 * 1024
"""Bytes of one read; a larger one leaves OpenSSL's and uvloop's buffers of its connection as large."""
WIDE_CONNECTION: Final = 8
"""The weight of a connection with such buffers among `Guards.max_connections`."""
CLOSE_SECONDS: Final = 2
"""Given to the peer to close after we closed."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_NOBODY: Final = ("", 0)


class Connection(asyncio.Protocol):
    """Reads requests, one after the other, and writes what the port responds."""

    transport: asyncio.Transport

    def __init__(self, port: Port) -> None:
        self.state = IDLE
        self.expires = 0.0
        self.waits_since = 0.0
        self.is_answered = False
        self.weight = 0
        self.client_names: frozenset[str] = frozenset()
        self._client = _NOBODY
        self._port = port
        # In monotonic seconds; set where the event loop enters: `data_received`, `take_turn`, `_on_response`, `_write`.
        self._now = 0.0
        self._request_began_at = 0.0  # in monotonic seconds
        self._unread: bytes | memoryview = b""
        self._takes_turns = False  # it has pipelined, or sent a request that takes long to parse
        self._may_write = asyncio.Event()
        self._response: asyncio.Future[HttpResponse | Stream] | None = None
        self._writing: tuple[Stream, asyncio.Task[None]] | None = None
        self._reader = RequestReader(self, port)

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock: silence after the handshake ends like silence after a response."""
        self.transport = transport  # type: ignore[assignment] # it is one that writes
        self.client_names = _read_names(transport.get_extra_info("peercert") or {})
        self._client = tuple((transport.get_extra_info("peername") or _NOBODY)[:2])
        self._may_write.set()
        self.waits_since = monotonic()
        self.expires = self.waits_since + self._port.idle_seconds
        self._port.add(self, 1)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it was lost
        """Release what this connection held."""
        self._advance(LOSE)
        self._unread = b""
        self._reader.close()
        self._port.remove(self)
        if self._response is not None:
            self._response.cancel()
        if self._writing is not None:
            # It may not have begun, so it cannot abandon the stream itself.
            stream, task = self._writing
            self._writing = None
            task.cancel()
            stream.abandon()

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read, and close it if that lasts."""
        self._may_write.clear()
        self._apply_flow_control()
        self.expires = monotonic() + self._port.guards.request_seconds

    def resume_writing(self) -> None:
        """Read again."""
        self._may_write.set()
        if self.state is IDLE:
            self.expires = monotonic() + self._port.idle_seconds
        elif self.state in IN_REQUEST:
            self.expires = self._request_began_at + self._port.guards.request_seconds
        self._apply_flow_control()

    def data_received(self, data: bytes) -> None:
        """Read what came, or let it wait for its turn; an exception ends this connection only."""
        self._now = monotonic()
        if len(data) > WIDE_READ and self.weight == 1:
            self._port.add(self, WIDE_CONNECTION - 1)
        if self.state in DISCARDED_IN:
            return
        try:
            if self._answer_known_head(data):
                return
            if self._unread or self._takes_turns or self.state in ANSWERING:
                self._unread = bytes(self._unread) + data
                self._apply_flow_control()
            else:
                self._read(data)
        except Exception as error:  # noqa: BLE001 - a bug ends this connection only
            self._end_reading(error)

    def _answer_known_head(self, data: bytes) -> bool:
        """Answer `data` if it is one whole request with a known head; return whether it was."""
        if self.state is not IDLE or self._unread or len(data) > WIDE_READ:
            return False
        known = self._port.known_heads.find(data)
        if known is None or not self._port.may_read(known[0].length):
            return False
        head, body = known
        self._request_began_at = self._now
        self._port.check_client(head, self.client_names)
        if body:
            self._port.check_beginning(len(body), body)
        self.complete(head, body, keep_alive=True)
        return True

    # What the port calls.

    def take_turn(self) -> bool:
        """Read some of what waits; True if there is more."""
        if not self._unread or self._is_writing_paused or not self._is_readable():
            return False
        self._now = monotonic()
        try:
            self._unread = self._reader.read_some(self._unread)
        except Exception as error:  # noqa: BLE001 - a bug ends this connection only
            self._end_reading(error)
        if self._unread and self._is_readable():
            return True
        self._apply_flow_control()
        return False

    def expire(self) -> None:
        """End the connection: called when `expires` has passed."""
        if self.state in (STREAMING, CLOSING, CLOSED) or self._is_writing_paused:
            self.abort()
        elif self.state in IN_REQUEST:
            self._refuse(RefusedError(408, "the request took too long"))
        elif self.state is RESPONDING:
            self._refuse(RefusedError(503, "the response took too long", b"retry-after: 1\r\n"))
        else:
            self._close()

    def abort(self) -> None:
        """Close without waiting for anything: what is unread and what is not written yet are lost."""
        self._advance(LOSE)
        self._unread = b""
        self.transport.abort()

    # What the reader calls.

    def begin(self) -> None:
        """Start the clock of a request."""
        if self.state is not IDLE:
            # The parser begins again when a head had asked for another protocol.
            if self.state is not HEAD:
                raise EndOfReadingError
            return
        self._advance(BEGIN)
        self._request_began_at = self.waits_since = self._now
        self.expires = self._request_began_at + self._port.guards.request_seconds

    def accept(self, head: Head) -> None:
        """Have the body sent."""
        self._advance(ACCEPT)
        if head.has_expectation:
            self.transport.write(_CONTINUE)

    def complete(self, head: Head, body: bytes, *, keep_alive: bool) -> None:
        """Respond to a whole request, now or when the response is made."""
        self._advance(COMPLETE)
        response = self._port.respond(Request(head, body, self._request_began_at, self._client))
        if isinstance(response, HttpResponse):
            self._send(response, keep_alive=keep_alive)
            return
        self.expires = self._now + self._port.guards.request_seconds
        self._response = response
        response.add_done_callback(functools.partial(self._on_response, head, keep_alive=keep_alive))
        self._apply_flow_control()

    # Reading.

    def _advance(self, event: Event) -> None:
        self.state = advance(self.state, event)

    def _is_readable(self) -> bool:
        return self.state in READ_IN

    @property
    def _is_writing_paused(self) -> bool:
        return not self._may_write.is_set()

    def _read(self, data: bytes) -> None:
        reader, was_idle = self._reader, self.state is IDLE
        requests = reader.requests
        self._unread = reader.read_some(data)
        if self._unread:
            self._takes_turns = True
            self._apply_flow_control()
        elif was_idle and self.state is IDLE and reader.requests == requests + 1:
            self._port.known_heads.remember(data, reader.head)

    def _apply_flow_control(self) -> None:
        """Read what waits in turns, or what comes, unless the client does not read or a response must be awaited."""
        if self._is_writing_paused or self.state in ANSWERING:
            self.transport.pause_reading()
        elif not self._is_readable():
            self._unread = b""
        elif self._unread:
            self.transport.pause_reading()
            self._port.round_robin.add(self)
        else:
            self.transport.resume_reading()

    # Responding, and the end.

    def _on_response(self, head: Head, future: asyncio.Future[HttpResponse | Stream], *, keep_alive: bool) -> None:
        """Write the response that a thread has made, unless its request was refused or its client left meanwhile."""
        self._response = None
        self._reader.release()
        if future.cancelled():
            return
        bug = future.exception()
        if self.state is not RESPONDING:
            if not bug and isinstance(late := future.result(), Stream):
                late.abandon()
            return
        self._now = monotonic()
        if bug:
            self._end_reading(bug)
        elif isinstance(response := future.result(), Stream):
            self._advance(STREAM)
            task = asyncio.get_running_loop().create_task(self._write(response, head, keep_alive=keep_alive))
            self._writing = response, task
            return
        else:
            self._send(response, keep_alive=keep_alive)
        self._apply_flow_control()

    async def _write(self, stream: Stream, head: Head, *, keep_alive: bool) -> None:
        """Write a response block by block, each when the client has read enough of those before it."""
        has_length = stream.head.has_length
        is_chunked = not has_length and head.variables["SERVER_PROTOCOL"] == "HTTP/1.1"
        close = self._port.is_draining or not keep_alive or not (is_chunked or has_length)
        try:
            self.transport.write(_encode_head(stream.head, is_chunked=is_chunked, close=close))
            while (block := await stream.take()) is not None:
                self.expires = monotonic() + self._port.guards.request_seconds
                self.transport.write(b"%x\r\n%b\r\n" % (len(block), block) if is_chunked else block)
                await self._may_write.wait()
            if is_chunked:
                self.transport.write(b"0\r\n\r\n")
        except BrokenStreamError:
            self.abort()
        finally:
            stream.abandon()
            self._writing = None
        if self.state is STREAMING:
            self._now = monotonic()
            self._finish_response(close=close)
            self._apply_flow_control()

    def _send(self, response: HttpResponse, *, keep_alive: bool) -> None:
        close = self._port.is_draining or not keep_alive
        self.transport.write(message.to_bytes(response, close=close))
        self._finish_response(close=close)

    def _finish_response(self, *, close: bool) -> None:
        if close:
            self._close()
            return
        self._advance(RESPOND)
        self.waits_since, self.is_answered = self._now, True
        if not self._is_writing_paused:
            self.expires = self._now + self._port.idle_seconds

    def _refuse(self, refusal: RefusedError) -> None:
        """Respond to what will not be read to its end, and close: the next request could begin anywhere.

        What still comes is read and discarded for a while: a kernel that closes with unread bytes resets the
        connection, and the reset erases a response that the client has not read (RFC 9112 9.6).
        """
        self._port.count_refusal(refusal, self._client)
        self.transport.write(message.to_bytes(refusal.response, close=True))
        if self.state in IN_REQUEST:
            self._advance(REFUSE)
            self.expires = monotonic() + self._port.guards.linger_seconds
        else:
            self._close()
        self._reader.close()

    def _end_reading(self, error: BaseException) -> None:
        """Read nothing more. An error that is not a refusal is a bug of ours, and logged in every state."""
        self._unread = b""
        if isinstance(error, EndOfReadingError):
            return
        if not isinstance(error, RefusedError):
            LOG.error("a connection failed", exc_info=error)
            error = RefusedError(500, "internal error")
        if self.state in (*READ_IN, RESPONDING):
            self._refuse(error)
        elif self.state is STREAMING:
            # No other response may follow a part of one.
            self.abort()

    def _close(self) -> None:
        self._advance(CLOSE)
        self.expires = monotonic() + CLOSE_SECONDS
        self._unread = b""
        self.transport.close()


def _encode_head(response: HttpResponse, *, is_chunked: bool, close: bool) -> bytes:
    """Return the head of a response whose body follows in blocks."""
    head = response.head + _CHUNKED if is_chunked else response.head
    return message.to_bytes(HttpResponse(response.status, b"", head, has_length=True), close=close)


def _read_names(certificate: dict[str, Any]) -> frozenset[str]:
    """Return the common name and DNS names of a verified client certificate, from `SSLObject.getpeercert`."""
    subject = itertools.chain.from_iterable(certificate.get("subject", ()))
    alternatives = certificate.get("subjectAltName", ())
    return frozenset(value for kind, value in (*subject, *alternatives) if kind in {"commonName", "DNS"})
