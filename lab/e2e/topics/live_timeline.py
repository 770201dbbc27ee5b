"""`timeline --serve` on a real API server: within a second, through a restart of the API server, and its end."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Self

from lab.e2e.control_plane import ControlPlane
from lab.e2e.electors import start_client_go
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.processes import Process
from lab.e2e.world import PROJECT, Row, World, build_lease_path
from tests.waiting import wait_for

NAMESPACE = "live"
WRITES = 10
PATIENCE_SECONDS = 60.0
TIMES = ("-duration=6s", "-deadline=4s", "-retry=1s", "-release")


class Plane(ControlPlane):
    """A control plane whose API server can be restarted."""

    def restart(self) -> float:
        """Stop kube-apiserver and start it again; return the seconds until it was ready."""
        began = time.monotonic()
        process = self._processes.pop()
        process.stop()
        self._run("kube-apiserver", *self._command)
        admin = self.create_client("admin", "system:masters")

        def is_ready() -> bool:
            try:
                return admin.send("GET", "/readyz").status == 200
            except OSError:
                return False

        wait_for("kube-apiserver ready again", is_ready, 120, 0.2)
        return time.monotonic() - began

    def _run(self, name: str, *command: str) -> Process:
        self._command: Sequence[str] = command
        return super()._run(name, *command)


class Page:
    """The command, and a browser that only listens: the arrival of each lane, and the output."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        words = [sys.executable, "-m", "webhook", "timeline", "--serve", f"--kubeconfig={kubeconfig}"]
        environment = {**os.environ, "PATH": f"{kubectl.parent}:{os.environ['PATH']}"}
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=PROJECT, env=environment
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.lanes: dict[str, Any] = {}
        self.statuses: list[str] = []
        self.arrivals: dict[str, float] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_SECONDS)
            finally:
                self.process.kill()

    def list_kubectl_pids(self) -> list[int]:
        """Return the process IDs of the children of the command."""
        children = Path(f"/proc/{self.process.pid}/task")
        try:
            lists = [path.read_text() for path in children.glob("*/children")]
        except OSError:
            return []
        return [int(number) for text in lists for number in text.split()]

    def _listen(self) -> None:
        response: HTTPResponse = urllib.request.urlopen(f"{self.address}events")
        with response:
            for line in response:
                if line.startswith(b"data: "):
                    self._take(json.loads(line.removeprefix(b"data: ")))

    def _take(self, data: Any) -> None:
        now = time.monotonic()
        if data["status"] != (self.statuses or [""])[-1]:
            self.statuses.append(data["status"])
        for lane in data["lanes"]:
            lane["marks"] = [data["kinds"][mark[0]][0] for mark in lane["marks"]]
            lane["holders"] = [data["strings"][span[5]] for span in lane["spans"]]
            self.lanes[lane["name"]] = lane
            for holder in lane["holders"]:
                self.arrivals.setdefault(holder, now)


def run(world: World) -> Iterator[Row]:
    """Run on a separate control plane, whose API server is restarted."""
    directory = world.directory / "live-timeline"
    directory.mkdir()
    with Plane(world.plane.binaries, directory) as plane, ExitStack() as stack:
        own = World(plane)
        own.create_namespace(NAMESPACE)
        page = stack.enter_context(Page(plane.binaries.kubectl, plane.write_kubeconfig("admin", "system:masters")))
        yield _check_following(own, page)
        yield _check_election(own, page, stack)
        yield _check_restart(own, plane, page)
        yield _check_end(page)


def _check_following(world: World, page: Page) -> Row:
    """Check that each write arrives: every write is another holder, so each can be recognized."""
    path = build_lease_path(NAMESPACE, "probe")
    delays = []
    for number in range(WRITES):
        holder = f"holder-{number}"
        body = make_lease("probe", holderIdentity=holder, renewTime=format_micro_time())
        if number:
            spec = {"spec": body["spec"]}
            world.admin.send("PATCH", path, spec, media="application/merge-patch+json").expect()
        else:
            world.admin.send("POST", build_lease_path(NAMESPACE), body).expect()
        begin = time.monotonic()
        delays.append(wait_for(holder, lambda holder=holder: page.arrivals.get(holder), 20, 0.02) - begin)
        time.sleep(0.3)
    # The first one waits for kubectl to list what there is.
    slowest = max(delays[1:])
    return Row("a write is on the page within a second", f"after at most {slowest:.2f} s", slowest < 1.0)


def _check_election(world: World, page: Page, stack: ExitStack) -> Row:
    electors = {}
    for name in ("red", "green"):
        account = world.create_account(NAMESPACE, name)
        electors[name] = start_client_go(
            stack,
            world.plane.binaries,
            account.kubeconfig,
            *TIMES,
            namespaces=[NAMESPACE],
            lease="election",
            identity=name,
        )

    def list_holders() -> list[str]:
        holders: list[str] = page.lanes.get("election", {}).get("holders", [])
        return holders

    first = wait_for("a leader on the page", lambda: list_holders()[-1:], PATIENCE_SECONDS)[0]
    time.sleep(3)
    electors[first].process.kill()
    wait_for("the next leader on the page", lambda: {"red", "green"} <= set(list_holders()), PATIENCE_SECONDS)
    marks = page.lanes["election"]["marks"]
    # Stamps have whole seconds, so that the lease had expired is not always known.
    is_takeover = not {"takeover", "takeover-by-expiry"}.isdisjoint(marks)
    return Row("a crash of an elector is a takeover, no steal", ", ".join(marks), is_takeover and "steal" not in marks)


def _check_restart(world: World, plane: Plane, page: Page) -> Row:
    number = len(page.statuses)
    away = plane.restart()
    body = make_lease("afterwards", holderIdentity="after-the-restart", renewTime=format_micro_time())
    world.admin.send("POST", build_lease_path(NAMESPACE), body).expect()
    begin = time.monotonic()
    arrival = wait_for(
        "a lane after the restart", lambda: page.arrivals.get("after-the-restart"), PATIENCE_SECONDS, 0.02
    )
    statuses = [text for text in page.statuses[number:] if "kubectl runs again" in text]
    observation = (
        f"away for {away:.1f} s, said so {len(statuses)} times, back {arrival - begin:.1f} s after the first write"
    )
    return Row(
        "the page goes on after a restart of the API server", observation, bool(statuses) and page.statuses[-1] == ""
    )


def _check_end(page: Page) -> Row:
    children = page.list_kubectl_pids()
    page.process.terminate()
    status = page.process.wait(PATIENCE_SECONDS)
    time.sleep(0.5)
    survivors = [number for number in children if Path(f"/proc/{number}").exists()]
    observation = f"{len(children)} kubectl, {len(survivors)} left, exit code {status}"
    return Row("a signal ends the page and kubectl", observation, bool(children) and not survivors and status == 0)
