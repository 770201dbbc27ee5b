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
from lab.e2e.control_plane import ControlPlane, find_free_port
from lab.e2e.forwarder import HeldStreams
from lab.e2e.processes import Process
from tests.waiting import wait_for


def is_ready(admin: ApiClient) -> bool:
    """Return whether an API server reports that it is ready."""
    try:
        return admin.send("GET", "/readyz").status == 200
    except OSError:
        return False


class TwoServers(ControlPlane):
    """A control plane whose `start_second` starts another API server, also again after `crash_second` on the same port.

    After `start_stalling` there is a third one, and the watches of both on leases can be `stalled`.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # as the parent
        self.second_port, self.third_port = find_free_port(), find_free_port()
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
        """Start the second API server and wait until it is ready."""
        self._second = self._start_api_server("second", self.second_port)

    def _start_api_server(self, name: str, port: int) -> Process:
        flags_by_name = self._changed | {
            "--secure-port": str(port),
            "--audit-log-path": str(self.directory / f"audit-{name}.jsonl"),
        }
        command = [
            f"{flag}={flags_by_name[flag]}" if (flag := part.partition("=")[0]) in flags_by_name else part
            for part in self._apiserver
        ]
        process = self._run(f"kube-apiserver-{name}", *command)
        admin = self.create_admin_client(port)
        _ = self.admin_kubeconfig
        wait_for(f"the {name} kube-apiserver ready", lambda: is_ready(admin), 180, 0.2)
        return process

    def start_stalling(self) -> None:
        """Start the second and the third one behind forwarders to etcd, which can hold the leases that they read."""
        etcd = next(int(match[1]) for part in self._apiserver if (match := re.match(r"--etcd-servers=.*:(\d+)$", part)))
        for name, port in (("second", self.second_port), ("third", self.third_port)):
            self._watches.append(self._stack.enter_context(HeldStreams(etcd, b"/registry/leases/")))
            self._changed["--etcd-servers"] = f"http://127.0.0.1:{self._watches[-1].port}"
            self._start_api_server(name, port)

    @contextmanager
    def stall(self) -> Iterator[None]:
        """Keep the second and the third one from learning of leases; the third one for a moment longer."""
        for watch in self._watches:
            watch.hold()
        try:
            yield
        finally:
            for watch in self._watches:
                watch.release()
                time.sleep(0.5)

    def crash_second(self) -> None:
        """Send SIGKILL; `start_second` brings it back on the same port."""
        assert self._second
        self._second.kill()

    def create_admin_client(self, port: int) -> ApiClient:
        """Return a client of the administrator at one of the two."""
        return ApiClient(port, self.authority.file, "fence-admin", self.certificate)

    @cached_property
    def certificate(self) -> tuple[Path, Path]:
        """Certificate of the administrator, issued once: trials run side by side."""
        return self.authority.issue("fence-admin", organizations=("system:masters",))

    @cached_property
    def admin_kubeconfig(self) -> Path:
        """Kubeconfig of the administrator, written once."""
        return self.write_kubeconfig("fence-observer", "system:masters")

    def write_kubeconfig_for(self, port: int, name: str, token: str) -> Path:
        """Write a kubeconfig with a token for a port of this machine, and return its path."""
        file = self.write_token_kubeconfig(name, token)
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
        wait_for("kube-apiserver ready", lambda: is_ready(self.create_admin_client(self.port)), 180, 0.2)
