"""One connection with a client that may be hostile: uvicorn's HTTP/1.1 protocol with every guard that it lacks.

It leans on names inside uvicorn (`cycle`, `flow`, `pipeline`, the parser callbacks), which is why uvicorn is pinned
exactly and each guard has a test. uvicorn's own timers are not used: `expires` is one number for each connection,
which the worker's sweep compares with the clock, so there is no timer that could outlive a connection.

What is overridden, and why:
- connection_made, connection_lost: a connection that never sends a request is closed as well; counts are given back.
- data_received: an endless head is refused; a bug of ours is a 500 and not uvicorn's "400 Invalid HTTP request".
- on_message_begin, on_header: no ASGI scope is built for a request that never reaches an ASGI application.
- on_headers_complete: everything that can be refused from the head is refused before a body is read.
- on_body: bodies are capped while they arrive, one by one and all together.
- on_message_complete: reviews are answered here: no task, no queue, one write.
- on_response_complete, shutdown: keep-alive and draining by `expires`, and a drain that serves one more request.
- pause_writing, resume_writing: a client that does not read its answers is not read from.
"""

import abc
import asyncio
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from webhook.server.http_message import Answer, Problem, head_problem, head_size, message
from webhook.server.load import Load
from webhook.server.logs import LOG

CLOSE_SECONDS: Final = 2
"""How long a client may take to let go after we closed."""
_ABOUT_UPGRADE: Final = frozenset({b"upgrade", b"connection", b"http2-settings"})


class GuardedProtocol(HttpToolsProtocol, abc.ABC):
    """A connection; subclasses say which requests they answer at once."""

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
        self.begun = 0.0
        self.head: dict[bytes, bytes] = {}
        self.parts: list[bytes] | None = None
        self._open = False
        self._in_head = False
        self._fresh = 0  # bytes of this read that may belong to the next request's head
        self._seen = 0  # bytes read since the request began
        self._held = 0
        self._waiting = False
        self._refused = False
        self._closing = False
        self._draining = False

    # What subclasses say.

    @abc.abstractmethod
    def answers_at_once(self) -> bool:
        """Whether this request, whose head is complete, is answered by `answer` and not by the ASGI application."""

    @abc.abstractmethod
    def answer(self, body: bytes) -> Answer:
        """Answer it; must not raise, wait or block."""

    def refusal(self) -> Problem | None:
        """A reason of the subclass to refuse any request on this connection."""
        return None

    # The connection.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock: silence after the handshake ends at keep-alive."""
        super().connection_made(transport)  # type: ignore[arg-type] # uvicorn narrows it to Transport
        self.expires = time.monotonic() + self.guards.keep_alive_seconds

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what this connection held."""
        self._release()
        super().connection_lost(exc)
        # uvicorn cancels it only without an exception; a reset connection would be kept for keep-alive seconds.
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Parse; whatever goes wrong ends this connection only."""
        if self._refused:
            return
        self._fresh = len(data)
        if self._open:
            self._seen += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            self._fail(error)
        except httptools.HttpParserError:
            self.refuse(400, "not an HTTP/1.1 request")
        if not self._open:
            return
        if self._in_head:
            self._look_at_half_a_head(data)
        if not self._refused:
            self.expires = self.begun + self.guards.request_seconds
            if not self._waiting:
                self._waiting = True
                self.load.metrics.waiting(1)

    def pause_writing(self) -> None:
        """The client does not read: do not read from it either, and do not wait for ever."""
        super().pause_writing()
        self.flow.pause_reading()
        self.expires = time.monotonic() + self.guards.request_seconds

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self.flow.resume_reading()
        if not self._open and not self._closing:
            self._rest()

    def expire(self) -> None:
        """Called by the sweep when `expires` has passed."""
        if self._closing or self.flow.write_paused or self._app_is_answering():
            self.transport.abort()
        elif self._open and not self._refused:
            self.refuse(408, "the request took too long")
        else:
            self._close()

    def shutdown(self) -> None:
        """The server stops: answer one more request on an idle connection, then close it."""
        self._draining = True
        if self._app_is_answering():
            super().shutdown()
        else:
            self.expires = min(self.expires, time.monotonic() + self.guards.drain_seconds)

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        """A request begins."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self.begun = time.monotonic()
        self.parts = None
        self._open = self._in_head = True
        self._seen = self._fresh

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; after the body it is a trailer, which nobody reads."""
        if self._in_head:
            self.headers.append((name.lower(), value))
        elif not self._refused:
            self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """Refuse, or choose who answers."""
        self._in_head = False
        if self._refused or self._asks_for_other_protocol():
            return
        head = self.head = dict(self.headers)
        problem = (
            self._size_problem(head)
            or head_problem(head, self.headers, self.parser.get_http_version())
            or self.refusal()
        )
        if problem is not None:
            self.refuse(*problem)
            return
        if self.parser.get_method() == b"CONNECT":
            self.refuse(405, "this is no proxy")
        elif not self._app_is_answering() and self.answers_at_once():
            self.parts = []
            if b"expect" in head:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        else:
            self._hand_to_app()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, within the caps."""
        if self._refused:
            return
        self._count(len(body))
        if self._refused:
            return
        if self.parts is None:
            super().on_body(body)
        else:
            self.parts.append(body)

    def on_message_complete(self) -> None:
        """The request is whole: answer it."""
        if self._asks_for_other_protocol():
            return
        self._open = False
        self._fresh = 0
        self._release()
        if self._refused:
            return
        parts = self.parts
        if parts is None:
            super().on_message_complete()
            return
        self.parts = None
        answer = self.answer(parts[0] if len(parts) == 1 else b"".join(parts))
        close = self._draining or not self.parser.should_keep_alive()
        self.transport.write(message(answer, b"connection: close\r\n" if close else b""))
        if close:
            self._close()
        else:
            self._rest()

    def on_response_complete(self) -> None:
        """The application has answered; uvicorn starts the next one that waits, or its timer, which we do not want."""
        super().on_response_complete()
        self._unset_keepalive_if_required()
        if not self.transport.is_closing() and not self._open:
            self._rest()

    # The way out.

    def refuse(self, status: int, text: str) -> None:
        """Answer what is no review, and close: nobody knows where a next request would begin."""
        if self._refused:
            return
        self._refused = True
        self.parts = None
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.load.metrics.shed()
        else:
            self.load.metrics.refused(self.kinds[status])
        self.load.complain(status, text, self.client)
        self._release()
        if self._app_is_answering():
            # An earlier request of this connection is still being answered; ours would stand in its place.
            self.transport.abort()
            return
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

    def _size_problem(self, head: dict[bytes, bytes]) -> Problem | None:
        limit = self.guards.largest_head
        # Only a request that began in the middle of a read has no count.
        if not 0 < self._seen <= limit and head_size(self.url, self.headers) > limit:
            return 431, "the head of the request is too large"
        length = int(head.get(b"content-length", 0))
        if length > self.guards.largest_body:
            return 413, "the body is too large"
        if self.load.bytes_in_flight + length > self.guards.largest_bytes_in_flight:
            return 503, "too many bytes are being read"
        return None

    def _count(self, size: int) -> None:
        self._held += size
        self.load.bytes_in_flight += size
        if self._held > self.guards.largest_body:
            self.refuse(413, "the body is too large")
        elif self.load.bytes_in_flight > self.guards.largest_bytes_in_flight:
            self.refuse(503, "too many bytes are being read")

    def _release(self) -> None:
        self.load.bytes_in_flight -= self._held
        self._held = 0
        if self._waiting:
            self._waiting = False
            self.load.metrics.waiting(-1)

    def _hand_to_app(self) -> None:
        """Everything else goes to the ASGI application, behind whatever it still answers on this connection."""
        url, headers, expects = self.url, self.headers, b"expect" in self.head
        super().on_message_begin()
        self.url = url
        self.headers.extend(headers)
        self.expect_100_continue = expects
        self.expires = self.begun + self.guards.request_seconds
        super().on_headers_complete()
        if self._draining:
            self.cycle.keep_alive = False

    def _app_is_answering(self) -> bool:
        cycle: Any = self.cycle  # uvicorn types it as never None; it is, until the application gets a request
        return cycle is not None and not cycle.response_complete

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

    def _look_at_half_a_head(self, data: bytes) -> None:
        """What the parser has not refused although nothing good can follow."""
        if self._seen > self.guards.largest_head:
            self.refuse(431, "the head of the request is too large")
        elif self._seen == self._fresh:
            line, end, _ = data.lstrip(b"\r\n").partition(b"\r\n")
            if end and not line.endswith((b" HTTP/1.1", b" HTTP/1.0")):
                self.refuse(400, "not an HTTP/1.1 request")

    def _asks_for_other_protocol(self) -> bool:
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def _ignore_upgrade(self, rest: bytes) -> None:
        """RFC 9110 7.8: a server may ignore Upgrade. httptools drops the body then, so it gets the head without it."""
        if self._refused:
            return
        if dict(self.headers).get(b"upgrade", b"").lower() == b"websocket":
            self.refuse(400, "there are no websockets here")
            return
        first = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        others = (b"%b: %b" % header for header in self.headers if header[0] not in _ABOUT_UPGRADE)
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join([first, *others, b"", rest]))

    def _fail(self, error: httptools.HttpParserCallbackError) -> None:
        """A callback raised: the application's target does not parse, or we have a bug."""
        cause = error.__context__
        if isinstance(cause, httptools.HttpParserInvalidURLError):
            self.refuse(400, "the request's target is no path")
            return
        LOG.error("a connection met a bug", exc_info=cause)
        self.refuse(500, "a connection met a bug")


def sweep(connections: set[Any], now: float) -> None:
    """Let go of every connection whose time has passed."""
    for connection in [one for one in connections if now >= one.expires]:
        connection.expire()
