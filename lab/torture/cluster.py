"""Three etcd, two API servers, each behind forwarders to etcd, and every stored version."""

import base64
import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from lab.e2e.api_client import ApiClient
from lab.e2e.control_plane import ControlPlane, find_free_port
from lab.e2e.etcd import encode, find_range_end
from lab.e2e.forwarder import HeldStreams
from lab.e2e.processes import Process
from lab.e2e.toolchain import Binaries
from tests.waiting import wait_for

MEMBERS: Final = 3
SERVERS: Final = 2
_REGISTRY: Final = b"/registry/"
_LEASES: Final = b"/registry/leases/"


class Cluster(ControlPlane):
    """A cluster whose etcd has values as JSON and is never compacted, so `stored` finds every version of an object."""

    def __init__(self, binaries: Sequence[Binaries], directory: Path) -> None:
        """Set up the cluster. `binaries` are of the versions that the API servers have in turn."""
        super().__init__(binaries[0], directory)
        self.versions = tuple(one.version for one in binaries)
        self._servers = [one.apiserver for one in binaries]
        self.ports = (self.port, *(find_free_port() for _ in range(SERVERS - 1)))
        self.held: list[list[HeldStreams]] = []
        self._stack = ExitStack()
        self._commands: dict[str, tuple[str, ...]] = {}
        self._named: dict[str, Process] = {}
        self._etcd: list[int] = []

    def __exit__(self, *arguments: object) -> None:
        for name in self._named:
            self._send_signal(name, signal.SIGCONT)
        self._stack.close()
        super().__exit__(*arguments)

    def create_server_client(self, number: int, name: str, token: str = "") -> ApiClient:
        """Return a client of one of the API servers; without a token it is the administrator."""
        certificate = None if token else self._admin
        return ApiClient(self.ports[number], self.authority.file, name, certificate, token)

    def write_kubeconfig_for(self, port: int, name: str, token: str) -> Path:
        """Write a kubeconfig with a token for a port of this machine, and return its path."""
        file = self.write_token_kubeconfig(name, token)
        file.write_text(file.read_text().replace(self.server, f"https://127.0.0.1:{port}"))
        return file

    @contextmanager
    def pause(self, name: str) -> Iterator[None]:
        """Send SIGSTOP to `etcd-0` or `server-1`, and SIGCONT in the end."""
        self._send_signal(name, signal.SIGSTOP)
        try:
            yield
        finally:
            self._send_signal(name, signal.SIGCONT)

    @contextmanager
    def crash(self, name: str) -> Iterator[None]:
        """Send SIGKILL, and start a new process with the same data in the end."""
        self._named[name].kill()
        try:
            yield
        finally:
            self._start_again(name)

    @contextmanager
    def delay(self, number: int) -> Iterator[None]:
        """Keep an API server from reading and writing leases in etcd: its watch delivers nothing."""
        for forwarder in self.held[number]:
            forwarder.hold()
        try:
            yield
        finally:
            for forwarder in self.held[number]:
                forwarder.release()

    def wait_until_ready(self) -> None:
        """Wait until both API servers are ready."""
        for number in range(SERVERS):
            client = self.create_server_client(number, "readiness")
            wait_for(f"server-{number} ready", lambda client=client: _is_ready(client), 180, 0.2)

    def read_revision(self) -> int:
        """Return the revision of the last write to anything."""
        return int(self._ask("kv/range", {"key": encode(b"\0"), "limit": 1})["header"]["revision"])

    def list_stored(self, *prefixes: str) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
        """Yield the versions stored below these: revision, key without its prefix, and the object unless deleted."""
        for prefix in prefixes:
            path = _REGISTRY + prefix.encode()
            last = self.read_revision()
            # An event of its own ends the watch.
            self._ask("kv/put", {"key": encode(path + b"~"), "value": encode(b"{}")})
            for event in self._watch(path):
                key = base64.b64decode(event["kv"]["key"])[len(_REGISTRY) :].decode()
                revision = int(event["kv"]["mod_revision"])
                if revision > last:
                    break
                deleted = event.get("type") == "DELETE"
                yield revision, key, None if deleted else json.loads(base64.b64decode(event["kv"]["value"]))

    def _watch(self, path: bytes) -> Iterator[dict[str, Any]]:
        request = {"key": encode(path), "range_end": encode(find_range_end(path)), "start_revision": 1}
        with self._open("watch", {"create_request": request}) as answer:
            for line in answer:
                yield from json.loads(line)["result"].get("events", ())

    def _ask(self, what: str, body: dict[str, Any]) -> Any:
        for port in self._etcd * 10:
            with suppress(OSError), self._open(what, body, port) as answer:
                return json.load(answer)
        raise TimeoutError("etcd")

    def _open(self, what: str, body: dict[str, Any], port: int = 0) -> Any:
        address = f"http://127.0.0.1:{port or self._etcd[0]}/v3/{what}"
        return urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode()), timeout=10)

    def _start(self) -> None:
        self._admin = self.authority.issue("torture-admin", organizations=("system:masters",))
        super()._start()
        for number in range(1, SERVERS):
            flags_by_name = {
                "--secure-port": str(self.ports[number]),
                "--audit-log-path": str(self.directory / f"audit-{number}.jsonl"),
                "--etcd-servers": self._start_forwarders(),
            }
            flags = [_replace(part, flags_by_name) for part in self._commands["server-0"][1:]]
            self._begin(f"server-{number}", [str(self._servers[number % len(self._servers)]), *flags])
        self.wait_until_ready()

    def _run(self, name: str, *command: str) -> Process:
        if name == "etcd":
            return self._start_member()
        flags_by_name = {"--etcd-servers": self._start_forwarders()}
        flags = ("--storage-media-type=application/json", "--etcd-compaction-interval=0")
        return self._begin("server-0", [*(_replace(part, flags_by_name) for part in command), *flags])

    def _begin(self, name: str, command: list[str]) -> Process:
        self._commands[name] = tuple(command)
        self._named[name] = super()._run(name, *command)
        return self._named[name]

    def _start_member(self) -> Process:
        clients, peers = ([find_free_port() for _ in range(MEMBERS)] for _ in range(2))
        self._etcd = clients
        everyone = ",".join(f"etcd-{number}=http://127.0.0.1:{port}" for number, port in enumerate(peers))
        for number in range(MEMBERS):
            client, peer = (f"http://127.0.0.1:{ports[number]}" for ports in (clients, peers))
            command = [
                *(str(self.binaries.etcd), f"--name=etcd-{number}", f"--data-dir={self.directory / f'etcd-{number}'}"),
                *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
                *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
                *(f"--initial-cluster={everyone}", "--unsafe-no-fsync", "--log-level=error"),
                *("--heartbeat-interval=200", "--election-timeout=2000"),
            ]
            last = self._begin(f"etcd-{number}", command)
        return last

    def _start_forwarders(self) -> str:
        streams = [self._stack.enter_context(HeldStreams(port, _LEASES)) for port in self._etcd]
        self.held.append(streams)
        return ",".join(f"http://127.0.0.1:{one.port}" for one in streams)

    def _start_again(self, name: str) -> None:
        process = Process(self._commands[name], self.directory / f"{name}.log")
        self._processes[self._processes.index(self._named[name])] = process
        self._named[name] = process

    def _send_signal(self, name: str, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._named[name].pid, number)


def _replace(part: str, flags_by_name: dict[str, str]) -> str:
    match = re.match(r"(--[\w-]+)=", part)
    return f"{match[1]}={flags_by_name[match[1]]}" if match and match[1] in flags_by_name else part


def _is_ready(client: ApiClient) -> bool:
    try:
        return client.send("GET", "/readyz").status == 200
    except OSError:
        return False
