"""`python -m lab.e2e.law_electors`: real electors of several clients, with us and without, while strangers write.

Of each client two instances elect in a namespace without us and in one of each mode, side by side. Each stranger's
write goes to all of them. A namespace is labeled and listed while its leader holds a lease that strangers have filled;
later a leader is killed, one releases, and strangers write into spec, too. Two laws are checked:

- Of the electors' writes, which are read from the audit log, none is refused by us that is by the elector which the
  lease names and which wrote it last, or that takes a lease which is free or has expired.
- While strangers write metadata, no mode has a leader stop where the one without us goes on; and in the end a lease is
  led in each mode if it is without us.

Before that, electors of rare habits (`odd_electors.py`) play fixed histories in each place.
"""

import argparse
import datetime as dt
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from lab.e2e.control_plane import ControlPlane, read_audit_log
from lab.e2e.electors import ASYNCIO_PROGRAM, THREADS_PROGRAM
from lab.e2e.law import Batch, Place, Server, create_strangers, install_modes, list_modes
from lab.e2e.odd_electors import ODD, find_differences
from lab.e2e.processes import Process
from lab.e2e.toolchain import Binaries, build_all_binaries
from lab.e2e.world import World as Cluster
from lab.torture.electors import build_languages
from tests.law.api_server import DELETE, Refused
from tests.law.history import FORGED
from tests.law.modes import NONE, Mode
from tests.law.strangers import USERS, StrangersWrite, some_write
from tests.waiting import wait_for
from webhook.kubernetes.times import parse

LEASE: Final = "elected"
DURATION, DEADLINE, RETRY = 6, 4, 1
"""Seconds, of every elector."""
PODS: Final = ("checkout-0", "checkout-1")
_WRITES: Final = frozenset({"create", "update", "patch", "delete"})
WITH_OBJECTS: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "RequestResponse", "resources": [{"group": "coordination.k8s.io"}], "verbs": sorted(_WRITES)},
        {"level": "None"},
    ],
}
_OURS: Final = ("lease-webhook", "lease webhook")


class Client(Struct, frozen=True):
    """An election client; `command` is what runs it before the arguments that all programs share."""

    name: str
    command: tuple[str, ...]
    is_go: bool = False

    def build_command(self, kubeconfig: Path, namespace: str, pod: str) -> list[str]:
        """Return the command line of an instance."""
        if self.is_go:
            where = [f"-kubeconfig={kubeconfig}", f"-namespaces={namespace}", f"-lease={LEASE}"]
            times = [f"-duration={DURATION}s", f"-deadline={DEADLINE}s", f"-retry={RETRY}s"]
            return [*self.command, *where, f"-identity={find_identity(pod)}", "-release", *times]
        times = [str(DURATION), str(DEADLINE), str(RETRY)]
        return [*self.command, str(kubeconfig), namespace, LEASE, find_identity(pod), *times]


def find_identity(pod: str) -> str:
    """Return the identity of a pod's elector."""
    return f"{pod}_1f0e"


def list_clients(binaries: Binaries) -> tuple[list[Client], dict[str, str]]:
    """Return the clients that can be built here, and why others cannot."""
    go, python = str(binaries.clients), str(binaries.asyncio_python)
    commands, missing = build_languages()
    clients = [
        Client("client-go", (go, "elector"), is_go=True),
        Client("client-go with a label", (go, "elector", "-label=checkout"), is_go=True),
        Client("kubernetes (Python)", (python, str(THREADS_PROGRAM))),
        Client("kubernetes.aio (Python)", ("env", "ASYNCIO_PACKAGE=kubernetes.aio", python, str(ASYNCIO_PROGRAM))),
        Client("kubernetes_asyncio", (python, str(ASYNCIO_PROGRAM))),
        *(Client(name, tuple(command)) for name, command in commands.items()),
    ]
    return clients, missing


class Election:
    """The two electors of a place, their lease, and how often a leader stopped."""

    def __init__(self, stack: ExitStack, client: Client, place: Place, directory: Path) -> None:
        self.place, self._client, self._stack, self._directory = place, client, stack, directory
        self.server = Server(place.namespace, LEASE, place.clients)
        self._processes: dict[str, Process] = {}
        self._ended = set[str]()

    def start(self, pod: str) -> None:
        """Start an instance, or start it again."""
        self._ended.discard(pod)
        command = self._client.build_command(self.place.kubeconfigs[pod], self.place.namespace, pod)
        self._processes[pod] = self._stack.enter_context(Process(command, self._find_log(pod)))

    def restart_ended(self) -> None:
        """Restart instances that an error ended, as a kubelet does; the client handles other errors itself."""
        for pod, process in list(self._processes.items()):
            if process.has_ended and pod not in self._ended:
                self.start(pod)

    def kill(self, pod: str) -> None:
        """End an instance without a release."""
        self._ended.add(pod)
        self._processes[pod].kill()

    def stop(self, pod: str) -> None:
        """End an instance in order."""
        self._ended.add(pod)
        self._processes[pod].stop(5)

    def count_stops(self) -> int:
        """Return how often a leader stopped, as the electors print it."""
        return sum(self._find_log(pod).read_text(errors="replace").count('"event":"stopped"') for pod in PODS)

    def find_leader(self) -> str:
        """Return the pod that the lease names and that renewed it within its duration, by its own clock; else ""."""
        stored = self.server.stored
        spec = {} if stored is None else stored["spec"]
        try:
            age = time.time() - parse(spec.get("renewTime") or "") / 1e6
        except ValueError:
            return ""
        leaders = [pod for pod in PODS if spec.get("holderIdentity") == find_identity(pod)]
        return leaders[0] if leaders and -1 < age < DURATION else ""

    def clean(self) -> None:
        """Remove planted stamps."""
        self.server.clean()

    def store(self, write: StrangersWrite) -> bool:
        """Store a stranger's write; return whether it was stored."""
        request = write.request(self.server.stored, time.time_ns() // 1000)
        if request is None:
            return False
        try:
            self.server.send(USERS[write.by], request, 0)
        except Refused:
            return False
        return True

    def _find_log(self, pod: str) -> Path:
        return self._directory / f"{self.place.namespace}-{pod}.log"


class Run:
    """One client in all places."""

    def __init__(self, stack: ExitStack, client: Client, batch: Batch, directory: Path, draw: random.Random) -> None:
        self.elections = [Election(stack, client, place, directory) for place in batch.places]
        self.stored = Counter[str]()
        self._batch, self._draw, self._stop = batch, draw, threading.Event()

    def play(self, seconds: float) -> Iterator[str]:
        """Play the client; yield violations."""
        self._run_in_each(lambda election: election.start(PODS[0]))
        for election in self.elections:
            wait_for(f"a leader in {election.place.namespace}", lambda one=election: one.leader(), 180, 0.5)
        for _ in range(6):
            self._write(is_whole=False)
        self._batch.install(self.elections)
        self._run_in_each(lambda election: election.start(PODS[1]))
        before = [election.count_stops() for election in self.elections]
        self._write_for(seconds / 2, is_whole=False)
        stops = [election.count_stops() - count for election, count in zip(self.elections, before, strict=True)]
        if not stops[0]:
            for election, count in zip(self.elections, stops, strict=True):
                if count:
                    yield f"{election.place.mode.name}: {count} leaders stopped while strangers wrote metadata"
        for end in (Election.kill, Election.stop):
            self._run_in_each(partial(_end_leader, end=end))
            self._write_for(seconds / 4, is_whole=True)
        has_leader = wait_for_leaders(self.elections, DURATION + FORGED + 20)
        if has_leader[0]:
            for election, is_led in zip(self.elections, has_leader, strict=True):
                if not is_led:
                    yield f"{election.place.mode.name}: no one leads in the end: {election.server.stored}"

    def _write_for(self, seconds: float, *, is_whole: bool) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._write(is_whole=is_whole)
            self._run_in_each(Election.restart_ended)
            time.sleep(0.3)

    def _write(self, *, is_whole: bool) -> None:
        """Send one write of a stranger, in every place."""
        write = some_write(self._draw, spec=0.3 if is_whole else 0)
        while write.verb == DELETE and not is_whole:
            write = some_write(self._draw, spec=0)
        for election in self.elections:
            self.stored[election.place.mode.name] += election.store(write)

    def _run_in_each(self, action: Any) -> None:
        for election in self.elections:
            action(election)


def _end_leader(election: Election, end: Any) -> None:
    """End whoever leads and start it again; the first one if nobody leads."""
    pod = election.find_leader() or PODS[0]
    end(election, pod)
    threading.Timer(1.5, election.start, [pod]).start()


def wait_for_leaders(elections: Sequence[Election], seconds: float) -> list[bool]:
    """Return which elections are led twice within so many seconds, by one pod."""
    end = time.monotonic() + seconds
    has_leader = [False] * len(elections)
    while time.monotonic() < end and not all(has_leader):
        first = [election.find_leader() for election in elections]
        time.sleep(2 * RETRY + 1)
        has_leader = [
            is_led or bool(pod and election.find_leader() == pod)
            for is_led, pod, election in zip(has_leader, first, elections, strict=True)
        ]
    return has_leader


# ---- what the audit log shows ---------------------------------------------------------------------------------------


class Write(Struct, frozen=True):
    """A write of an audit log; times are seconds. `after` is what was stored, None after a deletion or a refusal."""

    begin: float
    end: float
    user: str
    pod: str
    status: int
    message: str
    sent: Mapping[str, Any]
    after: Mapping[str, Any] | None


def read_writes(log: Path, namespace: str) -> list[Write]:
    """Return the writes to the elected lease of a namespace, in the order in which they ended."""
    writes = []
    for event in read_audit_log(log):
        about = event.get("objectRef") or {}
        if about.get("namespace") != namespace or event["verb"] not in _WRITES:
            continue
        status, after = event.get("responseStatus") or {}, event.get("responseObject") or {}
        user = event["user"]
        if not user.get("username"):
            continue  # no one could say in time who it was
        pods = (user.get("extra") or {}).get("authentication.kubernetes.io/pod-name") or [""]
        sent = event.get("requestObject") or {}
        writes.append(
            Write(
                begin=_parse_seconds(event["requestReceivedTimestamp"]),
                end=_parse_seconds(event["stageTimestamp"]),
                user=user["username"],
                pod=pods[0],
                status=status.get("code", 0),
                message=status.get("message") or after.get("message") or "",
                sent=sent if isinstance(sent, dict) else {},
                after=after if after.get("kind") == "Lease" else None,
            )
        )
    return sorted(writes, key=lambda write: write.end)


def _parse_seconds(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


def find_wrong_refusals(writes: Sequence[Write], mode: Mode, counts: Counter[str]) -> Iterator[str]:
    """Yield the electors' writes that we refused though they were entitled to write; count the others."""
    stored = [write for write in writes if write.status in (200, 201)]
    for write in writes:
        if write.pod not in PODS or not write.user.endswith(":checkout"):
            continue
        if write.status in (200, 201):
            counts["stored"] += 1
        elif not any(word in write.message for word in _OURS):
            counts[f"HTTP {write.status}"] += 1
        elif all(is_entitled(write, state, stored, mode) for state in _find_states(write, stored)):
            yield f"{mode.name}: {write.pod}: {write.message[:400]}"
        else:
            counts["refused by us, as they should be"] += 1


def _find_states(write: Write, stored: Sequence[Write]) -> list[int]:
    """Return which stored writes may have been the last one when this one was evaluated; -1 is none at all."""
    states = []
    for at in range(-1, len(stored)):
        begun = at < 0 or stored[at].begin <= write.end
        is_replaced = at + 1 < len(stored) and stored[at + 1].end < write.begin
        if begun and not is_replaced:
            states.append(at)
    return states


def is_entitled(write: Write, at: int, stored: Sequence[Write], mode: Mode) -> bool:
    """Return whether an elector may write over what the write `at` stored: as holder, or if free or expired."""
    state = None if at < 0 else stored[at].after
    spec = (state or {}).get("spec") or {}
    holder, duration = spec.get("holderIdentity"), spec.get("leaseDurationSeconds")
    if not holder:
        return True
    first = at
    while first > 0 and ((stored[first - 1].after or {}).get("spec") or {}) == spec:
        first -= 1
    if holder == find_identity(write.pod):
        return not mode.stamps or (stored[first].pod == write.pod and stored[first].user == write.user)
    if duration is None:
        return True
    since = stored[first].end if mode.is_guarded else stored[at].end + FORGED
    return bool(write.begin > since + duration + 1)


class _NoCleanup:
    """The steps after an installation that found nothing."""

    def clean(self) -> None:
        """Do nothing."""


def _check_rare_habits(batch: Batch) -> Iterator[str]:
    batch.install([_NoCleanup()])
    places = {place.mode.name: (place.namespace, place.clients) for place in batch.places}
    return find_differences(places, without_us=NONE.name)


class Options(Struct, frozen=True):
    """The plan: names of clients and modes, all if there are none; seconds for each client; the seed."""

    names: Sequence[str]
    modes: Sequence[str]
    seconds: float
    seed: int


def run(binaries: Binaries, directory: Path, options: Options) -> int:
    """Play every client on one API server. Return how many laws were broken."""
    names, seconds, seed = options.names, options.seconds, options.seed
    clients, missing = list_clients(binaries)
    for name, why in missing.items():
        print(f"  {name} is left out: {why}")
    clients = [client for client in clients if not names or client.name in names]
    policy = directory / "whole-audit-policy.json"
    policy.write_text(json.dumps(WITH_OBJECTS))
    modes = [mode for mode in list_modes(binaries) if not options.modes or mode.name in options.modes]
    violations = 0
    with ControlPlane(binaries, directory, flags=[f"--audit-policy-file={policy}"]) as plane:
        cluster = Cluster(plane)
        with install_modes(cluster, directory, modes, len(clients) + 1):
            common = create_strangers(cluster)
            if "rare habits" in names or not names:
                problems = list(_check_rare_habits(Batch(cluster, len(clients), modes, common)))
                print(f"  rare habits: {', '.join(ODD)}; {len(problems)} refused", flush=True)
                for problem in problems:
                    print(f"FAILED {problem}")
                violations += len(problems)
            for number, client in enumerate(clients):
                batch = Batch(cluster, number, modes, common)
                with ExitStack() as stack:
                    play = Run(stack, client, batch, directory, random.Random(seed + number))
                    problems = list(play.play(seconds))
                time.sleep(1)
                for place in batch.places:
                    counts = Counter[str]()
                    if place.mode is not NONE:
                        problems += find_wrong_refusals(
                            read_writes(plane.audit_log, place.namespace), place.mode, counts
                        )
                    else:
                        list(find_wrong_refusals(read_writes(plane.audit_log, place.namespace), place.mode, counts))
                    strangers = play.stored[place.mode.name]
                    print(f"  {client.name}, {place.mode.name}: {dict(counts)}, {strangers} writes of strangers")
                for problem in problems:
                    print(f"FAILED {client.name}, {problem}")
                violations += len(problems)
                sys.stdout.flush()
    return violations


def main(arguments: Sequence[str] | None = None) -> int:
    """Play on each version that is asked for. Return 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.law_electors", description=__doc__)
    parser.add_argument("--kubernetes", nargs="*", default=["v1.37", "v1.34"], help="versions that begin so")
    parser.add_argument("--seconds", type=float, default=80, help="for each client")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help='names of clients, or "rare habits"')
    parser.add_argument("--modes", nargs="*", default=[], help="names of modes, beside the place without us")
    options = parser.parse_args(arguments)
    violations = 0
    for binaries in build_all_binaries(*options.kubernetes):
        began = time.monotonic()
        print(f"{binaries.version}, seed {options.seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="lease-webhook-law-") as temporary:
            run_options = Options(options.only, options.modes, options.seconds, options.seed)
            violations += run(binaries, Path(temporary), run_options)
        print(f"  {violations} laws broken, {time.monotonic() - began:.0f} s", flush=True)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
