"""`timeline --serve` as a command: the page over HTTP, kubectl that is run again, and the end of both."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.history.fake_server import FakeServer
from tests.live.kubectl_script import install, is_running, process_ids
from tests.waiting import PATIENCE, wait_for
from tools.docs.pages import DOCS, ROOT, find_blocks
from webhook.analysis.live.server import Feed
from webhook.cli.main import main
from webhook.cli.reading import read_for_history

SERVE = "$ kubectl lease timeline --serve\n"
VARYING = re.compile(r"[\w-]{32}|:\d+")


def end(process: "subprocess.Popen[str]") -> None:
    """Ask it to end; what does not fails the test, and is not waited for without limit."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.fixture
def watches() -> list[bytes]:
    """A watch that ends, and the one after it: `shop/db` went on, and `shop/mail` was deleted in between."""
    server = FakeServer(now=time.time_ns() // 1000 - 60_000_000)
    server.elector("a", "shop/db").lead(10)
    server.elector("m", "shop/mail").take()
    first = server.watch()
    server.events.clear()
    server.wait(2)
    server.elector("a", "shop/db").renew()
    server.events = [(server.now, "ADDED", server.leases["shop/db"])]
    server.wait(2)
    server.elector("a", "shop/db").renew()
    return [first, server.watch()]


class Served:
    """A running command and its page."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.address = process.stdout.readline().strip()

    def get(self, path: str = "", **headers: str) -> Any:
        request = urllib.request.Request(self.address + path, headers=headers)
        return urllib.request.urlopen(request, timeout=PATIENCE)

    def status_of(self, path: str = "", **headers: str) -> int:
        """The status of a request that is refused."""
        with pytest.raises(urllib.error.HTTPError) as error:
            self.get(path, **headers)
        error.value.close()
        return error.value.code

    @contextmanager
    def events(self) -> Iterator[Iterator[Any]]:
        with self.get("events") as response:
            yield parsed(response)


def parsed(lines: Iterable[bytes]) -> Iterator[Any]:
    for line in lines:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


@pytest.fixture
def served(tmp_path: Path, watches: list[bytes]) -> Iterator[Served]:
    install(tmp_path, *watches)
    words = [sys.executable, "-m", "webhook", "timeline", "--serve"]
    environment = {**os.environ, "PATH": str(tmp_path)}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        try:
            yield Served(process)
        finally:
            end(process)


def test_the_page_follows_kubectl_when_its_watch_ends(served: Served, tmp_path: Path) -> None:
    assert served.address.startswith("http://127.0.0.1:")
    with served.get() as response:
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert "events" in response.read().decode()
    marks: dict[str, list[str]] = {}
    with served.events() as events:
        for data in events:
            marks |= {lane["name"]: [data["kinds"][mark[0]][0] for mark in lane["marks"]] for lane in data["lanes"]}
            if "db" in marks and "deleted" in marks.get("mail", []):
                break
    calls = (tmp_path / "calls").read_text()
    assert "get leases.coordination.k8s.io --all-namespaces --output=json --show-managed-fields --watch" in calls


def test_a_signal_ends_the_page_and_kubectl(served: Served, tmp_path: Path) -> None:
    wait_for("the processes", lambda: (tmp_path / "pids").exists() and any(map(is_running, process_ids(tmp_path))))
    with served.events() as events:
        next(events)
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(PATIENCE) == 0
    wait_for("the processes", lambda: not any(map(is_running, process_ids(tmp_path))))
    assert served.process.stderr is not None
    printed = f"{served.address}\n{served.process.stderr.read()}"
    (block,) = [one.text for one in find_blocks(DOCS / "timeline.md") if one.text.startswith(SERVE)]
    assert VARYING.sub("*", f"{SERVE}{printed}") == VARYING.sub("*", block)


def test_more_signals_while_it_ends_leave_no_kubectl(served: Served, tmp_path: Path) -> None:
    wait_for("the processes", lambda: (tmp_path / "pids").exists() and any(map(is_running, process_ids(tmp_path))))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        served.process.send_signal(number)
        time.sleep(0.02)
    assert served.process.wait(PATIENCE) == 0
    wait_for("the processes", lambda: not any(map(is_running, process_ids(tmp_path))))


def test_whoever_does_not_know_the_address_gets_nothing(served: Served) -> None:
    base, token, _ = served.address.rsplit("/", 2)
    assert len(token) >= 32
    assert served.status_of(Host="evil.example") == 421
    for path in ("/", "/guessed/"):
        served.address = base + path
        assert served.status_of() == 404


def test_an_address_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        assert main(["timeline", "--serve", "--bind", taken]) == 2
    assert capsys.readouterr().err == f"lease-webhook: {taken} cannot be bound: Address already in use\n"


def test_an_address_beyond_this_computer_must_be_given_and_is_warned_about(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["timeline", "--serve", "--bind", "203.0.113.1:1"]) == 2
    assert "whoever knows the address can read the leases" in capsys.readouterr().err


def test_a_broken_part_of_an_input_is_named_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a\x1b[2J.json"
    file.write_text("{]")
    Feed("a file").read(read_for_history([str(file)]))
    assert capsys.readouterr().err.startswith(f"{tmp_path}/a\\x1b[2J.json#1: line 1, column 2: not JSON")


def test_without_kubectl_and_an_input_there_is_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["timeline", "--serve"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "kubectl cannot be run (No such file or directory); --input serves what was recorded" in err


@pytest.mark.parametrize(
    ("script", "words", "problem"),
    [
        pytest.param(
            "echo 'error: no configuration has been provided' >&2; exit 1",
            [],
            "The watch of leases.coordination.k8s.io ended: no API server was reached",
            id="a cluster that is not reached",
        ),
        pytest.param("exit 1", ["--input", "."], "no lease is in the input: . has no .json", id="an empty directory"),
    ],
)
def test_why_the_page_is_empty_is_said_in_the_terminal_too(
    script: str, words: list[str], problem: str, tmp_path: Path
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\n{script}\n")
    kubectl.chmod(0o755)
    environment = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    (tmp_path / "empty").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "webhook", "timeline", "--serve", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path / "empty",
        env=environment,
    ) as process:
        try:
            with Served(process).events() as events:
                assert next(data["status"] for data in events if data["status"])
            assert process.stderr is not None
            printed = [process.stderr.readline(), process.stderr.readline()]
            assert any(line.startswith(problem) for line in printed)
        finally:
            end(process)
