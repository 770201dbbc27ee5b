"""The requests of a connection: uvicorn's HTTP/1.1 protocol with every guard that it lacks.

It leans on names inside uvicorn (the parser callbacks), which is why uvicorn is pinned exactly and each guard
has a test.

What is overridden, and why:
- data_received: a request with a known head is answered without the parser; an endless head is refused; a bug of ours
  is a 500 and not uvicorn's "400 Invalid HTTP request".
- on_message_begin, on_header: no ASGI scope is built, because no ASGI application stands behind this.
- on_headers_complete: everything that can be refused from the head is refused before a body is read.
- on_body: bodies are capped while they arrive, one by one and all together.
- on_message_complete: requests are answered here: no task, no queue, one write.
After an answer, or after some time without one, the rest of a read waits until others had their turn. A connection
that has ever sent more than that at once is served in turns from then on, so that many such connections do not get one
answer each before anybody else.
"""

import abc
import asyncio
import time
from typing import Final

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from webhook.api.bulk import may_be_a_review
from webhook.server.http.connection import Connection
from webhook.server.http.message import NO_HEAD, Answer, Head, Problem, head_problem, head_size, message
from webhook.server.http.port_state import Load
from webhook.server.http.turns import STEP, STEP_OF_CHUNKS, STEPS_SECONDS
from webhook.server.settings import WIDE_CONNECTION, WIDE_READ

MUCH: Final = 1024 * 1024
"""Bytes of a body after which memory is given back."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_SHORT_HEAD: Final = 2048
_ABOUT_UPGRADE: Final = frozenset({b"upgrade", b"connection", b"http2-settings"})


def _first_head(data: bytes) -> int:
    """How many bytes to parse first where a request begins: its head, if that is short."""
    end = data.find(_END_OF_HEAD, 0, _SHORT_HEAD)
    return STEP if end < 0 else end + len(_END_OF_HEAD)


class GuardedProtocol(Connection, abc.ABC):
    """A connection; subclasses say how they answer."""

    def __init__(self, load: Load, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(load, config, state, loop)
        self.head = NO_HEAD
        self.begun = 0.0
        self._in_head = False
        self._fresh = 0  # bytes of this read that may belong to the next request's head
        self._seen = 0  # bytes read since the request began
        self._answers = 0
        self._in_turns = False  # it has pipelined before, or sent a request that takes long to parse
        self._answered: Head | None = None  # the head of the last request of this read that was answered at once

    # What subclasses say.

    @abc.abstractmethod
    def answer(self, body: bytes) -> Answer:
        """Answer it; must not raise, wait or block."""

    def refusal(self) -> Problem | None:
        """A reason of the subclass to refuse any request on this connection."""
        return None

    # What is read.

    def data_received(self, data: bytes) -> None:
        """Parse; whatever goes wrong ends this connection only."""
        if self._refused:
            return
        if len(data) > WIDE_READ and self.weight == 1:
            self.load.opened(self, WIDE_CONNECTION - 1)
        if self._unread:
            self._unread = bytes(self._unread) + data
            return
        at_boundary = not self._open
        if at_boundary:
            known = self.load.known_heads.find(data)
            if known is not None and self._may_answer(known[0]):
                self._answer_known(*known)
                return
        if self._in_turns:
            self._wait(data)
            return
        self._answered = None
        if self._is_one_piece(data):
            self._parse(data)
            return
        rest = self._parse_a_little(data)
        if rest:
            self._in_turns = True
            self._wait(rest)
        elif at_boundary and self._answered is not None:
            self.load.known_heads.remember(data, self._answered)

    def _is_one_piece(self, data: bytes) -> bool:
        """Whether a read is the head of one request and no more, or nothing but a body: no other request is in it."""
        if self._open:
            return not self._in_head and len(data) <= self.head.length - self._held
        return len(data) == _first_head(data)

    def take_turn(self) -> bool:
        """Parse some of what a read had beyond its first request."""
        if not self._unread or self.flow.write_paused:
            return False
        self._unread = self._parse_a_little(self._unread)
        if self._unread:
            return True
        if not self._refused:
            self.flow.resume_reading()
        return False

    def _wait(self, rest: bytes | memoryview) -> None:
        """Read no more from this client until what is left of a read had its turns."""
        self._unread = rest
        self.flow.pause_reading()
        self.load.turns.queue(self, self.loop)

    def _parse_a_little(self, data: bytes | memoryview) -> bytes | memoryview:
        """Parse up to an answer, or for STEPS_SECONDS, and return the rest; a body with a length is one piece."""
        view, answers, until = memoryview(data), self._answers, time.monotonic() + STEPS_SECONDS
        size = self._step() if self._open or isinstance(data, memoryview) else _first_head(data)
        while view and self._answers == answers and not self._refused:
            self._parse(bytes(view[:size]))
            view = view[size:]
            size = self._step()
            if time.monotonic() >= until:
                break
        return b"" if self._refused else view

    def _step(self) -> int:
        if not self._open or self._in_head:
            return STEP
        return max(STEP, self.head.length - self._held) if self.head.length else STEP_OF_CHUNKS

    def _may_answer(self, head: Head) -> bool:
        """Whether nothing on this connection, and no load, speaks against a head that was fine before."""
        return self.load.has_room(head.length) and self.refusal() is None

    def _answer_known(self, head: Head, body: bytes) -> None:
        self.begun = time.monotonic()
        self.head = head
        try:
            self._reply(body, close=self._draining)
        except Exception as bug:  # noqa: BLE001 - whatever it is, it ends this connection only
            self._met_bug(bug)

    def _parse(self, data: bytes) -> None:
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

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        """A request begins."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self.begun = time.monotonic()
        self.body = None
        self._open = self._in_head = True
        self._seen = self._fresh

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; after the body it is a trailer, which nobody reads."""
        if self._in_head:
            self.headers.append((name.lower(), value))
        elif not self._refused:
            self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        """Refuse what can be refused from the head."""
        self._in_head = False
        if self._refused or self._asks_for_other_protocol():
            return
        head = self.head = Head.of(self.parser.get_method(), self.url, self.headers)
        problem = (
            self._size_problem(head)
            or head_problem(head, self.headers, self.parser.get_http_version())
            or self.refusal()
        )
        if problem is not None:
            self.refuse(*problem)
            return
        if head.method == b"CONNECT":
            self.refuse(405, "this is not a proxy")
            return
        self.body = b""
        if b"expect" in head.fields:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, within the caps."""
        if self._refused:
            return
        self._count(len(body))
        if self._refused:
            return
        # One piece stays as it is; more become one buffer, because small pieces cost more than what they hold.
        if not self.body:
            self.body = body
        elif isinstance(self.body, bytearray):
            self.body += body
        else:
            self.body = bytearray(self.body + body)
        if not may_be_a_review(max(self.head.length, self._held), self.body):
            self.refuse(413, "a body of this size must begin as an API server begins a review")

    def on_message_complete(self) -> None:
        """The request is whole: answer it."""
        if self._asks_for_other_protocol():
            return
        self._open = False
        self._fresh = 0
        self._release()
        if self._refused:
            return
        body, self.body = bytes(self.body or b""), None
        if len(body) > MUCH:
            self.load.has_freed_much = True
        close = self._draining or not self.parser.should_keep_alive()
        self._reply(body, close=close)
        self._answered = None if close else self.head

    # What becomes of it.

    def _reply(self, body: bytes, *, close: bool) -> None:
        """Answer at once, in one write."""
        self._answers += 1
        self.transport.write(message(self.answer(body), b"connection: close\r\n" if close else b""))
        if close:
            self._close()
        else:
            self._rest()

    def _size_problem(self, head: Head) -> Problem | None:
        limit = self.guards.largest_head
        # Only a request that began in the middle of a read has no count.
        if not 0 < self._seen <= limit and head_size(self.url, self.headers) > limit:
            return 431, "the head of the request is too large"
        if head.length > self.guards.largest_body:
            return 413, "the body is too large"
        if not self.load.has_room(head.length):
            return 503, "too many bytes are being read"
        return None

    def _look_at_half_a_head(self, data: bytes) -> None:
        """What the parser has not refused although nothing good can follow."""
        if self._seen > self.guards.largest_head:
            self.refuse(431, "the head of the request is too large")
        elif self._seen == self._fresh == len(data):  # only then `data` begins with this head
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
        self._parse(b"\r\n".join([first, *others, b"", rest]))

    def _fail(self, error: httptools.HttpParserCallbackError) -> None:
        """A callback raised: we have a bug."""
        self._met_bug(error.__context__)
