"""A namespace with one lease: replicas of an elector, the administrator, and every version that was stored."""

import itertools
import os
import re
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final, Self

from msgspec import Struct

from lab.e2e.api_client import MERGE
from lab.e2e.forwarder import Partition
from lab.e2e.manifests import format_micro_time
from lab.e2e.processes import Process
from lab.e2e.watched_leases import WatchedLeases
from lab.e2e.world import World, build_lease_path

DURATION, DEADLINE, RETRY = 6, 4, 1
"""Seconds that every elector is given."""
LEASE: Final = "kit"
_NUMBERS: Final = itertools.count()


class Elector(Struct, frozen=True):
    """A command line with {kubeconfig}, {namespace}, {lease}, {identity}, {duration}, {deadline} and {retry} in it.

    `started` and `stopped` are patterns of its output when it begins to lead and when it ends.
    """

    name: str
    command: str
    started: str = '"event": ?"started"'
    stopped: str = '"event": ?"stopped"'


class Version(Struct, frozen=True):
    """A version delivered by the watch, in the order of `revision`: its time, by our clock, and the lease.

    The lease is None if it was deleted.
    """

    at: float
    revision: int
    lease: dict[str, Any] | None

    @property
    def spec(self) -> dict[str, Any]:
        """Spec of the version, empty if there is none."""
        spec: dict[str, Any] = (self.lease or {}).get("spec") or {}
        return spec

    @property
    def holder(self) -> str:
        """Holder of the lease, "" if there is none."""
        return self.spec.get("holderIdentity") or ""


class Replica:
    """One process of the elector, with a network of its own, and the times when it reported that it leads."""

    def __init__(self, stack: ExitStack, world: World, elector: Elector, namespace: str, identity: str) -> None:
        self.identity, self._elector = identity, elector
        account = world.create_account(namespace, "elector", pod=f"{namespace}-{identity}-{next(_NUMBERS)}")
        self.way = stack.enter_context(Partition(world.plane.port))
        config = account.kubeconfig.with_suffix(".cut")
        config.write_text(
            account.kubeconfig.read_text().replace(world.plane.server, f"https://127.0.0.1:{self.way.port}")
        )
        words = {
            "kubeconfig": str(config),
            "namespace": namespace,
            "lease": LEASE,
            "identity": identity,
            "duration": str(DURATION),
            "deadline": str(DEADLINE),
            "retry": str(RETRY),
        }
        self._command = [part.format_map(words) for part in shlex.split(elector.command)]
        self._log = world.directory / "kit" / f"{account.kubeconfig.stem}.log"
        self._stack = stack
        self._process: Process | None = None
        self.reports: list[tuple[float, bool]] = []
        """Since when it says that it leads, or no longer does."""
        self._read = 0
        # The thread that looks for two leaders reads the log too.
        self._reading = threading.Lock()

    def start(self) -> None:
        """Start the process."""
        self._process = self._stack.enter_context(Process(self._command, self._log, dict(os.environ)))

    def revive(self) -> None:
        """Start the process again if it has ended by itself, as a kubelet does."""
        if self._process and self._process.has_ended:
            self.start()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it has not ended."""
        if self._process:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def end(self) -> None:
        """Send SIGTERM, once, and SIGKILL after some seconds."""
        if self._process:
            self._process.stop(4)
        self._note_end()

    def kill(self) -> None:
        """Send SIGKILL."""
        if self._process and not self._process.has_ended:
            self._process.kill()
        self._note_end()

    def read(self) -> None:
        """Read its output since the last call, in whole lines."""
        with self._reading:
            if not self._log.exists():
                return
            with self._log.open("rb") as log:
                log.seek(self._read)
                whole, end, _ = log.read().rpartition(b"\n")
            self._read += len(whole) + len(end)
            for line in whole.decode(errors="replace").splitlines():
                if re.search(self._elector.started, line):
                    self.reports.append((time.monotonic(), True))
                elif re.search(self._elector.stopped, line):
                    self.reports.append((time.monotonic(), False))

    def _note_end(self) -> None:
        self._process = None
        self.read()
        self.reports.append((time.monotonic(), False))

    @property
    def leads(self) -> bool:
        """True if it reports now that it leads; one that has ended does not lead."""
        self.read()
        process = self._process
        return process is not None and not process.has_ended and bool(self.reports) and self.reports[-1][1]


class Stage:
    """A context manager: a namespace in which everything about one lease is seen."""

    def __init__(self, world: World, elector: Elector, namespace: str) -> None:
        self.world, self.elector, self.namespace = world, elector, namespace
        self._stack = ExitStack()
        self._end = threading.Event()
        self.versions: list[Version] = []
        self.replicas: list[Replica] = []
        self._own: set[int] = set()
        self.both = 0.0
        """For how many seconds two replicas have said at the same time that they lead."""
        self.excused: set[str] = set()
        """Replicas that are paused, and cannot know."""

    def __enter__(self) -> Self:
        self.world.create_namespace(self.namespace)
        self._stack.enter_context(WatchedLeases(self.world, self.namespace, self._add_version))
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for replica in self.replicas:
            replica.way.heal()
            replica.send(signal.SIGCONT)
        self._stack.close()

    def start_replica(self, identity: str) -> Replica:
        """Start another replica."""
        replica = Replica(self._stack, self.world, self.elector, self.namespace, identity)
        replica.start()
        self.replicas.append(replica)
        return replica

    def write(self, **spec: Any) -> Version:
        """Change the lease as the administrator, or create it."""
        path = build_lease_path(self.namespace, LEASE)
        reply = self.world.admin.send("PATCH", path, {"spec": spec}, media=MERGE)
        if reply.status == 404:
            body = {"metadata": {"name": LEASE}, "spec": spec}
            reply = self.world.admin.send("POST", build_lease_path(self.namespace), body)
        lease = reply.expect()
        version = Version(time.monotonic(), int(lease["metadata"]["resourceVersion"]), lease)
        self._own.add(version.revision)
        return version

    def delete(self) -> None:
        """Delete the lease as the administrator."""
        self.world.admin.send("DELETE", build_lease_path(self.namespace, LEASE))

    def wait_until(self, seconds: float, probe: Callable[[], Any]) -> float | None:
        """Return after how many seconds `probe` was true, None if it never was."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            if probe():
                return time.monotonic() - begin
            time.sleep(0.05)
        return None

    def keep_alive(self, seconds: float, ahead: float, until: Callable[[], Any]) -> float | None:
        """Renew the lease for `boss`, whose clock is so far ahead, every second; stop when `until` is true."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            if self.holder == "boss":
                self.write(renewTime=format_micro_time(ahead))
            if self.wait_until(1, until) is not None:
                return time.monotonic() - begin
        return None

    @property
    def holder(self) -> str:
        """Holder of the lease."""
        return self.versions[-1].holder if self.versions else ""

    @property
    def revision(self) -> int:
        """Newest version of the lease that was seen."""
        return self.versions[-1].revision if self.versions else 0

    def list_written(self, revision: int) -> Iterator[Version]:
        """Yield the versions after `revision` that replicas have written."""
        later = (one for one in list(self.versions) if one.revision > revision)
        return (one for one in later if one.lease and one.revision not in self._own)

    def _listen(self) -> None:
        before, were = time.monotonic(), False
        while not self._end.wait(0.05):
            leading = [one for one in list(self.replicas) if one.leads and one.identity not in self.excused]
            now, are = time.monotonic(), len(leading) > 1
            if are and were:
                self.both += now - before
            before, were = now, are

    def _add_version(self, event: dict[str, Any]) -> None:
        lease = event["object"]
        if lease["metadata"]["name"] == LEASE:
            revision = int(lease["metadata"]["resourceVersion"])
            self.versions.append(Version(time.monotonic(), revision, None if event["type"] == "DELETED" else lease))
