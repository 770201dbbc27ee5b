"""Clients that send as much as they may, in the way that costs most, and the good ones beside them."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from msgspec import Struct

from lab.bench.processes import read_memory_mib
from lab.bench.reviews import make_renewal_case
from lab.bench.servers import Running, make_own_server, run_server
from lab.bench.table import Bar, Table
from lab.faults.hostile_bodies import BODIES
from lab.faults.watched import make_bar, make_correctness_bar, make_loss_bar, make_row, make_table, run_under_load

HEAD: Final = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
MAX_MS: Final = 250
MEMORY_MIB: Final = 256


def connect(server: Running) -> ssl.SSLSocket:
    """Return a connection after its handshake."""
    context = ssl.create_default_context(cafile=str(server.certificate_authority))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 30), server_hostname="localhost")


def post(server: Running, body: bytes) -> str:
    """Return the status of the answer; a body that is refused while it is sent gets it as well."""
    answer = _exchange(server, body)
    if not answer:
        return "closed"
    status = answer[9:12].decode()
    if b'"allowed":true' in answer:
        return f"{status}, allowed"
    return f"{status}, denied" if status == "200" else status


def _exchange(server: Running, body: bytes) -> bytes:
    """Return what the server says about a body; nothing if it closes instead."""
    with connect(server) as connection:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            return connection.recv(65536)
    return b""


def _connect_plain(server: Running) -> socket.socket:
    return socket.create_connection(server.health_address, 30)


class Traffic(Struct, frozen=True):
    """The bytes that a crowd could send, and those of the answers: without any, it was not served."""

    sent: int
    received: int

    def __str__(self) -> str:
        return f"{self.sent / 1e6:.1f} MB sent, {self.received:,} bytes of answers"


def _pipeline(connections: list[socket.socket], request: bytes, count: int, seconds: float) -> Traffic:
    """Send the same request again and again on each connection, whether answers are read or not."""
    until = time.monotonic() + seconds
    for connection in connections:
        connection.setblocking(False)
    data = request * count
    unsent = dict.fromkeys(connections, data)
    total_sent = total_received = 0
    while time.monotonic() < until:
        for connection in connections:
            with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError, OSError):
                sent = connection.send(unsent[connection])
                unsent[connection] = unsent[connection][sent:] or data
                total_sent += sent
            with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, OSError):
                while piece := connection.recv(1024 * 1024):
                    total_received += len(piece)
        time.sleep(0.01)
    for connection in connections:
        connection.close()
    return Traffic(total_sent, total_received)


def _scrape(server: Running, seconds: float) -> Traffic:
    request = b"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n"
    return _pipeline([_connect_plain(server) for _ in range(4)], request, 8000, seconds)


def _ask_unknown_paths(server: Running, seconds: float) -> Traffic:
    return _pipeline([connect(server) for _ in range(10)], b"GET /x HTTP/1.1\r\nHost:\r\n\r\n", 9000, seconds)


def _send_bad_media(server: Running, seconds: float) -> Traffic:
    request = b"POST /validate HTTP/1.1\r\nHost:\r\nContent-Length: 2\r\n\r\n{}"
    return _pipeline([connect(server) for _ in range(10)], request, 5000, seconds)


def _send_reviews(server: Running, seconds: float) -> Traffic:
    body = make_renewal_case().body
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    return _pipeline([connect(server) for _ in range(4)], request, 100, seconds)


def _send_small_chunks(server: Running, seconds: float) -> Traffic:
    """Send one body until it is refused, or the time is over."""
    chunks, sent, received = b"2\r\nxx\r\n" * 20_000, 0, 0
    with connect(server) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                connection.sendall(chunks)
                sent += len(chunks)
            connection.sendall(b"0\r\n\r\n")
        with contextlib.suppress(OSError):
            received = len(connection.recv(65536))
    return Traffic(sent, received)


def _send_hostile_bodies(server: Running, seconds: float) -> Traffic:
    """Send by four clients at a time, each with the next body, until every one was sent or the time is over."""
    until = time.monotonic() + seconds

    def send(make: Callable[[], bytes]) -> Traffic:
        if time.monotonic() >= until:
            return Traffic(0, 0)
        body = make()
        return Traffic(len(body), len(_exchange(server, body)))

    with ThreadPoolExecutor(4) as clients:
        results = list(clients.map(send, BODIES.values()))
    return Traffic(sum(one.sent for one in results), sum(one.received for one in results))


CROWDS: Final[dict[str, Callable[[Running, float], Traffic]]] = {
    "8,000 scrapes in one write, 4 connections": _scrape,
    "9,000 unknown paths in one write, 10 connections": _ask_unknown_paths,
    "5,000 reviews of no media type in one write, 10 connections": _send_bad_media,
    "100 reviews in one write, 4 connections": _send_reviews,
    "a body in chunks of two bytes": _send_small_chunks,
    "hostile bodies, four at a time": _send_hostile_bodies,
}


def crowd(work: Path, *, short: bool) -> Table:
    """Review at 100/s on one worker while others send thousands of requests at once."""
    seconds = 4.0 if short else 10.0
    rows, bars, foreign = [], [], 0.0
    for number, (name, attack) in enumerate(CROWDS.items()):
        with run_server(make_own_server(), work / f"server-{number}") as server:
            with run_under_load(server, work, seconds + 1, rate=100) as load:
                traffic = attack(server, seconds)
            (worker,) = server.workers
            memory = read_memory_mib(worker)
            rows.append(make_row(name, server, load.report, f"{traffic}; {memory:.0f} MiB afterwards"))
        foreign = max(foreign, load.spent.foreign_cores)
        worst = load.report.max_ms
        bars += [
            make_bar(
                f"{name}: worst answer of others",
                f"<= {MAX_MS} ms",
                f"{worst:.0f} ms",
                met=worst <= MAX_MS,
                of_load=True,
            ),
            make_bar(f"{name}: memory", f"<= {MEMORY_MIB} MiB", f"{memory:.0f} MiB", met=memory <= MEMORY_MIB),
            make_bar(f"{name}: answers to the crowd", "> 0 bytes", str(traffic.received), met=traffic.received > 0),
            make_loss_bar(name, load.report.not_answered),
            make_correctness_bar(name, load.report),
        ]
    return make_table("Crowds of requests", (), rows, bars, foreign)


def _open_idle(server: Running, count: int, body: bytes) -> list[ssl.SSLSocket]:
    connections = []
    for _ in range(count):
        connection = connect(server)
        if body:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            connection.recv(300)
        connections.append(connection)
    return connections


def hold_idle(work: Path, *, short: bool) -> Table:
    """Hold connections that have sent much, or nothing, and keep quiet; then all of them go."""
    count = 300 if short else 1500
    rows, bars = [], []
    for name, body in (("sent 250 kB each", b" " * 250_000), ("sent nothing", b"")):
        with run_server(make_own_server(), work / name.replace(" ", "-")) as server:
            (worker,) = server.workers
            before = read_memory_mib(worker)
            connections = _open_idle(server, count, body)
            during = read_memory_mib(worker)
            with run_under_load(server, work, 2, rate=50) as load:
                pass
            for connection in connections:
                connection.close()
            time.sleep(3)
            after = read_memory_mib(worker)
            note = f"{before:.0f} MiB before, {during:.0f} MiB during, {after:.0f} MiB after"
            rows.append(make_row(f"{count} idle connections that {name}", server, load.report, note))
        bars += [
            make_bar(
                f"{count} idle connections that {name}: memory",
                f"<= {MEMORY_MIB} MiB",
                f"{during:.0f} MiB",
                met=during <= MEMORY_MIB,
            ),
            make_bar(
                f"after {count} idle connections that {name}: memory",
                "<= 100 MiB",
                f"{after:.0f} MiB",
                met=after <= 100,
            ),
            make_loss_bar(f"idle connections that {name}", load.report.not_answered),
        ]
    return make_table("Idle connections", (), rows, bars, load.spent.foreign_cores)


def cut_heads(work: Path, *, short: bool) -> Table:
    """Send two reviews in three writes, cut anywhere: both are answered."""
    body = make_renewal_case().body.rstrip()[:-1] + b"\r\n}"
    data = (HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body) * 2
    half = len(data) // 2
    cuts = [(half - 5, half + size) for size in (1, 4, 16, 25, 26, 60, len(HEAD), len(HEAD) + 10)]
    answered = 0
    with run_server(make_own_server(), work / "server") as server:
        for first, second in cuts:
            with connect(server) as connection:
                for piece in (data[:first], data[first:second], data[second:]):
                    connection.sendall(piece)
                    time.sleep(0.1)
                answer = b""
                while answer.count(b"HTTP/1.1 ") < 2 and (piece := connection.recv(65536)):
                    answer += piece
                answered += answer.count(b"HTTP/1.1 200")
    bars = (
        Bar(
            "pipelined reviews cut by a read: answered",
            "all",
            f"{answered} of {2 * len(cuts)}",
            answered == 2 * len(cuts),
        ),
    )
    return Table("Pipelined reviews cut by a read", (), ("",), (), bars)
