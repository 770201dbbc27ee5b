"""Clients that stall, keep silent, drip or go away, and the good ones beside them."""

import asyncio
import contextlib
import socket
import ssl
import time
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
LET_GO_SECONDS = 5.5
"""Five seconds, and what a busy machine adds."""


class StalledClient(Struct):
    """A client that stalls; a 408 or the end came after `closed_after` seconds, or None where neither came."""

    stage: str
    closed_after: float | None = None


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


async def _stall(stage: str, port: int, context: ssl.SSLContext, request: bytes) -> StalledClient:
    """Open a connection, get stuck at a stage, and wait for the server to say 408 or to close."""
    began = time.monotonic()
    try:
        if stage in {"connected only", "part of a ClientHello"}:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if stage != "connected only":
                writer.write(_make_client_hello(context)[:40])
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
            began = time.monotonic()
            head = request.index(b"\r\n\r\n") + 4
            sent = {"part of a head": 50, "part of a body": head + 100, "body, a byte a second": head}.get(stage, 0)
            writer.write(request[:sent])
            if stage.endswith("a second"):
                return await _send_slowly(stage, reader, writer, request[sent:], began)
        return await _wait_until_closed(stage, reader, writer, began)
    except OSError:
        return StalledClient(stage, time.monotonic() - began)


async def _send_slowly(
    stage: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes, began: float
) -> StalledClient:
    ended = asyncio.ensure_future(reader.read(1))
    for byte in rest:
        writer.write(bytes([byte]))
        done, _ = await asyncio.wait([ended], timeout=1)
        if done or time.monotonic() - began > PATIENCE:
            break
    if not ended.done():
        ended.cancel()
        return StalledClient(stage)
    writer.close()
    return StalledClient(stage, time.monotonic() - began)


async def _wait_until_closed(
    stage: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, began: float
) -> StalledClient:
    try:
        async with asyncio.timeout(PATIENCE):
            await reader.read(1)
    except TimeoutError:
        return StalledClient(stage)
    finally:
        writer.close()
    return StalledClient(stage, time.monotonic() - began)


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
        asyncio.ensure_future(_stall(stage, server.port, context, request))
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
        times = [one.closed_after for one in stalled if one.stage == stage]
        closed = [seconds for seconds in times if seconds is not None]
        note = (
            f"{len(closed)} of {len(times)} let go after {min(closed, default=0):.1f} to {max(closed, default=0):.1f} s"
        )
        rows.append((f"{len(times)} stalled: {stage}", "", "", "", "", "", "", note))
    rows.append((f"{silent} silent, then used once", str(silent), str(silent - used), "0", "", "", "", ""))
    worst = max(reused.max_ms, fresh.max_ms)
    holding = [one for one in stalled if one.closed_after is None or one.closed_after > LET_GO_SECONDS]
    bars = [
        make_bar(
            f"good clients beside {6 * each} stalled and {silent} silent: worst answer",
            "<= 50 ms",
            f"{worst:.1f} ms",
            met=worst <= 50,
            of_load=True,
        ),
        make_bar(
            f"stalled clients let go (408 or closed) within {LET_GO_SECONDS} s",
            "all",
            f"{len(stalled) - len(holding)} of {len(stalled)}",
            met=not holding,
        ),
        make_bar("silent connections used once at the end", "all answered", f"{used} of {silent}", met=used == silent),
        make_loss_bar("good clients beside stalled ones", reused.not_answered + fresh.not_answered),
        make_correctness_bar("good clients beside stalled ones", reused, fresh),
    ]
    return make_table("Slow and silent clients", (), rows, bars, usage.foreign_cores)


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
