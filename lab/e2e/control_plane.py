"""etcd and kube-apiserver on loopback, and credentials for anyone."""

import base64
import json
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric import ec

from lab.e2e.api_client import ApiClient
from lab.e2e.certificates import Authority, encode_private_key, encode_public_key
from lab.e2e.processes import Process
from lab.e2e.toolchain import Binaries
from tests.waiting import wait_for

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "resources": [{"group": "coordination.k8s.io"}],
            "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        },
        {"level": "None"},
    ],
}


def find_free_port() -> int:
    """Return a loopback port that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read_audit_log(log: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of an audit log, oldest first, without one that an API server is still writing."""
    with log.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


class ControlPlane:
    """One etcd and one API server; a context manager that starts both and stops kube-apiserver before etcd."""

    def __init__(
        self, binaries: Binaries, directory: Path, *, hosts: Sequence[str] = (), flags: Sequence[str] = ()
    ) -> None:
        """Set up the control plane.

        `hosts` are further names of the API server, `flags` are added to its own and override them.
        """
        self.binaries = binaries
        self._hosts = ["localhost", "kubernetes", "127.0.0.1", *hosts]
        self._flags = flags
        self.directory = directory
        self.authority = Authority(directory / "pki", "ca")
        self.port, self.etcd_port = find_free_port(), find_free_port()
        self.audit_log = directory / "audit.jsonl"
        self._processes: list[Process] = []

    @property
    def server(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def apiserver_pid(self) -> int:
        """Process id of kube-apiserver."""
        return self._processes[-1].pid

    @property
    def has_ended(self) -> bool:
        """True if kube-apiserver ended by itself, or by a signal from elsewhere."""
        return self._processes[-1].has_ended

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def create_client(self, name: str, *groups: str) -> ApiClient:
        """Return a client with a certificate for user `name` in `groups`."""
        return ApiClient(self.port, self.authority.file, name, self.authority.issue(name, organizations=groups))

    def create_token_client(self, name: str, token: str) -> ApiClient:
        """Return a client that authenticates by a bearer token."""
        return ApiClient(self.port, self.authority.file, name, token=token)

    def write_kubeconfig(self, name: str, *groups: str) -> Path:
        """Write a kubeconfig for a user with a client certificate, and return its path."""
        certificate, key = self.authority.issue(name, organizations=groups)
        return self._write_kubeconfig(
            certificate.stem, {"client-certificate-data": _encode(certificate), "client-key-data": _encode(key)}
        )

    def write_token_kubeconfig(self, name: str, token: str) -> Path:
        """Write a kubeconfig with a bearer token, and return its path; `name` names the file."""
        return self._write_kubeconfig(name, {"token": token})

    def _write_kubeconfig(self, name: str, user: dict[str, str]) -> Path:
        cluster = {"server": self.server, "certificate-authority-data": _encode(self.authority.file)}
        content: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
            "current-context": "context",
        }
        file = self.directory / f"{name}.kubeconfig"
        file.write_text(json.dumps(content))
        return file

    def _start(self) -> None:
        pki = self.directory / "pki"
        certificate, key = self.authority.issue("kube-apiserver", hosts=self._hosts)
        signer = ec.generate_private_key(ec.SECP256R1())
        (pki / "service-account.key").write_bytes(encode_private_key(signer))
        (pki / "service-account.pub").write_bytes(encode_public_key(signer))
        policy = self.directory / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, find_free_port()))
        self._run(
            "etcd",
            str(self.binaries.etcd),
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )
        served = ",".join(f"coordination.k8s.io/{version}=true" for version in self.binaries.candidate_versions)
        apiserver = self._run(
            "kube-apiserver",
            str(self.binaries.apiserver),
            f"--etcd-servers={client}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority.file}",
            f"--service-account-key-file={pki / 'service-account.pub'}",
            f"--service-account-signing-key-file={pki / 'service-account.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--cert-dir={pki}",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
            "--feature-gates=CoordinatedLeaderElection=true",
            f"--runtime-config={served}",
            # From 1.37 on, an API server refuses to publish a loopback address as an endpoint.
            "--endpoint-reconciler-type=none",
            *self._flags,
        )
        admin = self.create_client("admin", "system:masters")

        def is_ready() -> bool:
            apiserver.check_alive()
            try:
                return admin.send("GET", "/readyz").status == 200
            except OSError:
                return False

        wait_for("kube-apiserver ready", is_ready, 120, 0.5)

    def _run(self, name: str, *command: str) -> Process:
        process = Process(command, self.directory / f"{name}.log")
        self._processes.append(process)
        return process

    def _stop(self) -> None:
        # kube-apiserver first: without etcd it hangs in retries.
        for process in reversed(self._processes):
            process.stop()


def _encode(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
