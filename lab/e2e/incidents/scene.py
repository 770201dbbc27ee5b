"""One incident while it is recorded: its pods, the actions against them, and the times of their leadership."""

import json
import os
import signal
import threading
import time
from calendar import timegm
from collections.abc import Callable, Iterator
from typing import Final

from lab.e2e.incidents.stage import Pod, Stage
from lab.e2e.incidents.truth import Action, Leadership, Report, find_leaderships
from lab.e2e.processes import Process
from lab.e2e.world import build_lease_path
from tests.waiting import wait_for

DURATION: Final = 15
"""Seconds; the electors have client-go's defaults: 15, 10 and 2 s."""
PATIENCE: Final = 60.0
USUAL: Final = 5
"""Renewals after which a lease has a usual interval, and the other leases of the recording too."""


class Replica:
    """A process that stands for election as `identity`, and the actions against it."""

    def __init__(self, pod: Pod, identity: str, process: Process, client: str = "client-go") -> None:
        self.pod, self.identity, self.process, self.client = pod, identity, process, client
        self.own_reports: list[Report] = []

    def list_reports(self) -> Iterator[Report]:
        """Yield its output, and the actions against it."""
        yield from self.own_reports
        yield from self.list_printed()

    def list_printed(self) -> Iterator[Report]:
        """Yield when it began and ended to lead, by its own report."""
        for line in self.process.log.read_text(errors="replace").splitlines():
            if not line.startswith("{"):
                continue
            entry = json.loads(line)
            if entry["event"] in {"started", "stopped"}:
                at = _parse_micro_time(entry["time"]) if "time" in entry else entry["at"] // 1000
                yield Report(at, entry["event"], "stopped leading")


class Scene:
    """A lease and the replicas that stand for it; gathers the truth."""

    def __init__(self, stage: Stage, namespace: str, lease: str, *, route: str = "") -> None:
        self.stage, self.lease = stage, lease
        self.namespace = stage.create_namespace(namespace, route)
        self.replicas: list[Replica] = []
        self.others: list[Leadership] = []
        self.deeds: list[Action] = []
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def path(self) -> str:
        """Path of the lease."""
        return build_lease_path(self.namespace, self.lease)

    def start(
        self,
        pod: str,
        *flags: str,
        account: str = "",
        port: int = 0,
        node: str = "",
        identity: str = "",
        mode: str = "elector",
    ) -> Replica:
        """Start a client-go elector in a pod of its own."""
        replica_pod = self.stage.create_pod(self.namespace, account or self.lease, pod, port, node=node)
        who = identity or f"{pod}_{len(self.replicas) + 1}f0e"
        process = self.stage.start_elector(replica_pod, self.lease, who, *flags, mode=mode)
        return self.add(Replica(replica_pod, who, process))

    def start_beside(self, candidate: Replica, *flags: str) -> Replica:
        """Start the elector in the pod of a candidate."""
        process = self.stage.start_elector(candidate.pod, self.lease, candidate.identity, *flags)
        return self.add(Replica(candidate.pod, candidate.identity, process))

    def start_candidate(self, pod: str, emulation: str) -> None:
        """Start a LeaseCandidate with an emulation version, and the elector of its pod."""
        candidate = self.start(
            pod, "-binary=1.36.0", f"-emulation={emulation}", identity=pod, mode="candidate", account=self.lease
        )
        self.start_beside(candidate, "-coordinated")

    def add(self, replica: Replica) -> Replica:
        """Add a replica of any program."""
        self.replicas.append(replica)
        return replica

    def record_action(self, what: str) -> int:
        """Record an action that is taken now; return the time in microseconds since 1970."""
        at = time.time_ns() // 1000
        self.deeds.append(Action(at, what))
        return at

    def kill(self, replica: Replica) -> None:
        """Send SIGKILL."""
        at = self.record_action(f"kill -9 of the process in pod {replica.pod.name}")
        replica.process.kill()
        replica.own_reports.append(Report(at, "stopped", "killed"))

    def stop(self, replica: Replica) -> None:
        """Send SIGTERM, and wait."""
        self.record_action(f"SIGTERM to the process in pod {replica.pod.name}, as a rollout does")
        replica.process.stop()

    def pause(self, replica: Replica) -> None:
        """Send SIGSTOP."""
        at = self.record_action(f"SIGSTOP of the process in pod {replica.pod.name}")
        os.kill(replica.process.pid, signal.SIGSTOP)
        replica.own_reports.append(Report(at, "stopped", "paused"))

    def resume(self, replica: Replica) -> None:
        """Send SIGCONT: it believes to lead until it sees that it does not."""
        at = self.record_action(f"SIGCONT of the process in pod {replica.pod.name}")
        os.kill(replica.process.pid, signal.SIGCONT)
        replica.own_reports.append(Report(at, "started"))

    def wait_until_leading(self, replica: Replica) -> None:
        """Wait until a replica holds the lease."""
        self.wait_for_holder(f"{replica.identity} leads", replica.identity)

    def wait_for_holder(self, what: str, holder: str) -> None:
        """Wait until somebody holds the lease."""
        wait_for(what, lambda: self.stage.read_holder(self.namespace, self.lease) == holder, PATIENCE)

    def wait_for_next_leader(self, before: str) -> str:
        """Wait for another holder."""

        def find_other() -> str:
            holder = self.stage.read_holder(self.namespace, self.lease)
            return holder if holder != before else ""

        return wait_for(f"{self.lease}: a holder after {before}", find_other, PATIENCE)

    def wait_for_renewals(self, times: int = USUAL) -> None:
        """Wait until the API server has stored that many renewals."""
        times_of_renewals: set[str] = set()

        def has_renewed() -> bool:
            spec = self.stage.read_lease(self.namespace, self.lease).get("spec", {})
            times_of_renewals.add(str(spec.get("renewTime")))
            return len(times_of_renewals) > times

        wait_for(f"{times} renewals of {self.lease}", has_renewed, PATIENCE)

    def wait_until_stopped(self, replica: Replica) -> None:
        """Wait until a replica reports that it no longer leads."""
        count = sum(1 for one in replica.list_printed() if one.event == "stopped")
        wait_for(
            f"{replica.identity} stops leading",
            lambda: sum(1 for one in replica.list_printed() if one.event == "stopped") > count,
            PATIENCE,
        )

    def list_leaderships(self) -> list[Leadership]:
        """Return when each replica worked as the leader."""
        return [
            *self.others,
            *(one for each in self.replicas for one in find_leaderships(each.identity, each.list_reports())),
        ]

    def repeat_every_two_seconds(self, write: Callable[[], None]) -> None:
        """Repeat an action in the background every two seconds until the scene ends."""
        self.repeat(2, write)

    def repeat(self, seconds: float, write: Callable[[], None]) -> None:
        """Repeat an action in the background at an interval until the scene ends."""

        def run() -> None:
            while not self._ended.wait(seconds):
                write()

        thread = threading.Thread(target=run, name=self.lease)
        thread.start()
        self._threads.append(thread)

    def end(self) -> None:
        """Stop everything that still runs."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for replica in self.replicas:
            replica.process.stop()

    def remove_pod(self, replica: Replica) -> None:
        """Delete the pod object, and with it the token that is bound to it."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{replica.pod.name}"
        self.stage.admin.send("DELETE", path, gracePeriodSeconds=0).expect(200, 404)


def _parse_micro_time(text: str) -> int:
    head, _, fraction = text.removesuffix("Z").removesuffix("+00:00").partition(".")
    seconds = time.strptime(f"{head}Z", "%Y-%m-%dT%H:%M:%SZ")
    return timegm(seconds) * 1_000_000 + int(f"{fraction:0<6}"[:6])
