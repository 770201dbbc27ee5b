"""`record` as a command: it records with kubectl, is killed, records again, and `why` says what happened."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.history.fake_server import FakeServer
from tests.live.kubectl_script import install
from tests.waiting import PATIENCE, wait_for
from webhook.cli.main import main

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

    answered, notes = answer(tmp_path, "why", "shop/checkout", "--input", str(tmp_path / "history"), "--format=json")
    holders = [(one["holder"], one["began"]) for one in json.loads(answered)["tenures"]]
    assert holders == [("red_1", "seen"), ("green_1", "expired")]
    assert notes.count("not recorded from") == 1


def test_a_second_recorder_ends_at_once(tmp_path: Path) -> None:
    install(tmp_path, FakeServer().watch())
    history = str(tmp_path / "history")
    with lease_webhook(tmp_path, "record", history) as first:
        wait_for("the lock", (tmp_path / "history" / ".lock").exists)
        _, output = answer(tmp_path, "record", history)
        first.terminate()
        first.communicate(timeout=PATIENCE)
    assert "another recorder writes there" in output


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    install(tmp_path, FakeServer().watch())
    file = tmp_path / "x.log"
    file.write_text("{}")
    assert f"{file} is a file, not a directory" in answer(tmp_path, "record", str(file))[1]


def test_without_kubectl_it_ends_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["record", str(tmp_path / "history")]) == 2
    assert capsys.readouterr().err == (
        "lease-webhook: kubectl cannot be run (No such file or directory); in a pod, --in-cluster works without it\n"
    )
    assert not [*tmp_path.iterdir()]


SERVES = """\
#!{python} -IS
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
folder = {folder!r}
if "create" in sys.argv:
    with open(folder + "/created", "a") as created:
        created.write(sys.stdin.read() + "\\n")
    if {fails!r}:
        sys.exit("Error from server (Forbidden): no rights")
elif "leases.coordination.k8s.io" in sys.argv:
    sys.stdout.write(open(folder + "/watch").read())
    sys.stdout.flush()
    time.sleep(60)
elif "leasecandidates.coordination.k8s.io" in sys.argv:
    sys.exit("error: the server doesn't have a resource type \\"leasecandidates\\"")
else:
    time.sleep(60)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def serve(folder: Path, server: FakeServer, *, fails: bool = False) -> None:
    """Make a kubectl that watches leases and creates Events."""
    (folder / "watch").write_bytes(server.watch())
    script = folder / "kubectl"
    script.write_text(SERVES.format(python=sys.executable, folder=str(folder), fails=fails))
    script.chmod(0o755)


def held_until_now() -> FakeServer:
    """Return a server on which a lease was renewed last some seconds before it expires."""
    server = FakeServer(now=time.time_ns() // 1000 - 31_000_000)
    server.elector("red", "shop/checkout").lead(20)
    return server


def test_it_serves_metrics_and_ends_with_what_it_kept(tmp_path: Path) -> None:
    serve(tmp_path, held_until_now())
    port = free_port()
    words = ("record", str(tmp_path / "history"), f"--metrics=127.0.0.1:{port}")
    with lease_webhook(tmp_path, *words) as process:

        def text() -> str:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return str(answer.read().decode())
            return ""

        wait_for("a metric", lambda: "lease_webhook_leader_live{" in text())
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    lines = output.splitlines()
    assert lines[0].startswith("recording into ")
    assert re.fullmatch(r"stopped: 10 renewals of 1 lease, 0 changes of holder, in \S+", lines[1])
    assert len(lines) == 2


@pytest.mark.parametrize("fails", [False, True], ids=["created", "refused"])
def test_it_creates_an_event_when_a_leader_is_lost(fails: bool, tmp_path: Path) -> None:
    serve(tmp_path, held_until_now(), fails=fails)
    created = tmp_path / "created"
    with lease_webhook(tmp_path, "record", str(tmp_path / "history"), "--events") as process:
        wait_for("an Event", lambda: created.exists() and "LeaderLost" in created.read_text())
        process.send_signal(signal.SIGTERM)
        _, output = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    (event,) = map(json.loads, created.read_text().splitlines())
    assert event["involvedObject"]["name"] == "checkout"
    assert ("no Event could be created: Error from server (Forbidden): no rights" in output) is fails


def test_an_address_that_is_taken_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["record", str(tmp_path / "history"), f"--metrics={place}"]) == 2
    assert f"{place} cannot be bound" in capsys.readouterr().err
