"""What may happen on a port, in any order: bytes in any pieces, time that passes, clients that do not read or go away.

After each play, whatever it was, the connections have kept to what `Driven` checks.
"""

import asyncio
import logging
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from tests.server.connections import Wire, uncounted
from webhook.server.http import round_robin
from webhook.server.http.connection import Connection
from webhook.server.http.message import Head, HttpResponse, RefusedError, Request
from webhook.server.http.port import Port, Response
from webhook.server.http.state import ANSWERING, STREAMING, TABLE, Event, State
from webhook.server.http.stream import Stream
from webhook.server.logs import LOG
from webhook.server.settings import Guards

LISTED: Final = {(before, event) for before, events in TABLE.items() for event in events}
GUARDS: Final = Guards(max_body=3000, max_head=600, max_bytes_in_flight=5000, max_connections=3)
_HEAD: Final = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r]*\r\n(?:(?!\r\n)[^\r]*\r\n)*?\r\n")
_LENGTH: Final = re.compile(rb"content-length: (\d+)\r\n")
_CHUNK: Final = re.compile(rb"1\r\n(.)\r\n", re.DOTALL)
_EMPTY_LINE: Final = re.compile(rb"\n\r?(?=\n)")
REFUSED: Final = b"refused"
MAX_EXPIRIES: Final = 3
"""After so many times that pass, nothing is open: a request is refused, its rest discarded, the peer cut off."""


OK: Final = b"HTTP/1.1 200 OK\r\n"
MAX_TICKS: Final = 40
"""Turns of the event loop within which a response in blocks is written, unless its client does not read."""


class Watched(Connection):
    """Keeps every event, with the state in which it happened."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.events: set[tuple[State, Event]] = set()

    def _advance(self, event: Event) -> None:
        self.events.add((self.state, event))
        super()._advance(event)


class StrictWire(Wire):
    """Keeps what the client sent too, and whether something was written after it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.was_closed = False

    def write(self, data: Any) -> None:
        # An exception in a callback of the loop would only be logged.
        self.was_closed |= self.closed
        super().write(data)

    def heard(self) -> list[bytes]:
        """The bodies of the responses that the port made, in the order of the wire, and `refused` after them.

        A refusal is the last response, and it closes; a client gets no more responses than it sent heads.
        """
        assert not self.was_closed, "written after it was closed"
        responses: list[bytes] = []
        data, heads = self.written, len(_EMPTY_LINE.findall(self.sent))
        while data:
            head = _HEAD.match(data)
            assert head, data
            data = data[head.end() :]
            if head[1] == b"100":
                continue
            if b"transfer-encoding: chunked\r\n" in head[0]:
                chunks, end, data = data.partition(b"0\r\n\r\n")
                assert end or not data, "a response follows one without an end"
                if end:
                    responses.append(b"".join(_CHUNK.findall(chunks)))
                continue
            length = _LENGTH.search(head[0])
            assert length, head[0]
            body, data = data[: int(length[1])], data[int(length[1]) :]
            assert len(body) == int(length[1])
            if head[1] == b"200":
                responses.append(body)
            else:
                assert not data, "a response follows a refusal"
                assert b"connection: close\r\n" in head[0]
                responses.append(REFUSED)
        assert sum(1 for body in responses if body != REFUSED) <= heads, "more responses than requests"
        return responses


class Driven:
    """A port that responds as the path of a request says, its connections, and what a client or the server may do."""

    def __init__(self) -> None:
        self.later: list[asyncio.Future[HttpResponse | Stream]] = []
        self.streamed: set[asyncio.Future[HttpResponse | Stream]] = set()
        self._feeding: set[asyncio.Task[None]] = set()
        self.port = Port(self._respond, GUARDS, uncounted, self._check_client, self._check_beginning)
        self.events: set[tuple[State, Event]] = set()
        self.wires: list[StrictWire] = []
        self.connections: list[Watched] = []
        self.made: weakref.WeakSet[Watched] = weakref.WeakSet()
        self._requests = 0
        self._answered: list[int] = []
        self.connect()

    def connect(self) -> None:
        self.connections.append(Watched(self.port))
        self.made.add(self.connections[-1])
        self.wires.append(StrictWire())
        self.connections[-1].connection_made(self.wires[-1])

    def send(self, data: bytes) -> None:
        if not self.wires[-1].closed:
            self.wires[-1].sent += data
            self.connections[-1].data_received(data)

    async def serve(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        for _ in range(MAX_TICKS):
            if any(one.state is STREAMING for one in self.connections):
                await asyncio.sleep(0)
        while self.port.round_robin:
            await asyncio.sleep(round_robin.PAUSE_SECONDS)

    def finish(self, error: Exception | None = None) -> None:
        for future in self.later:
            if not future.done() and error:
                future.set_exception(error)
            elif not future.done():
                body = self._numbered(b"later")
                future.set_result(self._streamed(body.body) if future in self.streamed else body)

    def expire(self) -> None:
        self.port.close_expired(max((one.expires for one in self.connections), default=0.0))

    def lose(self) -> None:
        for connection in self.connections:
            connection.connection_lost(None)
            self.events |= connection.events
        for wire in self.wires:
            numbers = [int(body.partition(b" ")[0]) for body in wire.heard() if body != REFUSED]
            assert numbers == sorted(numbers), "responses out of order"
            self._answered += numbers
        self.connections, self.wires = [], []

    def lose_and_connect(self) -> None:
        self.lose()
        self.connect()

    def pause(self) -> None:
        self.connections[-1].pause_writing()

    def resume(self) -> None:
        self.connections[-1].resume_writing()

    async def end(self) -> None:
        """Let time pass until all is closed, and check what must hold whatever happened."""
        await self.serve()
        for _ in range(MAX_EXPIRIES):
            self.expire()
            await self.serve()
        assert all(wire.closed for wire in self.wires), "a connection stays open"
        self.finish()
        self.lose()
        await self.serve()
        for future in self.later:
            with suppress(asyncio.CancelledError):
                future.exception()
        self.later.clear()
        assert len(set(self._answered)) == len(self._answered), "two responses to one request"
        assert self.events <= LISTED
        port = self.port
        assert (port.bytes_in_flight, port.connections, port._weight, len(port.round_robin)) == (0, 0, 0, 0)
        assert not self.made, "a connection is kept"

    def _numbered(self, body: bytes) -> HttpResponse:
        self._requests += 1
        return HttpResponse(200, b"%d %b" % (self._requests, body), OK)

    def _streamed(self, body: bytes) -> Stream:
        """Return these bytes as a response whose blocks come one by one."""
        stream = Stream(HttpResponse(200, b"", OK), asyncio.get_running_loop())

        async def feed() -> None:
            for at in range(len(body)):
                if stream._is_abandoned.is_set():
                    return
                await stream._blocks.put(body[at : at + 1])
            await stream._blocks.put(None)

        task = asyncio.get_running_loop().create_task(feed())
        self._feeding.add(task)
        task.add_done_callback(self._feeding.discard)
        return stream

    def _respond(self, request: Request) -> Response:
        head, body = request.head, request.body
        if head.path == b"/bug":
            raise RuntimeError("put in by a test")
        if head.path in {b"/later", b"/stream"}:
            self.later.append(asyncio.get_running_loop().create_future())
            if head.path == b"/stream":
                self.streamed.add(self.later[-1])
            return self.later[-1]
        return self._numbered(body)

    def _check_client(self, head: Head, _names: frozenset[str]) -> None:
        if head.path == b"/no":
            raise RefusedError(403, "no")

    def _check_beginning(self, _size: int, beginning: bytes | bytearray) -> None:
        if beginning.startswith(b"!"):
            raise RefusedError(413, "no")


@contextmanager
def quiet() -> Iterator[None]:
    """Without pauses, which are for other connections, and without a line for each bug that a play puts in."""
    pause, level = round_robin.PAUSE_SECONDS, LOG.level
    round_robin.PAUSE_SECONDS = 0.0  # type: ignore[misc]
    LOG.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        round_robin.PAUSE_SECONDS = pause  # type: ignore[misc]
        LOG.setLevel(level)


Play = list[bytes | Callable[[Driven], object]]
"""Reads, and what else happens between them."""


async def run(play: Play) -> Driven:
    """Play it, and check at the end."""
    driven = Driven()
    for step in play:
        if isinstance(step, bytes):
            driven.send(step)
        elif asyncio.iscoroutine(result := step(driven)):
            await result
    await driven.end()
    return driven


async def heard_in_pieces(pieces: list[bytes]) -> list[bytes]:
    """Return what one client hears that sends these pieces.

    For which of several reasons the last request is refused depends on the pieces.
    """
    driven = Driven()
    for piece in pieces:
        driven.send(piece)
        await driven.serve()
        while driven.port.round_robin or driven.connections[0].state in ANSWERING:
            driven.finish()
            await driven.serve()
    heard = driven.wires[0].heard()
    await driven.end()
    return heard


def message(path: str, body: bytes = b"", *headers: bytes, method: str = "POST", length: bool = True) -> bytes:
    more = [b"Content-Length: %d" % len(body)] if length else []
    return b"\r\n".join([f"{method} {path} HTTP/1.1".encode(), b"Host: x", *headers, *more, b"", body])


FAST: Final = message("/fast", b"body")
LATER: Final = message("/later", b"body")
STREAM: Final = message("/stream", b"body")
CHUNKED_LATER: Final = message("/later", b"1\r\nx\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", length=False)
CHUNKED: Final = message("/fast", b"1\r\nx\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", length=False)
MESSAGES: Final = [
    FAST,
    LATER,
    STREAM,
    CHUNKED_LATER,
    message("/fast", b"3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n", b"Transfer-Encoding: chunked", length=False),
    CHUNKED,
    message(
        "/fast",
        b"1\r\nx\r\n0\r\n\r\n",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding: chunked",
        length=False,
    ),
    message("/bug"),
    message("/no", b"body"),
    message("/fast", b"!" * 20),
    message("/fast", b"x" * 2900),
    message("/fast", b"x" * 3100),
    message("/fast", b"", b"Connection: close"),
    message("/fast", b"body", b"Expect: 100-continue"),
    message("/fast", b"body", b"Expect: other", b"Expect: 100-continue"),
    message("/fast", b"body", b"Connection: Upgrade", b"Upgrade: h2c"),
    message("/fast", b"", b"Connection: Upgrade", b"Upgrade: websocket"),
    message("x:1", method="CONNECT"),
    message("/fast", b"", b"X: " + b"y" * 700),
    message("/fast", method="GET"),
    b"\r\n",
    b"junk\r\n\r\n",
    b"GET /fast\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]

ACTIONS: Final[list[Callable[[Driven], object]]] = [
    Driven.serve,
    Driven.serve,
    Driven.expire,
    Driven.pause,
    Driven.resume,
    Driven.finish,
    lambda driven: driven.finish(RuntimeError("put in by a test")),
    Driven.connect,
    Driven.lose_and_connect,
    lambda driven: driven.port.drain(0.0),
]
