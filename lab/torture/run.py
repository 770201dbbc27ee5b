"""One run: leases, electors, traffic and faults, all from one seed; it returns its history."""

import datetime as dt
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from lab.e2e.api_client import MERGE, ApiClient
from lab.e2e.control_plane import read_audit_log
from lab.e2e.fence.trial import allow_service_accounts, export_fence
from lab.e2e.forwarder import Partition
from lab.e2e.kubectl import Kubectl
from lab.e2e.stamping import label
from lab.e2e.toolchain import Binaries
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import PROJECT, Account, World, build_lease_path
from lab.torture.cluster import SERVERS, Cluster
from lab.torture.electors import Elector, Programs, start_network
from lab.torture.history import Attack, Denial, Gap, History, Operation, StoredVersion
from lab.torture.traffic import PATH, REGISTERS, Mallory, Register, Stranger
from tests.waiting import wait_for

REVIEWED, STAMPED = "reviewed", "stamped"
LEASES: Final = {REVIEWED: "mixed", STAMPED: "operator"}
KINDS: Final = {
    REVIEWED: ("go", "go", "python", "java", "rust"),
    STAMPED: ("client-go", "controller-runtime", "python"),
}
OFFSETS: Final = (0, 0, 3, -3, 40, -40, 1800, -1800)
FENCE: Final = "torture"
_LOG: Final = f"/api/v1/namespaces/{STAMPED}/configmaps/log"
_LONGEST: Final = 9.0
_EACH: Final = 4.0
"""Seconds between the beginnings of two faults, about."""


_Fault = Callable[[], AbstractContextManager[Any]]


class Run:
    """A cluster with everything in it."""

    def __init__(
        self, stack: ExitStack, binaries: Sequence[Binaries], directory: Path, seed: int, *, protected: bool
    ) -> None:
        self.chance = random.Random(seed)
        self.seed, self.protected, self._stack = seed, protected, stack
        directory.mkdir(parents=True)
        self.cluster = stack.enter_context(Cluster(binaries, directory))
        self.world = World(self.cluster)
        self.programs = Programs(self.cluster)
        self.kubectl = Kubectl(
            binaries[0].kubectl, self.cluster.write_kubeconfig("operator-of-torture", "system:masters")
        )
        allow_service_accounts(self.world.admin)
        self.suffix = self._first = f"{seed:08x}a0"
        self.gaps: list[Gap] = []
        self.faults: list[str] = []
        self._of_ours = threading.Lock()
        self.world.create_local_service()
        self._accounts: dict[str, Account] = {}
        for namespace in (REVIEWED, STAMPED, "registers"):
            self.world.create_namespace(namespace, route=REVIEWED if namespace == REVIEWED else "")
        self.world.admin.send(
            "POST", f"/api/v1/namespaces/{STAMPED}/configmaps", {"metadata": {"name": "log"}}
        ).expect()
        for name in REGISTERS:
            self.world.admin.send("POST", PATH, {"metadata": {"name": name}, "data": {"value": ""}}).expect()
        for namespace in LEASES:
            self._accounts[namespace] = self.world.create_account(namespace, "mallory")
        self._accounts["probe"] = self.world.create_account(STAMPED, "elector", pod="probe")
        self.webhook = WebhookServer(directory, self.world.certs, policy="strict")
        if protected:
            stack.enter_context(self.webhook)
            self.world.register(REVIEWED, self.webhook.port, failure_policy="Fail")
            label(self.world, STAMPED)
            self._install(self.suffix)
        self.electors = list(self._create_electors())

    def play(self, seconds: float) -> History:
        """Let everything run for so long, and return the stored history."""
        stop = threading.Event()
        self._stack.callback(stop.set)  # also if the run is ended from outside
        admins = [self.cluster.create_server_client(number % SERVERS, f"register-{number}") for number in range(4)]
        registers = [Register(number, one, random.Random(self.chance.random())) for number, one in enumerate(admins)]
        attackers = [self._create_attacker(namespace) for namespace in LEASES]
        plan = sorted(self._plan_faults(seconds), key=lambda one: one[0])
        for elector in self.electors:
            elector.start()
        for path in (build_lease_path(namespace, lease) for namespace, lease in LEASES.items()):
            wait_for("a leader", partial(self._is_held, path), 60)
        begin = time.time_ns() // 1000
        threads = [threading.Thread(target=one.run, args=(stop,)) for one in registers]
        threads += [
            threading.Thread(target=one.run, args=(stop, random.Random(self.chance.random()))) for one in attackers
        ]
        probes = [
            self.cluster.create_server_client(number, "probe", _create_token(self._accounts["probe"]))
            for number in range(SERVERS)
        ]
        threads.append(threading.Thread(target=Stranger(probes, _LOG).run, args=(stop,)))
        threads.append(threading.Thread(target=self._restart_stopped, args=(stop,)))
        for thread in threads:
            thread.start()
        with ThreadPoolExecutor(12) as pool:
            started = time.monotonic()
            jobs = []
            for at, words, duration, fault in plan:
                time.sleep(max(0.0, started + at - time.monotonic()))
                jobs.append(pool.submit(self._run_fault, started, words, duration, fault))
            for job in jobs:
                job.result()
            time.sleep(max(0.0, started + seconds - time.monotonic()))
        end = time.time_ns() // 1000
        for elector in self.electors:
            elector.resume()
        stop.set()
        for thread in threads:
            thread.join()
        operations = [operation for one in registers for operation in one.operations]
        return self._build_history(begin, end, operations, [attack for one in attackers for attack in one.attacks])

    def _plan_faults(self, seconds: float) -> Iterator[tuple[float, str, float, _Fault]]:
        """Yield the moment, the words, the duration and the action of each fault."""
        chance, cluster = self.chance, self.cluster
        busy: dict[str, float] = {}
        at = 2.0
        while at < seconds - _LONGEST - 6:
            draw = chance.random()
            namespace, pick = chance.choice([*LEASES]), chance.choice([0, 0, 0, *range(1, 5)])
            member, number = f"etcd-{chance.randrange(3)}", chance.randrange(SERVERS)
            server = f"server-{number}"
            table: tuple[tuple[float, str, float, float, str, _Fault], ...] = (
                (0.24, "pause", 3, _LONGEST, namespace, partial(self._hit_elector, namespace, pick, Elector.pause)),
                (0.32, "kill", 0.5, 4, namespace, partial(self._hit_elector, namespace, pick, _kill)),
                (0.38, "end", 0.5, 4, namespace, partial(self._hit_elector, namespace, pick, _end)),
                (0.52, "cut off", 3, _LONGEST, namespace, partial(self._hit_elector, namespace, pick, self._cut)),
                (0.64, f"leases are late at {server}", 2, _LONGEST, "plane", partial(cluster.delay, number)),
                (0.72, f"pause {member}", 0.5, 4, "plane", partial(cluster.pause, member)),
                (0.79, f"kill {member}", 0.5, 4, "plane", partial(cluster.crash, member)),
                (0.86, f"pause {server}", 0.5, 4, "plane", partial(cluster.pause, server)),
                (0.91, f"kill {server}", 0.5, 3, "plane", partial(cluster.crash, server)),
                (0.96, "kill the webhook", 1, 5, "plane", self._stop_webhook),
                (1.01, "remove the policies", 1, 3, "plane", self._remove_policies),
            )
            _, words, low, high, what, fault = next(row for row in table if draw < row[0])
            duration = chance.uniform(low, high)
            if at >= busy.get(what, 0):
                busy[what] = at + duration + (9 if "kill server" in words or "polic" in words else 2)
                yield at, words, duration, fault
            at += _EACH * chance.uniform(0.2, 0.9)

    @contextmanager
    def _hit_elector(
        self, namespace: str, pick: int, fault: Callable[[Elector], AbstractContextManager[None]]
    ) -> Iterator[str]:
        """Inject a fault into whoever holds the lease, or, unless `pick` is 0, into one of the electors."""
        mine = [one for one in self.electors if one.name.startswith(namespace)]
        try:
            reply = self.cluster.create_server_client(pick % SERVERS, "aim").send(
                "GET", build_lease_path(namespace, LEASES[namespace])
            )
            holder = str(reply.body.get("spec", {}).get("holderIdentity") or "").partition("_")[0]
        except OSError:
            holder = ""
        leader = next((one for one in mine if one.name == holder), None)
        victim = leader if leader and not pick else mine[pick % len(mine)]
        with fault(victim):
            yield f"{victim.name}{', the leader' if victim is leader else ''}"

    def _run_fault(
        self, started: float, words: str, duration: float, fault: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        begin = time.monotonic() - started
        with fault() as whose:
            time.sleep(duration)
        words = f"{words} {whose}" if whose else words
        self.faults.append(f"{begin:.1f} s to {time.monotonic() - started:.1f} s: {words}")

    def _cut(self, elector: Elector) -> AbstractContextManager[None]:
        way = self._ways[elector.name]

        @contextmanager
        def cut() -> Iterator[None]:
            way.cut()
            try:
                yield
            finally:
                way.heal()

        return cut()

    @contextmanager
    def _stop_webhook(self) -> Iterator[None]:
        if not self.protected:
            yield
            return
        # On a busy machine it may take longer to start than the next fault is away.
        with self._of_ours:
            self.webhook.stop()
            try:
                yield
            finally:
                self.webhook.start()

    @contextmanager
    def _remove_policies(self) -> Iterator[None]:
        if not self.protected:
            yield
            return
        with self._of_ours:
            self.cluster.wait_until_ready()
            after = self.cluster.read_revision()
            self.kubectl.run_checked("delete", "-f", "-", manifest=self._render_policies(self.suffix))
            try:
                yield
            finally:
                # No one may know the next suffix before it is in force.
                suffix = f"{self.seed:08x}a{len(self.gaps) + 1}"
                self._install(suffix)
                self.gaps.append(Gap(after, self.cluster.read_revision(), suffix))
                self.suffix = suffix

    def _render_policies(self, suffix: str) -> str:
        text = (PROJECT / "deploy" / "stamp" / "policies.yaml").read_text(encoding="utf-8")
        policies = text.replace("expression: SUFFIX", f"expression: \"'{suffix}'\"")
        own = {
            "writers": [f"{STAMPED}/elector"],
            "resources": ["configmaps"],
            "namespaces": [STAMPED],
            "token": True,
            "when_unheld": "deny",
        }
        return policies + "\n---\n" + export_fence(FENCE, f"{STAMPED}/operator", suffix=suffix, **own)

    def _install(self, suffix: str) -> None:
        self.cluster.wait_until_ready()
        self.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=self._render_policies(suffix))
        for number in range(SERVERS):
            client = self.cluster.create_server_client(number, "probe", _create_token(self._accounts["probe"]))
            wait_for("the policies", partial(self._is_in_force, suffix, client), 60, 0.3)
        time.sleep(2)  # each policy is compiled by itself

    def _is_in_force(self, suffix: str, client: ApiClient) -> bool:
        body = {"metadata": {"name": "probe"}, "spec": {"holderIdentity": "a"}}
        try:
            lease = client.send("POST", build_lease_path(STAMPED), body, dryRun="All").body
            log = client.send("PATCH", _LOG, {}, media=MERGE, dryRun="All")
        except OSError:
            return False
        annotations = lease.get("metadata", {}).get("annotations") or {}
        return f"lease-webhook/writer-{suffix}" in annotations and "ValidatingAdmissionPolicy" in log.message

    def _create_attacker_client(self, number: int, namespace: str) -> ApiClient:
        return self.cluster.create_server_client(number, "mallory", _create_token(self._accounts[namespace]))

    def _create_attacker(self, namespace: str) -> Mallory:
        client = self._create_attacker_client(self.chance.randrange(SERVERS), namespace)
        return Mallory(client, namespace, LEASES[namespace], self._list_keys, limits=namespace == STAMPED)

    def _list_keys(self) -> list[str]:
        return [f"lease-webhook/{name}-{self.suffix}" for name in ("writer", "written", "term")]

    def _create_electors(self) -> Iterator[Elector]:
        self._ways: dict[str, Partition] = {}
        self.offsets: dict[str, int] = {}
        for namespace, kinds in KINDS.items():
            for number, kind in enumerate(kinds):
                name, way = f"{namespace}-{number}-{kind}", start_network(self._stack, self.cluster, self.chance)
                account = self.world.create_account(namespace, "elector", pod=name)
                config = self.cluster.write_kubeconfig_for(way.port, name, _create_token(account))
                command = self.programs.build_command(kind, config, namespace, LEASES[namespace], name)
                offset = 0 if kind in ("go", "client-go", "controller-runtime") else self.chance.choice(OFFSETS)
                if command is not None:
                    self._ways[name] = way
                    holder = f"{name}_4b1c" if kind in ("client-go", "controller-runtime") else name
                    self.offsets[holder] = offset
                    yield Elector(self._stack, self.programs, self.cluster, name, command, offset)

    def _restart_stopped(self, stop: threading.Event) -> None:
        """Restart controllers as a kubelet does: one that has lost its lease ends, here after some more writes."""
        deadlines: dict[str, float] = {}
        while not stop.wait(0.5):
            for elector in self.electors:
                if "client-go" in elector.name or "controller-runtime" in elector.name:
                    if elector.has_stopped():
                        deadlines[elector.name] = time.monotonic() + 5
                    if deadlines.get(elector.name, 1e12) < time.monotonic():
                        del deadlines[elector.name]
                        elector.kill()
                        elector.start()

    def _is_held(self, path: str) -> bool:
        reply = self.world.admin.send("GET", path)
        return reply.status == 200 and bool(reply.body.get("spec", {}).get("holderIdentity"))

    def _read_denials(self) -> Iterator[Denial]:
        for log in (self.cluster.audit_log, self.cluster.directory / "audit-1.jsonl"):
            for event in read_audit_log(log):
                if event.get("objectRef", {}).get("namespace") in LEASES and _is_denied(event):
                    pod = event["user"].get("extra", {}).get("authentication.kubernetes.io/pod-name", [""])[0]
                    at = round(dt.datetime.fromisoformat(event["stageTimestamp"]).timestamp() * 1e6)
                    message = event["responseStatus"].get("message", "")[:300]
                    yield Denial(at, event["objectRef"]["namespace"], pod, event["verb"], message)

    def _build_history(self, begin: int, end: int, operations: list[Operation], attacks: list[Attack]) -> History:
        self.cluster.wait_until_ready()
        versions: dict[str, list[StoredVersion]] = {}
        for revision, key, value in self.cluster.list_stored(*(f"leases/{namespace}/" for namespace in LEASES)):
            versions.setdefault(key.removeprefix("leases/"), []).append(StoredVersion(revision, value))
        logs = [
            StoredVersion(number, value) for number, _, value in self.cluster.list_stored(f"configmaps/{STAMPED}/log")
        ]
        faults = sorted(self.faults, key=lambda one: float(one.partition(" ")[0]))
        return History(
            *(self.seed, self.protected, begin, end, faults, self._first, self.gaps, self.offsets),
            leases={f"{namespace}/{name}": versions[f"{namespace}/{name}"] for namespace, name in LEASES.items()},
            logs=logs,
            operations=operations,
            attacks=attacks,
            denials=sorted(self._read_denials(), key=lambda one: one.at),
            versions=self.cluster.versions,
        )


def _is_denied(event: dict[str, Any]) -> bool:
    # Without etcd no one is authenticated, and the event has no user.
    user, status = event["user"].get("username", ""), event.get("responseStatus", {})
    return user.endswith(":elector") and status.get("code") in (400, 403, 422)


@contextmanager
def _end(elector: Elector) -> Iterator[None]:
    """Send SIGTERM, after which some release the lease."""
    elector.end()
    try:
        yield
    finally:
        elector.start()


@contextmanager
def _kill(elector: Elector) -> Iterator[None]:
    elector.kill()
    try:
        yield
    finally:
        elector.start()


def _create_token(account: Account) -> str:
    return str(json.loads(account.kubeconfig.read_text())["users"][0]["user"]["token"])
