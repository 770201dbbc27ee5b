"""`make causes`: induce each cause of a silence many times, ask `why`, and keep its answers for docs/incidents.md.

Every election has a namespace of its own, two client-go electors with times by chance, and a fault whose moment and
length are by chance. Many run side by side on one API server, beside leases that are renewed throughout, as most are in
a cluster; what concerns every lease has waves of its own.
"""

import argparse
import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from lab.e2e.api_client import MERGE, ApiClient
from lab.e2e.forwarder import Partition
from lab.e2e.incidents.measured_cases import format_now, make_claim, start_heartbeat
from lab.e2e.incidents.recording import Recording
from lab.e2e.incidents.scene import Replica, Scene
from lab.e2e.incidents.stage import Plane, Stage
from lab.e2e.incidents.vendor import Vendor
from lab.e2e.toolchain import VERSIONS, build_all_binaries
from lab.e2e.world import PROJECT, build_lease_path
from tests.waiting import wait_for
from tools.circumstances import find_circumstances

RESULTS: Final = PROJECT / "tests" / "data" / "causes.json"
EACH: Final = 20
"""How often each cause is induced."""
SIDE_BY_SIDE: Final = 4
"""Elections of one cause in one wave."""
TIMES: Final[Sequence[tuple[int, int, float]]] = ((15, 10, 2), (15, 10, 2), (10, 7, 1.5), (20, 14, 3))
"""Duration, deadline and retry period in seconds."""
AFTERWARDS: Final = 14.0
WITNESSES: Final = 80
"""Leases that are renewed throughout, more than elections of a wave: without them most leases of a wave are late at the
same time, which only an outage explains."""
_WITNESS_THREADS: Final = 4
_WITNESS_NAMESPACE: Final = "steady"


class Election:
    """One election: its chance, its times, its way to the API server; the leader is the first replica."""

    def __init__(self, stage: Stage, vendor: Vendor, cause: str, number: int, seed: int) -> None:
        self.stage, self.vendor, self.cause = stage, vendor, cause
        self.chance = random.Random(f"{seed} {cause} {number}")
        name = f"{cause}-{number:02}"
        self.scene = Scene(stage, name, name)
        self.duration, self.deadline, self.retry = self.chance.choice(TIMES)
        self.way = stage.stack.enter_context(Partition(stage.plane.port)) if cause in _OWN_WAY else None
        self.node = f"worker-{name}" if cause == "cut-off" else ""

    @property
    def leader(self) -> Replica:
        """First replica."""
        return self.scene.replicas[0]

    @property
    def silence(self) -> float:
        """Duration of the fault in seconds."""
        return self.duration * self.chance.uniform(1.2, 1.9) + 2

    def start(self) -> None:
        """Start the leader, then the follower, then wait for renewals for a while."""
        times = (f"-duration={self.duration}s", f"-deadline={self.deadline}s", f"-retry={int(self.retry * 1000)}ms")
        flags = _FLAGS[self.cause](self.chance) if self.cause in _FLAGS else ()
        port = self.way.port if self.way else 0
        if self.node:
            start_heartbeat(self.scene, self.node, port)
        name = self.scene.lease
        first = self.scene.start(f"{name}-7d4b9c-x2x8p", *times, *flags, port=port, node=self.node)
        wait_for(f"{name} leads", lambda: any(first.list_printed()), 90, 0.5)
        self.scene.start(f"{name}-7d4b9c-q9hkz", *times)
        time.sleep(5 * self.retry + self.chance.uniform(1, 8))

    def run(self) -> None:
        """Start the election, and play the fault."""
        self.start()
        FAULTS[self.cause](self)


def _throttle(election: Election) -> None:
    time.sleep(election.silence + election.duration)


def _kill(election: Election) -> None:
    election.scene.kill(election.leader)
    time.sleep(election.silence)


def _stop(election: Election) -> None:
    election.scene.stop(election.leader)
    election.scene.remove_pod(election.leader)
    time.sleep(election.silence)


def _pause(election: Election) -> None:
    election.scene.pause(election.leader)
    time.sleep(election.silence)
    election.scene.resume(election.leader)


def _starve(election: Election) -> None:
    for _ in range(3):
        election.scene.pause(election.leader)
        time.sleep(election.deadline * election.chance.uniform(1.05, 1.25) + 1)
        election.scene.resume(election.leader)
        time.sleep(election.chance.uniform(0.2, 0.6))


def _cut_off(election: Election) -> None:
    assert election.way
    election.way.cut()
    time.sleep(election.silence)
    election.way.heal()


def _conflict(election: Election) -> None:
    """Delay the leader's requests, so that another writer always comes between its read and its write."""
    assert election.way
    election.way.delay = election.chance.uniform(0.2, 0.35)
    stage, path = election.stage, election.scene.path
    labeler = stage.create_pod(
        election.scene.namespace, "cost-labeler", f"cost-labeler-{election.chance.randrange(10**5):05}"
    )
    end, interval = time.monotonic() + election.silence, election.chance.uniform(0.08, 0.12)
    for number in itertools.count():
        if time.monotonic() > end:
            break
        patch = {"metadata": {"annotations": {"example.com/cost": str(number)}}}
        labeler.client.send("PATCH", path, patch, media=MERGE).expect(200)
        time.sleep(interval)
    election.way.delay = 0


def _remove_rights(election: Election) -> None:
    election.stage.revoke(election.scene.namespace)
    time.sleep(election.silence)
    election.stage.grant(election.scene.namespace)


def _deny(election: Election) -> None:
    election.vendor.denied.add(election.scene.namespace)
    election.vendor.register(election.scene.namespace)
    time.sleep(election.silence + 2)
    election.vendor.remove(election.scene.namespace)


def _hang(election: Election) -> None:
    election.vendor.delays[election.scene.namespace] = 30
    election.vendor.register(election.scene.namespace, seconds=election.chance.choice((3, 5, 10)))
    time.sleep(election.silence + 2)
    election.vendor.remove(election.scene.namespace)


def _wait(election: Election) -> None:
    """Wait: the wave itself has the fault."""
    time.sleep(election.chance.uniform(0, 2))


FAULTS: Final[Mapping[str, Callable[[Election], None]]] = {
    "throttled": _throttle,
    "killed": _kill,
    "stopped": _stop,
    "released": _stop,
    "paused": _pause,
    "starved": _starve,
    "cut-off": _cut_off,
    "conflicts": _conflict,
    "rights": _remove_rights,
    "denied": _deny,
    "hangs": _hang,
    "etcd": _wait,
    "balancer": _wait,
}
_SHARED: Final = ("etcd", "balancer")
_OWN_WAY: Final = {"cut-off", "conflicts"}
_FLAGS: Final[Mapping[str, Callable[[random.Random], tuple[str, ...]]]] = {
    "released": lambda _: ("-release",),
    "throttled": lambda chance: (f"-qps={chance.uniform(0.02, 0.06):.3f}", f"-burst={chance.randrange(9, 13)}"),
}
TITLES: Final = {
    "throttled": "its own rate limiter",
    "killed": "killed",
    "stopped": "stopped without a release (rollout, drain)",
    "released": "stopped, and released the lease",
    "paused": "paused",
    "starved": "starved of CPU",
    "cut-off": "its node cut off",
    "conflicts": "conflicts with another writer",
    "rights": "rights removed",
    "denied": "a webhook denies in its namespace",
    "hangs": "a webhook hangs in its namespace",
    "etcd": "etcd stalled",
    "balancer": "the load balancer passes nothing on",
}
SOURCES: Final = ("log", "watch", "metadata")
RIGHT: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("throttled", "killed", "paused", "starved", "cut-off"), frozenset({"stopped"})),
    "stopped": frozenset({"stopped", "pod-deleted"}),
    "released": frozenset(),
    "conflicts": frozenset({"conflict"}),
    "rights": frozenset({"refused-rights"}),
    "denied": frozenset({"refused-webhook"}),
    "hangs": frozenset({"failed"}),
    "etcd": frozenset({"api-server", "failed"}),
    "balancer": frozenset({"network"}),
}
"""The causes of docs/claims.md that hold; a claim is true if it names one of them."""
NOTHING: Final = "no cause"
_LIMIT: Final = "its own rate limit"
"""The words of a text about a client that seems to limit its own requests; no identifier of a claim says that."""


class Answer(Struct, frozen=True):
    """The causes that `why` leaves for the loss of one election, sorted by name."""

    causes: tuple[str, ...] = ()
    names_limit: bool = False


class Cell(Struct, frozen=True):
    """The number of times that `why` gave an answer, which is wrong if none of its causes holds."""

    cause: str
    source: str
    causes: tuple[str, ...]
    names_limit: bool
    number: int
    is_wrong: bool


def play_wave(stage: Stage, vendor: Vendor, elections: Sequence[Election], shared: Callable[[], None] | None) -> None:
    """Play elections side by side; `shared` is a fault of them all."""
    with ThreadPoolExecutor(len(elections)) as pool:
        list(pool.map(Election.run, elections))
    if shared:
        shared()
    time.sleep(AFTERWARDS)


@contextmanager
def renew_witnesses(stage: Stage) -> Iterator[None]:
    """Renew leases of other holders, by the load balancer, as long as this is entered."""
    stage.create_namespace(_WITNESS_NAMESPACE)
    certificate = stage.plane.authority.issue(_WITNESS_NAMESPACE, organizations=["system:masters"])
    client = ApiClient(stage.balancer.port, stage.plane.authority.file, _WITNESS_NAMESPACE, certificate)
    names = [f"{_WITNESS_NAMESPACE}-{number:02}" for number in range(WITNESSES)]
    ended = threading.Event()
    with ThreadPoolExecutor(_WITNESS_THREADS) as pool:
        renewals = [
            pool.submit(_renew, client, names[first::_WITNESS_THREADS], ended) for first in range(_WITNESS_THREADS)
        ]
        try:
            yield
        finally:
            ended.set()
    for renewal in renewals:
        renewal.result()


def _renew(client: ApiClient, names: Sequence[str], ended: threading.Event) -> None:
    """Create leases, then renew them every two seconds. What fails is tried again, as electors do."""
    path = build_lease_path(_WITNESS_NAMESPACE)
    for name in names:
        lease = {"metadata": {"name": name}, "spec": make_claim(f"{name}_3d1c", format_now())}
        client.send("POST", path, lease).expect(201)
    while not ended.wait(2):
        for name in names:
            with suppress(OSError, HTTPException):
                client.send("PATCH", f"{path}/{name}", {"spec": {"renewTime": format_now()}}, media=MERGE)


def make_shared_fault(stage: Stage, cause: str, seconds: float) -> Callable[[], None]:
    """Return a fault that stops the process of etcd, or cuts the load balancer, for so many seconds."""

    def stall() -> None:
        with stage.plane.pause("etcd"):
            time.sleep(seconds)

    def cut() -> None:
        stage.balancer.cut()
        time.sleep(seconds)
        stage.balancer.heal()

    return stall if cause == "etcd" else cut


def strip_to_metadata(log: bytes) -> Iterator[bytes]:
    """Yield the same events at level Metadata."""
    for line in log.splitlines():
        event = json.loads(line)
        event["level"] = "Metadata"
        event.pop("requestObject", None)
        event.pop("responseObject", None)
        yield json.dumps(event, separators=(",", ":")).encode() + b"\n"


def ask_why(directory: Path, name: str, data: bytes) -> dict[str, dict[str, Any]]:
    """Return the answer of `why` about each lease of an input, by namespace."""
    file = directory / name
    file.write_bytes(data)
    command = [sys.executable, "-m", "webhook", "why", "--input", str(file), "--format", "json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    return {one["namespace"]: one for one in map(json.loads, result.stdout.splitlines())}


def find_answer(cause: str, account: Mapping[str, Any]) -> Answer:
    """Return what the claims of a loss say: one that is wrong counts if there are several, else the most exact one."""
    answers = [
        Answer(tuple(sorted(causes)), _LIMIT in claim["text"])
        for claim in account["claims"]
        if claim["claim"] in {"leader-lost", "renewal-late"}
        and (causes := claim.get("causes") or [one for one in (claim.get("cause"),) if one])
    ]
    return min(answers, key=lambda answer: (not is_wrong(cause, answer), len(answer.causes)), default=Answer())


def is_wrong(cause: str, answer: Answer) -> bool:
    """Return whether an answer names causes of which none holds."""
    return bool(answer.causes) and not RIGHT[cause].intersection(answer.causes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Induce everything, and write the table. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.incidents.cause_matrix", description=__doc__)
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--each", type=int, default=EACH, help="how often each cause is induced")
    parser.add_argument("--only", nargs="+", choices=[*FAULTS], default=[*FAULTS])
    parser.add_argument("--keep", type=Path, help="keep the inputs of `why` in this directory")
    parser.add_argument("--again", action="store_true", help="induce nothing: ask about the inputs in --keep")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="lease-webhook-causes-") as temporary:
        directory = (options.keep or Path(temporary)).absolute()
        directory.mkdir(parents=True, exist_ok=True)
        if not options.again:
            _induce(Path(temporary), directory, options.seed, options.each, options.only)
        counts = _count(directory)
    cells = [
        Cell(TITLES[cause], source, answer.causes, answer.names_limit, number, is_wrong(cause, answer))
        for cause in FAULTS
        for source in SOURCES
        for answer, number in counts[cause, source].most_common()
    ]
    measured = {"circumstances": str(find_circumstances()), "witnesses": WITNESSES, "cells": cells}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")
    for cell in cells:
        answer = ", ".join(cell.causes) or NOTHING
        print(f"{cell.source:9} {cell.cause:44} {cell.number:3} {answer}{'  WRONG' if cell.is_wrong else ''}")
    return int(any(one.is_wrong for one in cells))


def _induce(temporary: Path, inputs: Path, seed: int, each: int, causes: Sequence[str]) -> None:
    binaries = build_all_binaries(VERSIONS[0])[0]
    chance, number = random.Random(seed), 0
    numbers = [range(first, min(each, first + SIDE_BY_SIDE)) for first in range(0, each, SIDE_BY_SIDE)]
    alone = [one for one in causes if one in _SHARED]
    plans = [[one for one in causes if one not in _SHARED], *([one] for one in alone)]
    for plan, some in itertools.product(plans, numbers):
        if not plan:
            continue
        number += 1
        directory = temporary / f"plane-{number}"
        directory.mkdir()
        with (
            Plane(binaries, directory) as plane,
            ExitStack() as stack,
            Stage(plane, stack) as stage,
            Vendor(stage) as v,
            renew_witnesses(stage),
        ):
            elections = [Election(stage, v, cause, one, seed) for cause in plan for one in some]
            shared = make_shared_fault(stage, plan[0], chance.uniform(17, 30)) if plan[0] in _SHARED else None
            namespaces = [one.scene.namespace for one in elections]
            with Recording(
                stage, "wave", "kube-node-lease", _WITNESS_NAMESPACE, *namespaces, goes_on=True
            ) as recording:
                try:
                    play_wave(stage, v, elections, shared)
                finally:
                    recording.end()
                    for election in elections:
                        election.scene.end()
            (inputs / f"wave-{number}.watch.jsonl").write_bytes(recording.read_watch())
            (inputs / f"wave-{number}.audit.jsonl").write_bytes(recording.read_audit_log())
        print(f"wave {number}: {', '.join(plan)} x {len(some)}", file=sys.stderr, flush=True)


def _count(inputs: Path) -> Mapping[tuple[str, str], Counter[Answer]]:
    """Return how often each answer came, by induced cause and source."""
    counts: defaultdict[tuple[str, str], Counter[Answer]] = defaultdict(Counter)
    for file in sorted(inputs.glob("wave-*.audit.jsonl")):
        log = file.read_bytes()
        watch = Path(str(file).replace("audit", "watch")).read_bytes()
        for source, data in (("watch", watch), ("log", log), ("metadata", b"".join(strip_to_metadata(log)))):
            for namespace, account in ask_why(inputs, f"{source}.asked.jsonl", data).items():
                cause = namespace.rpartition("-")[0]
                if cause in FAULTS:
                    answer = find_answer(cause, account)
                    counts[cause, source][answer] += 1
                    if is_wrong(cause, answer):
                        print(f"{file.name} {source} {namespace}: {', '.join(answer.causes)}", file=sys.stderr)
    return counts


if __name__ == "__main__":
    sys.exit(main())
