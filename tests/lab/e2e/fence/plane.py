"""A control plane with a second API server on the same etcd, and a proxy that can cut one client off."""

import socket
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import Self

from tests.lab.e2e.api_client import ApiClient
from tests.lab.e2e.control_plane import ControlPlane, free_port
from tests.lab.e2e.processes import Process
from tests.lab.e2e.waiting import wait_for


class TwoServers(ControlPlane):
    """`start_second` starts it, also again on the same port after `crash_second`."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # as the parent
        self.second_port = free_port()
        self._apiserver: tuple[str, ...] = ()
        self._second: Process | None = None

    def start_second(self) -> None:
        """Start it and wait until it is ready."""
        changed = {
            "--secure-port": str(self.second_port),
            "--audit-log-path": str(self.directory / "audit-second.jsonl"),
        }
        command = [
            f"{flag}={changed[flag]}" if (flag := part.partition("=")[0]) in changed else part
            for part in self._apiserver
        ]
        self._second = self._run("kube-apiserver-second", *command)
        admin = self.client(self.second_port)
        _ = self.admin_kubeconfig

        def ready() -> bool:
            try:
                return admin.send("GET", "/readyz").status == 200
            except OSError:
                return False

        wait_for("the second kube-apiserver ready", ready, 180, 0.2)

    def crash_second(self) -> None:
        """SIGKILL; `start_second` brings it back on the same port."""
        assert self._second
        self._second.kill()

    def client(self, port: int) -> ApiClient:
        """The administrator at one of the two."""
        return ApiClient(port, self.authority.file, "fence-admin", self.certificate)

    @cached_property
    def certificate(self) -> tuple[Path, Path]:
        """That of the administrator, issued once: trials run side by side."""
        return self.authority.issue("fence-admin", organizations=("system:masters",))

    @cached_property
    def admin_kubeconfig(self) -> Path:
        """That of the administrator, written once."""
        return self.kubeconfig("fence-observer", "system:masters")

    def kubeconfig_at(self, port: int, name: str, token: str) -> Path:
        """A kubeconfig that shows a token to a port of this machine."""
        file = self.token_kubeconfig(name, token)
        file.write_text(file.read_text().replace(self.server, f"https://127.0.0.1:{port}"))
        return file

    def _run(self, name: str, *command: str) -> Process:
        if name == "kube-apiserver":
            self._apiserver = command
        return super()._run(name, *command)


class Partition:
    """Forwards connections to one port; while `cut` nothing passes in either direction, and nothing is closed.

    `delay` is how many seconds everything takes longer, in each direction.
    """

    def __init__(self, backend: int) -> None:
        self._backend, self.delay = backend, 0.0
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, name="partition", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def cut(self) -> None:
        """Hold everything back from now on."""
        self._open.clear()

    def heal(self) -> None:
        """Deliver what was held back, late, as a network does."""
        self._open.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                backend = socket.create_connection(("127.0.0.1", self._backend))
            except ConnectionRefusedError:
                client.close()
                continue
            for source, target in ((client, backend), (backend, client)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._open.wait()
                if self.delay:
                    time.sleep(self.delay)
                target.sendall(data)
            self._open.wait()
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, target):
                end.close()
