"""The table in `state.py` is what happens: no other change of state occurs, and each that it lists does."""

import asyncio
import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.server.connections import METRICS, Wire, in_a_loop
from webhook.server.http import state
from webhook.server.http.connection import Connection
from webhook.server.http.guards import Guards
from webhook.server.http.message import Head, HttpResponse, RefusedError
from webhook.server.http.port import Handlers, Port
from webhook.server.http.state import State
from webhook.server.http.turns import PAUSE_SECONDS

ROWS = re.findall(r"^\| (\w+) \| (\w+) \|", state.__doc__ or "", re.MULTILINE)[1:]
LISTED = {
    (before, State[after])
    for name, after in ROWS
    for before in (State if name == "any" else [State[name]])
    if before is not State.CLOSED
}
GUARDS = Guards(largest_body=3000, largest_head=600, largest_bytes_in_flight=5000, largest_connections=3)


class Watched(Connection):
    """Keeps every change of its state."""

    changes: set[tuple[State, State]]

    @property
    def state(self) -> State:
        return self._state

    @state.setter
    def state(self, value: State) -> None:
        before = getattr(self, "_state", value)
        self._state = value
        if before is not value:
            self.changes = getattr(self, "changes", set()) | {(before, value)}


class StrictWire(Wire):
    """Nothing may be written after it was closed."""

    def write(self, data: Any) -> None:
        assert not self.closed
        super().write(data)


class Driven:
    """A port that responds as the path of a request says, its connections, and what a client or the server may do."""

    def __init__(self) -> None:
        self.later: list[asyncio.Future[HttpResponse]] = []
        handlers = Handlers(self._respond, self._accept, self._accept_body)
        self.port = Port(handlers, GUARDS, METRICS)
        self.changes: set[tuple[State, State]] = set()
        self.wires: list[StrictWire] = []
        self.connections: list[Watched] = []
        self.connect()

    def connect(self) -> None:
        self.connections.append(Watched(self.port))
        self.wires.append(StrictWire())
        self.connections[-1].connection_made(self.wires[-1])

    def send(self, data: bytes) -> None:
        if not self.wires[-1].closed:
            self.connections[-1].data_received(data)

    async def serve(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        while self.port.turns:
            await asyncio.sleep(PAUSE_SECONDS)

    def finish(self, error: Exception | None = None) -> None:
        for one in self.later:
            if not one.done() and error:
                one.set_exception(error)
            elif not one.done():
                one.set_result(HttpResponse(200, b"later"))

    def expire(self) -> None:
        self.port.close_expired(max((one.expires for one in self.connections), default=0.0))

    def lose(self) -> None:
        for one in self.connections:
            one.connection_lost(None)
            self.changes |= getattr(one, "changes", set())
        self.connections, self.wires = [], []
        self.connect()

    def pause(self) -> None:
        self.connections[-1].pause_writing()

    def resume(self) -> None:
        self.connections[-1].resume_writing()

    def _respond(self, head: Head, body: bytes, _began: float) -> "HttpResponse | asyncio.Future[HttpResponse]":
        if head.path == b"/bug":
            raise RuntimeError("put in by a test")
        if head.path == b"/later":
            self.later.append(asyncio.get_running_loop().create_future())
            return self.later[-1]
        return HttpResponse(200, body)

    def _accept(self, head: Head, _names: frozenset[str]) -> None:
        if head.path == b"/no":
            raise RefusedError(403, "no")

    def _accept_body(self, _size: int, beginning: bytes | bytearray) -> None:
        if beginning.startswith(b"!"):
            raise RefusedError(413, "no")


def message(path: str, body: bytes = b"", *headers: bytes, method: str = "POST", length: bool = True) -> bytes:
    more = [b"Content-Length: %d" % len(body)] if length else []
    return b"\r\n".join([f"{method} {path} HTTP/1.1".encode(), b"Host: x", *headers, *more, b"", body])


FAST = message("/fast", b"body")
CHUNKED = message("/fast", b"3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n", b"Transfer-Encoding: chunked", length=False)
MESSAGES = [
    FAST,
    CHUNKED,
    message("/later", b"body"),
    message("/later", b"1\r\nx\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", length=False),
    message("/bug"),
    message("/no", b"body"),
    message("/fast", b"!" * 20),
    message("/fast", b"x" * 2900),
    message("/fast", b"x" * 3100),
    message("/fast", b"", b"Connection: close"),
    message("/fast", b"body", b"Expect: 100-continue"),
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

ACTIONS: list[Callable[[Driven], object]] = [
    Driven.serve,
    Driven.serve,
    Driven.finish,
    lambda driven: driven.finish(RuntimeError("put in by a test")),
    Driven.expire,
    Driven.pause,
    Driven.resume,
    Driven.connect,
    Driven.lose,
    lambda driven: driven.port.drain(0.0),
]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Some messages in a row, with a few bytes changed, added or lost."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


@st.composite
def plays(draw: st.DrawFn) -> list[bytes | Callable[[Driven], object]]:
    """Reads of pieces of a stream, and between them whatever else may happen."""
    play: list[bytes | Callable[[Driven], object]] = []
    for data in draw(st.lists(streams(), min_size=1, max_size=3)):
        cuts = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=4))})
        for start, end in itertools.pairwise(cuts):
            play += [data[start:end], *draw(st.lists(st.sampled_from(ACTIONS), max_size=2))]
    return play


async def run(play: list[bytes | Callable[[Driven], object]]) -> Driven:
    driven = Driven()
    for step in play:
        if isinstance(step, bytes):
            driven.send(step)
        elif asyncio.iscoroutine(result := step(driven)):
            await result
    await driven.serve()
    driven.finish()
    driven.lose()
    await driven.serve()
    driven.lose()
    for one in driven.later:
        with suppress(asyncio.CancelledError):
            one.exception()
    return driven


@settings(max_examples=150)
@given(play=plays())
@in_a_loop
async def test_no_other_change_occurs_and_nothing_is_kept(play: list[bytes | Callable[[Driven], object]]) -> None:
    driven = await run(play)
    assert driven.changes <= LISTED
    assert driven.port.bytes_in_flight == 0
    driven.connections[0].connection_lost(None)
    assert (driven.port.connections, driven.port._weight, len(driven.port.turns)) == (0, 0, 0)
    assert all(one.done() for one in driven.later)


EVERY: list[list[bytes | Callable[[Driven], object]]] = [
    [FAST[:10], FAST[10:60], FAST[60:]],
    [MESSAGES[2], Driven.finish, Driven.serve],
    [MESSAGES[2], Driven.expire],
    [FAST[:10], Driven.expire, Driven.expire, Driven.expire],
    [FAST[:-1], Driven.expire, Driven.expire],
    [message("/fast", b"", b"Connection: close")],
]


@in_a_loop
async def test_every_listed_change_occurs() -> None:
    seen: set[tuple[State, State]] = set()
    for play in EVERY:
        seen |= (await run(play)).changes
        for length in range(1, len(play)):
            seen |= (await run(play[:length])).changes
    assert seen == LISTED


@given(data=streams(), cuts=st.lists(st.integers(0, 4000), max_size=6))
@in_a_loop
async def test_how_bytes_are_cut_into_reads_changes_no_response(data: bytes, cuts: list[int]) -> None:
    written = []
    for ends in ([len(data)], sorted({*(cut for cut in cuts if cut < len(data)), len(data)})):
        driven, start = Driven(), 0
        for end in ends:
            driven.send(data[start:end])
            start = end
            for _ in range(4):
                await driven.serve()
                driven.finish()
            await driven.serve()
        written.append(driven.wires[0].written)
        driven.lose()
    assert written[0] == written[1]
