"""Connections on a transport that only keeps what it is given: the server without sockets."""

import asyncio
import functools
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from flask import Flask

from tests.factories import make_lease, make_review
from webhook.admission.policy.file import PolicyFile
from webhook.server.app import ReviewApp, make_review_app
from webhook.server.http.connection import Connection
from webhook.server.http.message import HttpResponse, Request
from webhook.server.http.port import Port
from webhook.server.http.round_robin import PAUSE_SECONDS
from webhook.server.http.state import ANSWERING
from webhook.server.service import Service
from webhook.server.settings import Guards, Options
from webhook.server.worker import WsgiServer

BODY = json.dumps(make_review(new=make_lease())).encode()
PLAIN = (b"Host: localhost", b"Content-Type: application/json", b"Content-Length: %d" % len(BODY))

P = ParamSpec("P")


def request(line: bytes = b"POST /validate?timeout=10s HTTP/1.1", *headers: bytes, body: bytes = BODY) -> bytes:
    return b"\r\n".join([line, *(headers or PLAIN), b"", body])


REVIEW = request()


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that needs a running loop."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Wire(asyncio.Transport):
    """Keeps what the server writes, and whether it closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.aborted = False
        self.reads = True

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


def served(**options: Any) -> WsgiServer:
    """Return what a worker serves, by the functions that production calls, but for its certificate."""
    chosen = Options(**options)
    return WsgiServer(
        make_review_app(Service(chosen, PolicyFile(None))),
        chosen.guards,
        addresses=[("localhost", 8443), ("localhost", 8081)],
        client_names=frozenset(chosen.client_names),
    )


def take_the_long_way(server: WsgiServer) -> WsgiServer:
    """Have Flask route every review and make its objects for it."""
    app = server.app
    assert isinstance(app, ReviewApp)
    setattr(app, "wsgi_app", functools.partial(Flask.wsgi_app, app))  # noqa: B010 - types forbid it
    return server


def uncounted(_counter: str, *_labels: str) -> None:
    """Do nothing."""


def make_port(respond: Callable[[Request], HttpResponse] | None = None, **options: Any) -> Port:
    """The reviews' port, or one that responds by `respond`."""
    return Port(respond, options.get("guards", Guards()), uncounted) if respond else served(**options).ports[0]


def connect(to: Port) -> tuple[Connection, Wire]:
    connection, wire = Connection(to), Wire()
    connection.connection_made(wire)
    return connection, wire


async def settled(to: Port, connection: Connection | None = None) -> None:
    """Return when nothing waits for its turn, nor this connection for a response."""
    while to.round_robin or (connection is not None and connection.state in ANSWERING):
        await asyncio.sleep(PAUSE_SECONDS)


async def heard(to: Port, reads: list[bytes]) -> tuple[bytes, bool]:
    """Return what one connection hears when its bytes come in these reads, and whether the server closed it."""
    connection, wire = connect(to)
    for data in reads:
        if not wire.closed:
            connection.data_received(data)
        await settled(to, connection)
    was_closed = wire.closed
    connection.connection_lost(None)
    return wire.written, was_closed


def statuses(written: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", written)]
