"""A fault that was not there, or that ended the program, is no bar that was met."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from lab import hour
from lab.bench import servers
from lab.bench.servers import Running
from lab.bench.table import Table
from lab.faults import certificates, clients, clock, hostile_clients, output, signals
from lab.faults.clients import CLOSED, TIMED_OUT, StalledClient
from lab.tests.fakes import FakeServer, make_fake_server, make_run_server, run_no_load
from tests.waiting import wait_for

LATE = 0.4


@pytest.fixture
def server(tmp_path: Path) -> FakeServer:
    return make_fake_server(tmp_path)


@contextmanager
def fail(*_: object, **__: object) -> Iterator[None]:
    raise RuntimeError("the load failed")
    yield


def has_client() -> bool:
    return any(isinstance(one, certificates.Handshaker) for one in threading.enumerate())


def find_bar(table: Table, text: str) -> tuple[str, bool]:
    (bar,) = [bar for bar in table.bars if text in bar.what]
    return bar.measured, bar.met


@pytest.mark.parametrize("fault", [certificates.swap_certificates, certificates.break_files])
def test_no_client_outlives_a_load_that_fails(
    fault: Callable[..., Table], server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "run_server", make_run_server(server))
    monkeypatch.setattr(certificates, "run_under_load", fail)
    with pytest.raises(RuntimeError, match="the load failed"):
        fault(tmp_path, short=True)
    assert not has_client()


def test_without_a_handshake_none_of_them_has_succeeded(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "run_server", make_run_server(server))
    monkeypatch.setattr(certificates, "run_under_load", run_no_load)
    monkeypatch.setattr(certificates.Handshaker, "run", lambda _: None)
    monkeypatch.setattr(certificates, "has_reached", lambda *_: True)
    monkeypatch.setattr("time.sleep", lambda _: None)
    table = certificates.swap_certificates(tmp_path, short=True)
    assert find_bar(table, "failed handshakes") == ("0 of 0", False)


def fill_disk(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: Callable[[int, int], None]
) -> Table:
    monkeypatch.setattr(output, "run_server", make_run_server(server))
    monkeypatch.setattr(output, "run_under_load", run_no_load)
    monkeypatch.setattr(output, "list_tree", lambda _: [])
    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return output.fill_disk(tmp_path, short=True)


def test_a_worker_that_was_replaced_is_counted(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fill_disk(server, tmp_path, monkeypatch, server.replace_worker)
    assert find_bar(table, "is replaced") == ("2, 1 new", True)


def test_a_worker_that_is_missing_is_not_counted(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fill_disk(server, tmp_path, monkeypatch, lambda pid, _: server.workers.remove(pid))
    assert find_bar(table, "is replaced") == ("1, 0 new", False)


def test_a_clock_that_cannot_be_moved_is_a_bar_that_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    measured, met = find_bar(clock.jump_clock(tmp_path, short=True), "run")
    assert measured.startswith("no: ")
    assert not met


@pytest.mark.parametrize(
    ("ended", "after", "is_let_go"),
    [
        pytest.param(TIMED_OUT, 5.0, True, id="a 408 in time"),
        pytest.param(CLOSED, 5.0, True, id="closed in time"),
        pytest.param(CLOSED, 0.1, False, id="closed at once"),
        pytest.param(CLOSED, 9.0, False, id="closed late"),
        pytest.param("b'HTTP/1.1 200 OK'", 5.0, False, id="another answer"),
        pytest.param("ConnectionRefusedError()", 5.0, False, id="never connected"),
        pytest.param("", 20.0, False, id="nothing"),
    ],
)
def test_a_stalled_client_is_let_go_by_a_408_or_a_close_in_time(ended: str, after: float, is_let_go: bool) -> None:
    assert StalledClient("connected only", ended, after).is_let_go == is_let_go


async def stall_at(answer: bytes) -> tuple[StalledClient, StalledClient]:
    """Return what becomes of two clients: one connects, one never could."""

    async def let_go(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(LATE)
        writer.write(answer)
        writer.close()

    context = cast("Any", None)  # before TLS
    async with await asyncio.start_server(let_go, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        connected = await clients.stall("connected only", port, context, b"")
    return connected, await clients.stall("connected only", port, context, b"")


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        pytest.param(b"HTTP/1.1 408 Request Timeout\r\n\r\n", TIMED_OUT, id="a 408"),
        pytest.param(b"", CLOSED, id="the end"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", repr(b"HTTP/1.1 200 OK\r\n\r\n"), id="a 200"),
    ],
)
def test_what_ends_a_stalled_client_is_told(answer: bytes, ended: str) -> None:
    connected, refused = asyncio.run(stall_at(answer))
    assert connected.ended == ended
    assert connected.after >= LATE
    assert refused.ended.startswith("ConnectionRefusedError")


@pytest.mark.parametrize(("received", "met"), [(1, True), (0, False)])
def test_a_crowd_that_got_no_answer_was_none(
    received: int, met: bool, server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def run_one_worker(*_: object, **__: object) -> Iterator[FakeServer]:
        server.workers = [2]
        yield server

    monkeypatch.setattr(hostile_clients, "run_server", run_one_worker)
    monkeypatch.setattr(hostile_clients, "run_under_load", run_no_load)
    monkeypatch.setattr(hostile_clients, "read_memory_mib", lambda _: 30.0)
    crowds = {"a crowd": lambda *_: hostile_clients.Traffic(10**6, received)}
    monkeypatch.setattr(hostile_clients, "CROWDS", crowds)
    assert find_bar(hostile_clients.crowd(tmp_path, short=True), "answers to the crowd") == (str(received), met)


def test_a_stopped_worker_goes_on_though_the_program_fails(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    def sleep(seconds: float) -> None:
        if signal.SIGSTOP in sent:
            raise KeyboardInterrupt

    monkeypatch.setattr(signals, "run_server", make_run_server(server))
    monkeypatch.setattr(signals, "run_under_load", run_no_load)
    monkeypatch.setattr(os, "kill", lambda _, number: sent.append(number))
    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        signals.stop_worker(tmp_path, short=True)
    assert sent == [signal.SIGSTOP, signal.SIGCONT]


PARENT = """\
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_server_that_does_not_end_leaves_no_worker_behind() -> None:
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    worker = int(process.stdout.readline())
    servers.stop(process, patience=0.1)
    process.stdout.close()
    wait_for("the end of the worker", lambda: not is_alive(worker))
    assert process.returncode == -signal.SIGKILL


def test_a_command_that_does_not_end_is_killed() -> None:
    process = subprocess.Popen([sys.executable, "-c", PARENT.replace("os.fork()", "1")], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        hour.end(process, patience=0.1)
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL


def test_a_hostile_body_that_is_cut_off_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut:
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def sendall(self, _: bytes) -> None:
            raise BrokenPipeError

        def recv(self, _: int) -> bytes:
            raise ConnectionResetError

    monkeypatch.setattr(hostile_clients, "connect", lambda _: Cut())
    assert hostile_clients.post(cast("Running", SimpleNamespace()), b"{}") == "closed"
