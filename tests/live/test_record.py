"""`record` as a command: it records with kubectl, is killed, records again, and `why` says what happened."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.history.fake_server import FakeServer
from tests.live.kubectl_script import install
from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]


def lease_webhook(folder: Path, *words: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "webhook", *words]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answer(folder: Path, *words: str) -> tuple[str, str]:
    with lease_webhook(folder, *words) as process:
        return process.communicate(timeout=PATIENCE)


def version(server: FakeServer) -> int:
    return int(server.leases["shop/checkout"]["metadata"]["resourceVersion"])


def record(folder: Path, version: int, ending: int) -> int:
    """Record until `latest.jsonl` has a resourceVersion, and end it by a signal; return its exit code."""
    latest, text = folder / "history" / "latest.jsonl", f'"resourceVersion":"{version}"'.encode()
    with lease_webhook(folder, "record", str(folder / "history"), "--save-every=0.1") as process:
        wait_for("the version", lambda: latest.exists() and text in latest.read_bytes().replace(b" ", b""))
        process.send_signal(ending)
        process.communicate(timeout=PATIENCE)
        return process.returncode


def test_why_names_yesterdays_handover_and_what_was_not_seen(tmp_path: Path) -> None:
    server = FakeServer(now=time.time_ns() // 1000 - 3_600_000_000)
    red, green = server.elector("red", "shop/checkout"), server.elector("green", "shop/checkout")
    red.lead(600)
    server.wait(20)
    green.lead(600)
    install(tmp_path, server.watch())
    assert record(tmp_path, version(server), signal.SIGKILL) == -signal.SIGKILL
    server.events.clear()
    green.lead(60)
    server.events = [(server.now, "ADDED", server.leases["shop/checkout"])]
    install(tmp_path, server.watch())
    assert record(tmp_path, version(server), signal.SIGTERM) == 0

    said, notes = answer(tmp_path, "why", "shop/checkout", "--input", str(tmp_path / "history"), "--format=json")
    holders = [(one["holder"], one["began"]) for one in json.loads(said)["tenures"]]
    assert holders == [("red_1", "seen"), ("green_1", "expired")]
    assert notes.count("not recorded from") == 1


def test_a_second_recorder_ends_at_once(tmp_path: Path) -> None:
    install(tmp_path, FakeServer().watch())
    history = str(tmp_path / "history")
    with lease_webhook(tmp_path, "record", history) as first:
        wait_for("the lock", (tmp_path / "history" / ".lock").exists)
        _, said = answer(tmp_path, "record", history)
        first.terminate()
        first.communicate(timeout=PATIENCE)
    assert "another recorder writes there" in said
