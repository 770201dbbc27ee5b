"""Clients that stop sending, or vanish, at every point of a request: what is whole is answered, all is freed."""

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.server.conftest import Start
from tests.server.harness import Server, client_context, connections, make_certificates
from tests.server.traffic import REVIEW
from tests.waiting import PATIENCE, wait_for

HEAD = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
WHOLE = HEAD % (b"/validate", len(REVIEW)) + REVIEW
PROBE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
GUARDS = {"request_seconds": 20.0, "keep_alive_seconds": 60.0}
"""So that no guard is what closes a connection here."""


@pytest.fixture(scope="module")
def server(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    tls_dir = tmp_path_factory.mktemp("half-closed")
    make_certificates(tls_dir)
    with start(tls_dir, guards=GUARDS) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_is_kept(server: Server) -> Iterator[None]:
    yield
    worker = server.workers()[0]
    wait_for("all connections to be gone", lambda: connections(worker) == 0)
    wait_for("nothing in flight", lambda: server.metric("lease_webhook_in_flight") == 0)


class Tls:
    """A client that can end its half of a TLS connection and go on reading."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(server.reviews, PATIENCE)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = client_context(server.ca).wrap_bio(self._in, self._out, server_hostname="localhost")
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._exchange()
        self.socket.sendall(self._out.read())

    def send(self, data: bytes) -> None:
        self._tls.write(data)
        self.socket.sendall(self._out.read())

    def end(self) -> None:
        """Send close_notify."""
        with suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        self.socket.sendall(self._out.read())

    def read_to_the_end(self) -> bytes:
        """Return what still comes, until the server has closed as well."""
        heard = b""
        while True:
            try:
                piece = self._tls.read()
            except ssl.SSLWantReadError:
                if not self._exchange():
                    return heard
                continue
            except ssl.SSLZeroReturnError:
                return heard
            if not piece:
                return heard
            heard += piece

    def _exchange(self) -> bytes:
        self.socket.sendall(self._out.read())
        data = self.socket.recv(65536)
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()
        return data


POINTS = {
    "before a request": b"",
    "within a head": WHOLE[:40],
    "after a head": HEAD % (b"/validate", len(REVIEW)),
    "within a body": WHOLE[:-10],
    "after a request": WHOLE,
    "within a second request": WHOLE + WHOLE[:40],
}


@pytest.mark.parametrize("point", POINTS)
def test_a_client_that_ends_its_half(server: Server, point: str) -> None:
    client = Tls(server)
    client.send(POINTS[point])
    client.end()
    heard = client.read_to_the_end()
    client.socket.close()
    assert heard.count(b"HTTP/1.1 200 ") == POINTS[point].count(WHOLE)
    assert heard.count(b"HTTP/1.1 ") == heard.count(b"HTTP/1.1 200 "), "nothing else is said to half a request"


@pytest.mark.parametrize("point", POINTS)
def test_a_client_that_is_gone(server: Server, point: str) -> None:
    client = Tls(server)
    client.send(POINTS[point])
    # A reset, without close_notify.
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def test_a_client_that_is_gone_while_another_thread_makes_its_response(server: Server) -> None:
    for _ in range(20):
        client = Tls(server)
        client.send(HEAD % (b"/elsewhere", 2) + b"{}")
        client.socket.close()


def test_a_client_that_does_not_close_after_a_refusal(server: Server) -> None:
    """It neither reads the refusal nor answers our close_notify."""
    client = Tls(server)
    worker = server.workers()[0]
    wait_for("the connection", lambda: connections(worker) == 1)
    client.send(b"BAD\r\n\r\n")
    wait_for("the server to close it", lambda: connections(worker) == 0)
    client.socket.close()


@pytest.mark.parametrize(
    ("sent", "responses"),
    [
        pytest.param(b"", 0, id="nothing"),
        pytest.param(PROBE[:-2], 0, id="half a request"),
        pytest.param(PROBE, 1, id="a request"),
        pytest.param(PROBE + PROBE, 2, id="two requests"),
    ],
)
def test_the_plain_port_answers_whole_requests(server: Server, sent: bytes, responses: int) -> None:
    with socket.create_connection(server.health, PATIENCE) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        heard = b""
        while piece := client.recv(65536):
            heard += piece
    assert heard.count(b"HTTP/1.1 200 ") == responses
