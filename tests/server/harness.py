"""Starts the real server on free ports with certificates of its own, and stops it by its process id."""

import datetime as dt
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE, wait_for
from webhook.certificates.files import CA_CERTIFICATE, CA_KEY
from webhook.certificates.issue import Issued, create_authority, issue_leaf, list_service_names, save

ROOT = Path(__file__).parents[2]

NAMES = list_service_names("lease-webhook", "lease-webhook")


def make_certificates(directory: Path, days: float = 90, age: float = 0) -> Issued:
    """A CA and a leaf, as `lease-webhook certs` made them `age` days ago."""
    directory.mkdir(parents=True, exist_ok=True)
    now = dt.datetime.now(dt.UTC) - dt.timedelta(days=age)
    authority = create_authority(now)
    save(directory, authority, CA_KEY, CA_CERTIFICATE)
    save(directory, issue_leaf(authority, NAMES, days, now))
    return authority


def client_context(ca: Path) -> ssl.SSLContext:
    """Return what kube-apiserver does: trust one CA and nothing else."""
    return ssl.create_default_context(cafile=str(ca))


class Server:
    """A running server; `lines` are its log lines so far, decoded."""

    def __init__(self, process: "subprocess.Popen[bytes]", ca: Path) -> None:
        self.process = process
        self.ca = ca
        self.lines: list[dict[str, Any]] = []
        self.errors = b""
        self._may_read = threading.Event()
        self._may_read.set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.reviews = self.health = ("", 0)

    def connect(self, timeout: float = PATIENCE) -> http.client.HTTPSConnection:
        """A connection that trusts the server's CA."""
        return http.client.HTTPSConnection(
            "localhost", self.reviews[1], timeout=timeout, context=client_context(self.ca)
        )

    def post(self, body: bytes, path: str = "/validate?timeout=10s") -> tuple[int, bytes]:
        """One review on a connection of its own."""
        connection = self.connect()
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def probe(self, path: str) -> tuple[int, str]:
        """A page of the health port, or of the only one."""
        has_own_port = self.health != self.reviews
        connection = http.client.HTTPConnection(*self.health, timeout=PATIENCE) if has_own_port else self.connect()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metric(self, series: str) -> float:
        """The value of one series, 0 where it does not exist yet."""
        for line in self.probe("/metrics")[1].splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        return 0.0

    def wait_for_line(self, message: str, count: int = 1) -> list[dict[str, Any]]:
        """The log lines with this message, once there are `count`."""
        wait_for(f"{count} log lines {message!r}", lambda: len(self.said(message)) >= count)
        return self.said(message)

    def said(self, message: str) -> list[dict[str, Any]]:
        """The log lines with this message."""
        return [line for line in self.lines if line["message"] == message]

    def workers(self) -> list[int]:
        """Process ids of the workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def stop(self, patience: float = PATIENCE) -> int:
        """SIGTERM, and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            for pid in [*self.workers(), self.process.pid]:
                os.kill(pid, signal.SIGKILL)
            self.process.wait(patience)
            raise
        self._reader.join(patience)
        return code

    def pause_reading(self) -> None:
        """Leave the log in its pipe from the next line on."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        """Read it again."""
        self._may_read.set()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._may_read.wait()
            self.lines.append(json.loads(line))


@contextmanager
def running(tls_dir: Path, **options: Any) -> Iterator[Server]:
    """A server with the options of `tests.server.launch`, ready to answer; stopped at the end."""
    every = {"bind": "127.0.0.1:0", "health_bind": "127.0.0.1:0", "tls_dir": str(tls_dir), "workers": 1, **options}
    errors = tls_dir / f"stderr-{time.monotonic_ns()}"
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.server.launch", json.dumps(every)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
        )
    server = Server(process, tls_dir / "ca.crt")
    try:
        wait_for("the server to listen", lambda: bool(server.said("listening")) or process.poll() is not None)
        assert process.poll() is None, errors.read_text()
        line = server.said("listening")[0]
        server.reviews, server.health = (_address(line[which]) for which in ("reviews", "health"))
        wait_for("all workers", lambda: _workers_that_serve(server) >= every["workers"])
        yield server
    finally:
        server.stop()
        assert process.stdout is not None
        process.stdout.close()
    assert errors.read_text() == ""


@contextmanager
def running_gthread(tls_dir: Path, **options: Any) -> Iterator[Server]:
    """The same application under gunicorn's worker with threads, with the same options as far as it has them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    every = {"gthread": True, "bind": f"127.0.0.1:{port}", "tls_dir": str(tls_dir), "workers": 1, **options}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.server.launch", json.dumps(every)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    server = Server(process, tls_dir / "ca.crt")
    server.reviews = server.health = ("127.0.0.1", port)
    try:
        enough = every["workers"]
        wait_for("the workers", lambda: _workers_that_serve(server) >= enough or process.poll() is not None)
        assert process.poll() is None
        yield server
    finally:
        server.stop()
        assert process.stdout is not None
        process.stdout.close()


def _workers_that_serve(server: Server) -> int:
    """Each worker says which policy holds, or that none does, just before it listens."""
    return len(server.said("policy in use")) + len(server.said("the policy is off: every write is allowed"))


def memory_kib(pid: int) -> int:
    """Proportional resident memory of one process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise AssertionError("no Pss")


def connections(pid: int) -> int:
    """Count the TCP connections of a process, not the sockets that it listens on or that its event loop needs."""
    # Without the heading: slot, local address, remote address; the tenth column is the inode.
    rows = [row.split() for table in ("tcp", "tcp6") for row in _lines(f"/proc/{pid}/net/{table}")[1:]]
    connected = {f"socket:[{row[9]}]" for row in rows if not row[2].endswith(":0000")}
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # A descriptor may go away while we look.
        with suppress(FileNotFoundError):
            if str(descriptor.readlink()) in connected:
                count += 1
    return count


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
