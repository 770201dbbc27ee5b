"""A control plane with a second API server on the same etcd, or with three."""

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from lab.e2e.api_client import ApiClient
from lab.e2e.control_plane import ControlPlane, free_port
from lab.e2e.forwarder import HeldStreams
from lab.e2e.processes import Process
from tests.waiting import wait_for


def is_ready(admin: ApiClient) -> bool:
    """Return whether an API server says so."""
    try:
        return admin.send("GET", "/readyz").status == 200
    except OSError:
        return False


class TwoServers(ControlPlane):
    """`start_second` starts it, also again on the same port after `crash_second`.

    After `start_stalling` there is a third one, and the watches of both on leases can be `stalled`.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # as the parent
        self.second_port, self.third_port = free_port(), free_port()
        self._watches: list[HeldStreams] = []
        self._apiserver: tuple[str, ...] = ()
        self._etcd: tuple[str, ...] = ()
        self._running: dict[str, Process] = {}
        self._second: Process | None = None
        self._changed: dict[str, str] = {}
        self._stack = ExitStack()

    def __exit__(self, *arguments: object) -> None:
        # An API server that waits for a held answer does not end.
        self._stack.close()
        super().__exit__(*arguments)

    def start_second(self) -> None:
        """Start it and wait until it is ready."""
        self._second = self._started("second", self.second_port)

    def _started(self, name: str, port: int) -> Process:
        changed = self._changed | {
            "--secure-port": str(port),
            "--audit-log-path": str(self.directory / f"audit-{name}.jsonl"),
        }
        command = [
            f"{flag}={changed[flag]}" if (flag := part.partition("=")[0]) in changed else part
            for part in self._apiserver
        ]
        process = self._run(f"kube-apiserver-{name}", *command)
        admin = self.client(port)
        _ = self.admin_kubeconfig
        wait_for(f"the {name} kube-apiserver ready", lambda: is_ready(admin), 180, 0.2)
        return process

    def start_stalling(self) -> None:
        """Start the second and the third one behind forwarders to etcd, which can hold what they read of leases."""
        etcd = next(int(found[1]) for part in self._apiserver if (found := re.match(r"--etcd-servers=.*:(\d+)$", part)))
        for name, port in (("second", self.second_port), ("third", self.third_port)):
            self._watches.append(self._stack.enter_context(HeldStreams(etcd, b"/registry/leases/")))
            self._changed["--etcd-servers"] = f"http://127.0.0.1:{self._watches[-1].port}"
            self._started(name, port)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """The second and the third one learn nothing of leases; the third one for a moment longer."""
        for watch in self._watches:
            watch.hold()
        try:
            yield
        finally:
            for watch in self._watches:
                watch.release()
                time.sleep(0.5)

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
        if name == "etcd":
            self._etcd = command
        self._running[name] = super()._run(name, *command)
        return self._running[name]

    def copy_etcd(self) -> None:
        """Copy the data of etcd while it is paused."""
        etcd = self._running["etcd"].pid
        os.kill(etcd, signal.SIGSTOP)
        shutil.copytree(self.directory / "etcd", self.directory / "etcd-copy")
        os.kill(etcd, signal.SIGCONT)

    def restore_etcd(self) -> None:
        """Run etcd on the copy from now on; no API server is restarted."""
        self._running["etcd"].stop()
        shutil.rmtree(self.directory / "etcd")
        shutil.copytree(self.directory / "etcd-copy", self.directory / "etcd")
        self._run("etcd", *self._etcd)

    def restart_first(self) -> None:
        """Restart the first API server."""
        self._running["kube-apiserver"].kill()
        self._run("kube-apiserver", *self._apiserver)
        wait_for("kube-apiserver ready", lambda: is_ready(self.client(self.port)), 180, 0.2)
