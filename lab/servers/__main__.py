"""`make servers`: ten kinds of hostile clients, a new certificate and the CPU of a review, for each server.

Each row has servers of its own, because a client of one row may hold what another row needs. The table goes into
docs/design.md, the raw values into results.json.
"""

import argparse
import contextlib
import importlib.metadata
import json
import re
import select
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lab.bench.load import run_load, write_cases
from lab.bench.processes import measure_tree
from lab.bench.servers import Running, Server, run_server
from lab.bench.tables.kinds import list_cases
from tests.server.harness import make_certificates
from tools.circumstances import Circumstances, find_circumstances
from tools.docs.pages import DOCS

RESULTS: Final = Path(__file__).with_name("results.json")
PAGE: Final = DOCS / "design.md"
START: Final = "<!-- written by make servers -->"
END: Final = "<!-- end of what make servers writes -->"
SECONDS: Final = 20.0
"""Watched at most; `-` in the table is a connection that is open then."""
MAX_SENT: Final = 64 * 1024 * 1024
IDLE: Final = 1500
HALF_HEADS: Final = 64
ROUNDS: Final = 5
HEAD: Final = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY: Final = list_cases()["takeover"][0].body
REVIEW: Final = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


class Results(Struct, frozen=True):
    """Versions by server, and the behavior of each server by row."""

    circumstances: Circumstances
    versions: dict[str, str]
    rows: dict[str, dict[str, str]]


def _make_server(name: str, package: str, *arguments: str) -> Server:
    def build_command(port: int, _workers: int, work: Path) -> list[str]:
        values = {"port": port, "tls": work / "tls"}
        return [sys.executable, "-m", *(argument.format(**values) for argument in arguments)]

    return Server(name, lambda: Path(sys.executable), lambda: importlib.metadata.version(package), build_command)


_FLASK: Final = "webhook.server.app:create_app()"
_ASGI: Final = "lab.servers.asgi:app"
_GUNICORN: Final = (
    "gunicorn", "--no-control-socket", "--workers=1", "--timeout=5", "--worker-connections=1000",
    "--bind=127.0.0.1:{port}", "--certfile={tls}/tls.crt", "--keyfile={tls}/tls.key", "--log-level=critical",
)  # fmt: skip
SERVERS: Final = (
    _make_server(
        "serve", "lease-webhook", "webhook", "serve", "--workers=1", "--bind=127.0.0.1:{port}",
        "--health-bind=127.0.0.1:0", "--tls-dir={tls}",
    ),
    _make_server("gunicorn gthread, Flask", "gunicorn", *_GUNICORN, "--worker-class=gthread", "--threads=8", _FLASK),
    _make_server("gunicorn asgi", "gunicorn", *_GUNICORN, "--worker-class=asgi", _ASGI),
    _make_server(
        "granian WSGI, Flask", "granian", "granian", "--interface=wsgi", "--factory", "--port={port}",
        "--host=127.0.0.1", "--ssl-certificate={tls}/tls.crt", "--ssl-keyfile={tls}/tls.key",
        "--http1-header-read-timeout=5000", "--backpressure=1000", "--no-ws", "--log-level=critical",
        "webhook.server.app:create_app",
    ),
    _make_server(
        "uvicorn", "uvicorn", "uvicorn", "--port={port}", "--ssl-certfile={tls}/tls.crt", "--ssl-keyfile={tls}/tls.key",
        "--limit-concurrency=1000", "--timeout-keep-alive=5", "--no-access-log", "--log-level=critical", _ASGI,
    ),
)  # fmt: skip
"""Each with the strictest options that it has."""


def connect(server: Running, timeout: float = 5) -> ssl.SSLSocket:
    """Return a connection after its handshake."""
    context = ssl.create_default_context(cafile=str(server.certificate_authority))
    plain = socket.create_connection(("127.0.0.1", server.port), timeout)
    return context.wrap_socket(plain, server_hostname="localhost")


def wait_until_closed(connection: socket.socket, drip: Iterator[bytes]) -> str:
    """Send a piece each second; return the seconds until the server closes, and its last status."""
    began, answer = time.monotonic(), b""
    connection.settimeout(1)
    while time.monotonic() - began < SECONDS:
        try:
            connection.sendall(next(drip, b""))
            while select.select([connection], [], [], 1)[0]:
                piece = connection.recv(65536)
                answer += piece
                if not piece:
                    raise ConnectionResetError
        except TimeoutError:
            continue
        except OSError:
            status = re.findall(rb"HTTP/1\.1 (\d{3})", answer)
            words = f" ({status[-1].decode()})" if status else ""
            return f"{time.monotonic() - began:.0f} s{words}"
    return "-"


def _measure_silent_tcp(server: Running) -> str:
    return wait_until_closed(socket.create_connection(("127.0.0.1", server.port), 5), iter(()))


def _measure_after_handshake(*pieces: bytes, drip: bytes = b"") -> Callable[[Running], str]:
    def measure(server: Running) -> str:
        connection = connect(server)
        for piece in pieces:
            connection.sendall(piece)
        return wait_until_closed(connection, iter([drip[at : at + 1] for at in range(len(drip))]))

    return measure


def _flood(begin: bytes, piece: bytes) -> Callable[[Running], str]:
    """Send without end; return how much the server takes, and its reply."""

    def measure(server: Running) -> str:
        connection, sent = connect(server), 0
        connection.settimeout(5)
        with contextlib.suppress(OSError):
            connection.sendall(begin)
            while sent < MAX_SENT and not select.select([connection], [], [], 0)[0]:
                connection.sendall(piece)
                sent += len(piece)
        answer = b""
        with contextlib.suppress(OSError):
            answer = connection.recv(65536)
        status = answer[9:12].decode()
        amount = f"{sent / 2**20:.1f} MiB" if sent < MAX_SENT else f"all {MAX_SENT // 2**20} MiB"
        return f"{status or 'closed'} after {amount}" if sent < MAX_SENT else f"{amount} taken"

    return measure


def _claim(server: Running) -> str:
    connection = connect(server)
    connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n{" % (200 * 2**20))
    connection.settimeout(5)
    try:
        return connection.recv(65536)[9:12].decode() or "closed"
    except TimeoutError:
        return "waits for it"
    except OSError:
        return "closed"


def _measure_honest(server: Running) -> str:
    """Return how long a new client waits for its review."""
    began = time.monotonic()
    try:
        with connect(server, 10) as connection:
            connection.sendall(REVIEW)
            status = connection.recv(65536)[9:12].decode()
    except OSError:
        return "not served within 10 s"
    return f"{(time.monotonic() - began) * 1000:.0f} ms" if status == "200" else f"gets {status or 'nothing'}"


def _measure_beside(count: int, sent: bytes) -> Callable[[Running], str]:
    """Return how a new client fares beside many that have sent this."""

    def measure(server: Running) -> str:
        connections = []
        with contextlib.suppress(OSError):
            for _ in range(count):
                connection = connect(server, 2)
                connection.sendall(sent)
                connections.append(connection)
        answer = _measure_honest(server)
        for connection in connections:
            connection.close()
        return answer if len(connections) == count else f"{answer}; {len(connections)} had a handshake"

    return measure


def _measure_deaf(server: Running) -> str:
    """Pipeline reviews as a client that does not read; return the seconds until it is cut off."""
    connection, began = connect(server), time.monotonic()
    connection.setblocking(False)
    unsent = memoryview(REVIEW * 2000)
    while time.monotonic() - began < SECONDS:
        try:
            unsent = unsent[connection.send(unsent) :] or memoryview(REVIEW * 2000)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            time.sleep(0.1)
        except OSError:
            return f"{time.monotonic() - began:.0f} s"
    return "-"


def _check_new_certificate(server: Running) -> str:
    with connect(server) as connection:
        before = connection.getpeercert(binary_form=True)
    make_certificates(server.work / "tls")
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        try:
            with connect(server) as connection:
                if connection.getpeercert(binary_form=True) != before:
                    return f"{time.monotonic() - began:.0f} s"
        except OSError:
            pass  # the authority is new as well, so the old certificate is refused
        time.sleep(0.5)
    return "-"


ROWS: Final[dict[str, Callable[[Running], str]]] = {
    "TCP, then silence": _measure_silent_tcp,
    "TLS, then silence": _measure_after_handshake(),
    "half a head, then silence": _measure_after_handshake(HEAD),
    "a head, a byte each second": _measure_after_handshake(drip=REVIEW),
    "half a body, then silence": _measure_after_handshake(REVIEW[:-100]),
    "a body, a byte each second": _measure_after_handshake(REVIEW[:-200], drip=REVIEW[-200:]),
    "Content-Length of 200 MiB": _claim,
    "a chunked body without end": _flood(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n"
    ),
    "a header without end": _flood(HEAD + b"X: ", b"x" * 65536),
    "reviews without end, none of whose answers is read": _measure_deaf,
    f"a new client beside {HALF_HEADS} half heads": _measure_beside(HALF_HEADS, HEAD),
    f"a new client beside {IDLE} idle ones": _measure_beside(IDLE, b""),
    "a new certificate is served after": _check_new_certificate,
}


def watch(name: str, server: Server, work: Path) -> str:
    """Return one cell of the table."""
    try:
        with run_server(server, work) as started:
            return ROWS[name](started)
    except (OSError, RuntimeError) as error:
        return f"failed: {error}"[:60]


def measure_costs(work: Path) -> dict[str, str]:
    """Return the CPU of a takeover, in rounds by turns, as a ratio to `serve`."""
    file = write_cases(list_cases()["takeover"], work / "cases")
    micros: dict[str, list[float]] = {server.name: [] for server in SERVERS}
    with contextlib.ExitStack() as stack:
        everyone = [
            stack.enter_context(run_server(one, work / f"cpu-{number}", cpus="0")) for number, one in enumerate(SERVERS)
        ]
        for running in everyone:
            run_load(running, "closed", file, "-requests", "500", cpus="1")
        for _ in range(ROUNDS):
            for running in everyone:
                with measure_tree(running.pid) as usage:
                    report = run_load(running, "closed", file, "-duration", "0.7s", "-connections", "8", cpus="1")
                micros[running.server.name].append(usage.cpu / report.sent * 1e6)
    ours = micros[SERVERS[0].name]
    costs = {}
    for name, each in micros.items():
        ratio = statistics.median(other / mine for other, mine in zip(each, ours, strict=True))
        costs[name] = f"{statistics.median(each):.0f} us ({ratio:.2f})"
    return costs


def _is_installed(server: Server) -> bool:
    try:
        server.version()
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def make_table(results: Results) -> str:
    """Return the rows in Markdown."""
    names = list(results.versions)
    head = " | ".join(f"{name} {version}" for name, version in results.versions.items())
    rows = [f"| {row} | {' | '.join(cells[name] for name in names)} |" for row, cells in results.rows.items()]
    measured = f"Measured {results.circumstances}."
    return "\n".join([measured, "", f"| client | {head} |", "|---" * (len(names) + 1) + "|", *rows, ""])


def main() -> int:
    """Measure, print the table, and write it."""
    argparse.ArgumentParser(prog="python -m lab.servers", description=__doc__.partition("\n")[0]).parse_args()
    missing = [server.name for server in SERVERS if not _is_installed(server)]
    if missing:
        print(f"not installed: {', '.join(missing)}; `make servers` installs them", file=sys.stderr)
        return 1
    rows: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="lease-webhook-") as directory:
        work = Path(directory)
        for number, row in enumerate(ROWS):
            with ThreadPoolExecutor(len(SERVERS)) as pool:
                cells = pool.map(
                    lambda server, row=row, number=number: watch(row, server, work / f"{number}-{server.name[:12]}"),
                    SERVERS,
                )
                rows[row] = dict(zip((one.name for one in SERVERS), cells, strict=True))
            print(row, json.dumps(rows[row]), flush=True)
        rows["CPU of a takeover (ratio to serve)"] = measure_costs(work)
    results = Results(find_circumstances(), {one.name: one.version() for one in SERVERS}, rows)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(f"{before}{START}\n{make_table(results)}{END}{rest.partition(END)[2]}")
    print(make_table(results))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
