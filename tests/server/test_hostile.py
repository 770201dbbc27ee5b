"""Clients that stall, say nothing, do not read, or come and go in crowds: good ones beside them notice nothing."""

import json
import socket
import ssl
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.factories import UID, make_lease, make_review, put, to_bytes
from tests.server.conftest import Start
from tests.server.harness import (
    Server,
    client_context,
    connections,
    make_certificates,
    memory_kib,
)
from tests.server.traffic import HEADERS, REVIEW, Traffic
from tests.waiting import PATIENCE, wait_for

STALLED = 40
SILENT = 150
BURST = 40
WARM_BURSTS = 8
BURSTS = 12
MAX_GROWTH_KIB = 10 * 1024
"""How far one worker's memory may grow over 480 connections. A connection that is kept costs 45 KiB: all, 21 MiB."""

HEAD = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    tls_dir = tmp_path_factory.mktemp("hostile")
    make_certificates(tls_dir)
    with start(tls_dir) as server:
        yield server


def secure(server: Server) -> ssl.SSLSocket:
    """A connection after its handshake."""
    plain = socket.create_connection(server.reviews, PATIENCE)
    return client_context(server.ca).wrap_socket(plain, server_hostname="localhost")


def test_good_clients_beside_stalled_and_silent_ones(server: Server) -> None:
    raw = [socket.create_connection(server.reviews, PATIENCE) for _ in range(STALLED)]
    for client in raw[::2]:
        client.sendall(b"\x16")
    with ThreadPoolExecutor(8) as pool:
        half_heads = list(pool.map(lambda _: secure(server), range(STALLED)))
        half_bodies = list(pool.map(lambda _: secure(server), range(STALLED)))
        silent = list(pool.map(lambda _: secure(server), range(SILENT)))
    for half in half_heads:
        half.sendall(HEAD)
    for half in half_bodies:
        half.sendall(HEAD + b"Content-Length: 4000\r\n\r\n{")
    with Traffic(server, threads=3) as traffic, Traffic(server, threads=1, keep=False) as fresh:
        wait_for("the stalled to be seen", lambda: server.metric("lease_webhook_in_flight") >= 2 * STALLED)
        wait_for("good answers", lambda: traffic.answered > 100 and fresh.answered > 10)
        for half in [*half_heads, *half_bodies]:
            assert half.recv(4096).startswith(b"HTTP/1.1 408 ")
        for client in raw:
            assert client.recv(1) == b""
        answered = traffic.answered
        wait_for("good answers after that", lambda: traffic.answered > answered + 50)
    assert traffic.lost == fresh.lost == fresh.handshakes_failed == []
    # Seconds are generous: other suites share the machine. `lab/faults` prints the real figures.
    assert max(traffic.slowest, fresh.slowest) < 2
    for client in silent:
        client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(REVIEW) + REVIEW)
    for client in silent:
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    for client in [*raw, *half_heads, *half_bodies, *silent]:
        client.close()
    wait_for("nothing in flight", lambda: server.metric("lease_webhook_in_flight") == 0)


def test_bursts_of_connections_leave_no_memory_and_no_connections(server: Server) -> None:
    """Go opens spare connections and resets them unused: what a timer keeps of each shows only here."""
    context = client_context(server.ca)
    worker = server.workers()[0]

    def come_and_go(number: int) -> None:
        plain = socket.create_connection(server.reviews, PATIENCE)
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            if number % 2:
                connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(REVIEW) + REVIEW)
                assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
            # A reset, not an orderly end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def bursts(count: int) -> None:
        for _ in range(count):
            list(pool.map(come_and_go, range(BURST)))

    with ThreadPoolExecutor(8) as pool:
        bursts(WARM_BURSTS)
        before = memory_kib(worker)
        bursts(BURSTS)
        grown = memory_kib(worker) - before
    assert grown < MAX_GROWTH_KIB
    wait_for("all connections to be gone", lambda: connections(worker) == 0)


def test_a_client_that_does_not_read_is_dropped(server: Server) -> None:
    worker = server.workers()[0]
    before = memory_kib(worker)
    labels = {f"label-{number}": "not a label value!" for number in range(300)}
    wordy = json.dumps(make_review(new=make_lease(put("metadata.labels", labels)))).encode()
    assert len(server.post(wordy)[1]) > 10_000
    connection = secure(server)
    # Until the kernel's buffers are full and the server has waited as long as for any request.
    with pytest.raises((ConnectionError, ssl.SSLError)):
        connection.sendall((HEAD + b"Content-Length: %d\r\n\r\n" % len(wordy) + wordy) * 4000)
    connection.close()
    assert memory_kib(worker) - before < 32 * 1024
    wait_for("the connection to be gone", lambda: connections(worker) == 0)


def test_bytes_in_flight_are_bounded(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    guards = {"max_bytes_in_flight": 200_000, "request_seconds": 20.0}
    with start(tmp_path, guards=guards) as server:
        holder = secure(server)
        holder.sendall(HEAD + b"Content-Length: 199000\r\n\r\n" + b" " * 198_000)
        wait_for("the bytes to arrive", lambda: server.metric("lease_webhook_in_flight") == 1)
        connection = server.connect()
        big = REVIEW + b" " * 10_000
        wait_for("no room", lambda: _status(server, big) == 503)
        connection.request("POST", "/validate", big, HEADERS)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("retry-after")) == (503, "1")
        answer.read()
        connection.close()
        wait_for("both to be counted", lambda: server.metric("lease_webhook_shed_total") >= 2)
        holder.close()
        wait_for("room again", lambda: _status(server, big) == 200)


def test_the_largest_body_is_read_and_evaluated(server: Server) -> None:
    review = to_bytes(make_review(new=make_lease()))
    body = review + b" " * (20 * 1024 * 1024 - len(review))
    status, answer = server.post(body)
    assert status == 200
    assert json.loads(answer)["response"]["uid"] == UID


def test_bad_requests_are_logged_seldom(server: Server) -> None:
    already = len(server.said("bad request"))
    for _ in range(30):
        connection = secure(server)
        connection.sendall(b"BAD\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        connection.close()
    assert len(server.said("bad request")) - already <= 3
    wait_for("all to be counted", lambda: server.metric('lease_webhook_malformed_total{class="framing"}') >= 30)


def test_verdicts_go_on_while_nobody_reads_the_log(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with start(tmp_path, lines_waiting=200) as server:
        server.pause_reading()
        denied = REVIEW.replace(b'"leaseDurationSeconds": 15', b'"leaseDurationSeconds": -1')
        connection = server.connect()
        for _ in range(600):
            connection.request("POST", "/validate", denied, HEADERS)
            assert b'"allowed":false' in connection.getresponse().read()
        connection.close()
        wait_for("lost lines to be counted", lambda: server.metric('lease_webhook_dropped_total{what="log"}') > 0)
        server.resume_reading()
        server.wait_for_line("denied", 100)


def _status(server: Server, body: bytes) -> int:
    return server.post(body)[0]
