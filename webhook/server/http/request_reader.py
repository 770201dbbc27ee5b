"""Reads requests, one after the other, from the bytes of one connection. It knows no transport and no clock."""

from typing import Final, Protocol

import httptools

from webhook.server.http import message
from webhook.server.http.message import Head, RefusedError
from webhook.server.http.port import Port
from webhook.server.http.state import BODY, HEAD, RESPONDING, State

STEP: Final = 1024
"""Bytes that are parsed at once at most, but for a body whose length is known: 200 headers or 170 chunks."""
MAX_TURN_BYTES: Final = 4096
"""Bytes of a large head, or of chunks, that are parsed before other connections are served: at most 1 ms of work."""
_EMPTY_LINE: Final = b"\r\n\r\n"
_NO_VERSION: Final = "0.0"
"""The parser's version before the first request line has ended."""
_MUCH: Final = 1024 * 1024
"""Bytes of a body after which freed memory is returned to the system."""
_NOT_HTTP: Final = "not an HTTP/1.1 request"


class EndOfReadingError(Exception):
    """Raised to read nothing more of this piece; not an error of the client."""


class ReaderOwner(Protocol):
    """The connection, as far as its reader knows it."""

    state: State
    client_names: frozenset[str]

    def begin(self) -> None:
        """Take note of the first byte of a request; raises EndOfReadingError if none may begin."""

    def accept(self, head: Head) -> None:
        """Take an accepted head."""

    def complete(self, head: Head, body: bytes, *, keep_alive: bool) -> None:
        """Respond to a whole request."""


class RequestReader:
    """Parses the bytes of one connection into requests, and hands each to its connection.

    `requests` counts those that were read to their end, `head` is that of the last one.
    """

    def __init__(self, connection: ReaderOwner, port: Port) -> None:
        self.requests = 0
        self.head = message.NO_HEAD
        self._connection = connection
        self._port = port
        self._max_head = port.guards.max_head
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: message.Headers = []
        self._body: bytes | bytearray = b""
        self._body_size = 0
        self._in_flight = 0
        self._piece_size = 0
        self._tail = b""  # of the last step: an empty line may be cut
        self._seen = 0  # bytes since the head began, or since a little before it

    def read_some(self, data: bytes | memoryview) -> memoryview:
        """Read to the end of a request, or MAX_TURN_BYTES; return the rest. After an error it takes no more bytes."""
        view, left = memoryview(data), MAX_TURN_BYTES
        requests = self.requests
        while view and left > 0 and self.requests == requests:
            size = self._size_of_step(view)
            step = view[:size]
            self._feed(step)
            self._tail = (self._tail + step[-3:])[-3:]
            view, left = view[size:], left - size
        return view

    def close(self) -> None:
        """Hold nothing more: the parser and the connection hold the reader too. The reader takes no more bytes."""
        self.release()
        self._parser = None  # type: ignore[assignment] # nothing is fed any more
        self._connection = None  # type: ignore[assignment] # nothing is read that it could be called for
        self._body = b""

    def release(self) -> None:
        """Stop counting the body as in flight."""
        if self._in_flight > _MUCH:
            self._port.has_freed_much = True
        self._port.bytes_in_flight -= self._in_flight
        self._in_flight = 0

    def _size_of_step(self, data: memoryview) -> int:
        """Return how many bytes to parse at once: no step holds the end of one request and the start of another."""
        if self._connection.state is BODY and self._body_size < self.head.length:
            return self.head.length - self._body_size
        # A head and a body in chunks both end with an empty line.
        end = (self._tail + data[:STEP]).find(_EMPTY_LINE)
        return STEP if end < 0 else end + len(_EMPTY_LINE) - len(self._tail)

    def _feed(self, piece: memoryview) -> None:
        had_begun = self._connection.state is HEAD
        rest: bytes | memoryview = piece
        while rest:
            rest = self._parse(rest)
        if self._connection.state is HEAD:
            if self._seen > self._max_head:
                raise RefusedError(431, message.HEAD_TOO_LARGE)
            # With any other version the parser would wait for headers that never arrive; HTTP/0.9 has none.
            version = self._parser.get_http_version()
            if version not in message.VERSIONS:
                # Empty lines may come before a request.
                line = bytes(piece) if had_begun else bytes(piece).lstrip(b"\r\n")
                if version != _NO_VERSION or b"\n" in line:
                    raise RefusedError(400, _NOT_HTTP)

    def _parse(self, piece: bytes | memoryview) -> bytes:
        """Parse one piece; return what must be parsed instead of a head that asks for another protocol."""
        self._piece_size = len(piece)
        if self._connection.state is HEAD:
            self._seen += len(piece)
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            # The parser takes what follows for the other protocol, so it gets the head again, without that wish.
            parser, self._parser = self._parser, httptools.HttpRequestParser(self)
            head = message.strip_upgrade(parser.get_method(), self._target, self._headers, parser.get_http_version())
            return head + bytes(piece[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError:
            raise RefusedError(400, _NOT_HTTP) from None
        return b""

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target = b""
        self._headers = []
        self._body = b""
        self._body_size = 0
        self._seen = self._piece_size
        self._connection.begin()

    def on_url(self, target: bytes) -> None:
        """Take a piece of the request target."""
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; after the body it is a trailer, which is counted and ignored."""
        if self._connection.state is HEAD:
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
        version = parser.get_http_version()
        head = self.head = Head.from_parts(parser.get_method(), self._target, headers, version, self._port.variables)
        if self._seen > self._max_head:
            # It may hold the end of the request before.
            size = len(self._target) + sum(len(name) + len(value) + 4 for name, value in headers)
            if size > self._max_head:
                raise RefusedError(431, message.HEAD_TOO_LARGE)
        message.check_head(head, headers, version)
        self._port.check_body(head.length, head.length)
        self._port.check_client(head, self._connection.client_names)
        self._connection.accept(head)

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
        self._port.check_beginning(max(self.head.length, self._body_size), self._body)

    def on_message_complete(self) -> None:
        """Hand over the whole request."""
        if self._asks_for_other_protocol():
            return
        self.requests += 1
        body, self._body = bytes(self._body), b""
        # In HTTP/1.0 the parser lets keep-alive count before close.
        keep_alive = self._parser.should_keep_alive() and not message.has_close(self.head, self._headers)
        self._connection.complete(self.head, body, keep_alive=keep_alive)
        if self._connection.state is not RESPONDING:
            self.release()

    def _grow(self, size: int) -> None:
        self._body_size += size
        self._in_flight += size
        self._port.bytes_in_flight += size
        self._port.check_body(self._body_size)

    def _asks_for_other_protocol(self) -> bool:
        # CONNECT does as well, but that is refused.
        return bool(self._parser.should_upgrade()) and self._parser.get_method() != b"CONNECT"
