"""A server that does a part of ours: `python -m lab.bench.echo PART PORT DIRECTORY` (tls.crt, tls.key).

`echo`: event loop, TLS, httptools and a constant answer; `connection`: our connections, guards and known heads with a
constant answer; `verdict`: reviews as well, and nothing records them.
"""

import asyncio
import ssl
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httptools
import uvloop

from webhook.admission.policy.file import load
from webhook.server.http.connection import Connection
from webhook.server.http.message import HttpResponse, Request, to_bytes
from webhook.server.http.port import Port
from webhook.server.reviewer import Reviewer
from webhook.server.settings import Guards

CONSTANT = HttpResponse(
    200, b'{"apiVersion":"admission.k8s.io/v1"}'.ljust(200), b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
)


class Echo(asyncio.Protocol):
    """A protocol that parses requests, and looks at nothing."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment] # it is one that writes
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.transport.write(to_bytes(CONSTANT, close=False))


def choose_protocol(part: str) -> Callable[[], asyncio.Protocol]:
    if part == "echo":
        return Echo
    reviewer = Reviewer(load(None))

    def respond(request: Request) -> HttpResponse:
        if part == "connection":
            return CONSTANT
        response = reviewer.review(request.body, request.head.variables)
        return HttpResponse(
            response.status,
            response.body,
            f"HTTP/1.1 {response.status}\r\ncontent-type: {response.content_type}\r\n".encode(),
        )

    return partial(Connection, Port(respond, Guards(), lambda *_: None))


async def serve(part: str, port: int, directory: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    server = await asyncio.get_running_loop().create_server(choose_protocol(part), "127.0.0.1", port, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
