"""A control plane with a second API server on the same etcd."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from tests.lab.e2e.api_client import ApiClient
from tests.lab.e2e.control_plane import ControlPlane, free_port
from tests.lab.e2e.forwarder import HeldStreams
from tests.lab.e2e.processes import Process
from tests.lab.e2e.waiting import wait_for


class TwoServers(ControlPlane):
    """`start_second` starts it, also again on the same port after `crash_second`.

    After `start_stalling` the watch of the second one on leases can be `stalled`.
    """

    _watch: HeldStreams

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # as the parent
        self.second_port = free_port()
        self._apiserver: tuple[str, ...] = ()
        self._second: Process | None = None
        self._changed: dict[str, str] = {}
        self._stack = ExitStack()

    def __exit__(self, *arguments: object) -> None:
        # An API server that waits for a held answer does not end.
        self._stack.close()
        super().__exit__(*arguments)

    def start_second(self) -> None:
        """Start it and wait until it is ready."""
        changed = self._changed | {
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

    def start_stalling(self) -> None:
        """Start the second one behind a forwarder to etcd, which can hold what it reads of leases."""
        etcd = next(int(found[1]) for part in self._apiserver if (found := re.match(r"--etcd-servers=.*:(\d+)$", part)))
        self._watch = self._stack.enter_context(HeldStreams(etcd, b"/registry/leases/"))
        self._changed["--etcd-servers"] = f"http://127.0.0.1:{self._watch.port}"
        self.start_second()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """The second one learns nothing of leases."""
        self._watch.hold()
        try:
            yield
        finally:
            self._watch.release()

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
