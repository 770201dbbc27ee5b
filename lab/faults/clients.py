"""Clients that stall, keep silent, drip or go away, and the good ones beside them."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lab.bench.load import Report, start_load, wait_for_load, write_cases
from lab.bench.processes import count_open_files, measure_tree
from lab.bench.reviews import make_renewal_case
from lab.bench.servers import Running, make_own_server, run_server
from lab.bench.table import Table
from lab.faults.watched import make_bar, make_correctness_bar, make_loss_bar, make_row, make_table, run_under_load

STALLS = (
    "connected only",
    "part of a ClientHello",
    "part of a head",
    "part of a body",
    "head, a byte a second",
    "body, a byte a second",
)
PATIENCE = 20.0
LEAST_SECONDS, LET_GO_SECONDS = 4.0, 5.5
"""Five seconds, and what a busy machine adds; who is let go at once did not stall."""
CLOSED = "closed"
TIMED_OUT = "408"


class StalledClient(Struct, frozen=True):
    """A client that stalls, and what it got `after` so many seconds.

    `ended` is `TIMED_OUT`, `CLOSED`, another answer, the error of a connection that never came about, or "" where
    nothing came.
    """

    stage: str
    ended: str = ""
    after: float = 0.0

    @property
    def is_let_go(self) -> bool:
        """True if the server waited for it, and then no longer."""
        return self.ended in (TIMED_OUT, CLOSED) and LEAST_SECONDS <= self.after <= LET_GO_SECONDS


def _request(body: bytes) -> bytes:
    return (
        b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )


def _make_client_hello(context: ssl.SSLContext) -> bytes:
    out = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return out.read()


async def stall(stage: str, port: int, context: ssl.SSLContext, request: bytes) -> StalledClient:
    """Open a connection, get stuck at a stage, and wait for the server to say 408 or to close."""
    is_plain = stage in {"connected only", "part of a ClientHello"}
    try:
        reader, writer = await (
            asyncio.open_connection("127.0.0.1", port) if is_plain else _connect_silently(port, context)
        )
    except OSError as error:
        return StalledClient(stage, repr(error))
    began = time.monotonic()
    try:
        if is_plain:
            if stage != "connected only":
                writer.write(_make_client_hello(context)[:40])
            ended = await _wait_for_end(reader)
        else:
            head = request.index(b"\r\n\r\n") + 4
            sent = {"part of a head": 50, "part of a body": head + 100, "body, a byte a second": head}.get(stage, 0)
            writer.write(request[:sent])
            is_slow = stage.endswith("a second")
            ended = await (_send_slowly(reader, writer, request[sent:]) if is_slow else _wait_for_end(reader))
    finally:
        writer.close()
    return StalledClient(stage, ended, time.monotonic() - began)


async def _send_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes) -> str:
    """Send a byte a second until something comes; return what it was."""
    ending = asyncio.ensure_future(_wait_for_end(reader))
    for byte in rest:
        writer.write(bytes([byte]))
        done, _ = await asyncio.wait([ending], timeout=1)
        if done:
            break
    return await ending


async def _wait_for_end(reader: asyncio.StreamReader) -> str:
    """Return what comes within the patience of a client."""
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read(100)
    except TimeoutError:
        return ""
    except ConnectionError:
        return CLOSED
    except OSError as error:
        return repr(error)
    if not answer:
        return CLOSED
    return TIMED_OUT if answer.startswith(b"HTTP/1.1 408 ") else repr(answer[:30])


async def _connect_silently(port: int, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")


async def _use(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes) -> bool:
    reader, writer = connection
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
        return answer.startswith(b"HTTP/1.1 200")
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    finally:
        writer.close()


async def _hold_connections(
    server: Running, stalled_each: int, silent: int, work: Path, seconds: float
) -> tuple[list[Report], list[StalledClient], int]:
    """Park the silent, start the stalled, load with good clients; then use each silent connection once."""
    context = ssl.create_default_context(cafile=str(server.certificate_authority))
    request = _request(make_renewal_case().body)
    parked = []
    for start in range(0, silent, 50):
        parked += await asyncio.gather(
            *(_connect_silently(server.port, context) for _ in range(min(50, silent - start)))
        )
    stalling = [
        asyncio.ensure_future(stall(stage, server.port, context, request))
        for stage in STALLS
        for _ in range(stalled_each)
    ]
    await asyncio.sleep(1)
    cases = write_cases([make_renewal_case()], work / "good")
    loads = [
        start_load(server, "open", cases, "-rate", "100", "-duration", f"{seconds}s"),
        start_load(server, "open", cases, "-rate", "20", "-duration", f"{seconds}s", "-new-connections"),
    ]
    reports = await asyncio.gather(*(asyncio.to_thread(wait_for_load, load) for load in loads))
    stalled = await asyncio.gather(*stalling)
    used = [await _use(connection, request) for connection in parked]
    return list(reports), list(stalled), sum(used)


def stall_clients(work: Path, *, short: bool) -> Table:
    """Hold 300 stalled and 900 silent connections, and load with good clients beside them."""
    each, silent, seconds = (10, 100, 7.0) if short else (50, 900, 15.0)
    with run_server(make_own_server(), work / "server", workers=2) as server, measure_tree(server.pid) as usage:
        (reused, fresh), stalled, used = asyncio.run(_hold_connections(server, each, silent, work, seconds))
        rows = [
            make_row("good clients, kept-alive", server, reused),
            make_row("good clients, a new connection each", server, fresh),
        ]
    for stage in STALLS:
        those = [one for one in stalled if one.stage == stage]
        rows.append((f"{len(those)} stalled: {stage}", "", "", "", "", "", "", _describe_stalled(those)))
    rows.append((f"{silent} silent, then used once", str(silent), str(silent - used), "0", "", "", "", ""))
    worst = max(reused.max_ms, fresh.max_ms)
    let_go = sum(one.is_let_go for one in stalled)
    bars = [
        make_bar(
            f"good clients beside {6 * each} stalled and {silent} silent: worst answer",
            "<= 50 ms",
            f"{worst:.1f} ms",
            met=worst <= 50,
            of_load=True,
        ),
        make_bar(
            f"stalled clients let go (408 or closed) after {LEAST_SECONDS:g} to {LET_GO_SECONDS} s",
            "all",
            f"{let_go} of {len(stalled)}",
            met=let_go == len(stalled),
        ),
        make_bar("silent connections used once at the end", "all answered", f"{used} of {silent}", met=used == silent),
        make_loss_bar("good clients beside stalled ones", reused.not_answered + fresh.not_answered),
        make_correctness_bar("good clients beside stalled ones", reused, fresh),
    ]
    return make_table("Slow and silent clients", (), rows, bars, usage.foreign_cores)


def _describe_stalled(those: Sequence[StalledClient]) -> str:
    """Return how many were let go and when, and what another one got."""
    times = [one.after for one in those if one.is_let_go]
    others = [one for one in those if not one.is_let_go]
    other = f"; another: {others[0].ended or 'nothing'} after {others[0].after:.1f} s" if others else ""
    first, last = min(times, default=0), max(times, default=0)
    return f"{len(times)} of {len(those)} let go after {first:.1f} to {last:.1f} s{other}"


def _abort(server: Running, context: ssl.SSLContext, request: bytes, how: int) -> None:
    """Go away in the handshake, in the head, in the body or before the answer, by FIN or by reset."""
    plain = socket.create_connection(("127.0.0.1", server.port), 5)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0" if how % 2 else b"\0" * 8)
    moment = how // 2 % 4
    if moment == 0:
        plain.sendall(_make_client_hello(context)[:100])
        plain.close()
        return
    secure = context.wrap_socket(plain, server_hostname="localhost")
    length = {1: 60, 2: len(request) // 2, 3: len(request)}[moment]
    secure.sendall(request[:length])
    secure.close()


def abort_clients(work: Path, *, short: bool) -> Table:
    """Close or reset connections in the middle of anything, which leaves nothing behind."""
    count = 200 if short else 4000
    request = _request(make_renewal_case().body)
    with run_server(make_own_server(), work / "server", workers=2) as server:
        context = ssl.create_default_context(cafile=str(server.certificate_authority))
        time.sleep(1)
        before = sum(count_open_files(pid) for pid in server.workers)
        with run_under_load(server, work, 5 if short else 30) as load:
            for number in range(count):
                _abort(server, context, request, number)
        time.sleep(7)  # as long as a handshake may take, and a little
        after = sum(count_open_files(pid) for pid in server.workers)
        tracebacks = server.log.count("Traceback")
        rows = [make_row(f"{count} aborts", server, load.report, f"open files {before} before, {after} after")]
    # The load's last idle connections may still be in the kernel's hands; a leak would show thousands.
    bars = [
        make_bar("client aborts: file descriptors left behind", "0", str(after - before), met=after <= before),
        make_bar("client aborts: tracebacks", "0", str(tracebacks), met=tracebacks == 0),
        make_loss_bar("client aborts, others", load.report.not_answered),
        make_correctness_bar("client aborts", load.report),
    ]
    return make_table("Client aborts", (), rows, bars, load.spent.foreign_cores)
