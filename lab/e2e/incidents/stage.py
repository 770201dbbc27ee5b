"""A control plane on which incidents are recorded: pods with tokens and rights, a load balancer, and bystanders."""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self

from lab.e2e.api_client import ApiClient
from lab.e2e.control_plane import ControlPlane
from lab.e2e.forwarder import Partition
from lab.e2e.processes import Process
from lab.e2e.toolchain import Binaries
from lab.e2e.world import ROUTE, World, build_lease_path
from tests.waiting import wait_for

_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_LEASES: Final = {"group": "coordination.k8s.io", "resources": ["leases", "leasecandidates"]}
_WRITES: Final = ["create", "update", "patch", "delete", "deletecollection"]
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["admin"], "verbs": ["get"]},
        {"level": "RequestResponse", "resources": [_LEASES], "verbs": ["get", *_WRITES]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["configmaps"]}], "verbs": _WRITES},
        {
            "level": "Metadata",
            "resources": [{"group": "rbac.authorization.k8s.io", "resources": ["rolebindings"]}],
            "verbs": _WRITES,
        },
        {"level": "None"},
    ],
}
BYSTANDERS: Final = (("ledger", "7c9f6b"), ("relay", "5d8c4f"), ("index", "68f7d9"))
"""Namespaces, which are the names of the leases too, and what their pods' names contain."""
ROLE: Final = "lease-writer"


class Plane(ControlPlane):
    """A control plane whose API server and etcd can be paused, with an audit log that has the objects of leases."""

    def __init__(self, binaries: Binaries, directory: Path) -> None:
        policy = directory / "incidents-audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        super().__init__(binaries, directory, flags=[f"--audit-policy-file={policy}"])
        self._named: dict[str, Process] = {}
        self._commands: dict[str, tuple[str, ...]] = {}

    @contextmanager
    def pause(self, name: str) -> Iterator[None]:
        """Send SIGSTOP to `etcd` or `kube-apiserver`, and SIGCONT in the end."""
        pid = self._named[name].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def crash(self, name: str) -> None:
        """Send SIGKILL."""
        self._named[name].kill()

    def restart(self, name: str) -> None:
        """Start a crashed program with the same flags, and do not wait until it is ready."""
        self._run(name, *self._commands[name])

    def _run(self, name: str, *command: str) -> Process:
        self._commands[name] = command
        self._named[name] = super()._run(name, *command)
        return self._named[name]


class Pod:
    """A pod in which nothing runs, with a token that is bound to it, and a way of its own to the API server."""

    def __init__(self, name: str, namespace: str, account: str, client: ApiClient, kubeconfig: Path) -> None:
        self.name, self.namespace, self.account = name, namespace, account
        self.client, self.kubeconfig = client, kubeconfig


class Stage(World):
    """A cluster whose service accounts have no rights on leases except those of `namespace`."""

    plane: Plane

    def __init__(self, plane: Plane, stack: ExitStack) -> None:
        super().__init__(plane)
        self.stack = stack
        self.balancer = stack.enter_context(Partition(plane.port))

    def __enter__(self) -> Self:
        self.create_local_service()
        for name, number in BYSTANDERS:
            self.create_namespace(name)
            pod = self.create_pod(name, name, f"{name}-{number}-qv5tz")
            self.start_elector(pod, name, f"{pod.name}_3d1c")
        for name, _ in BYSTANDERS:
            wait_for(f"{name} leads", lambda name=name: self.read_holder(name, name), 60)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def create_namespace(self, name: str, route: str = "") -> str:
        """Create a namespace whose service accounts may write leases and configmaps in it, by one RoleBinding."""
        labels = {ROUTE: route} if route else {}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.admin.send("POST", "/api/v1/namespaces", body).expect()
        self.grant(name)
        return name

    def grant(self, namespace: str, account: str = "") -> None:
        """Give the service accounts of a namespace their rights, or one of them alone."""
        group = {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Group",
            "name": f"system:serviceaccounts:{namespace}",
        }
        if account:
            group = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE}
        binding = {"metadata": {"name": account or ROLE}, "subjects": [group], "roleRef": role}
        self.admin.send("POST", f"{_RBAC}/namespaces/{namespace}/rolebindings", binding).expect()

    def revoke(self, namespace: str, account: str = "") -> None:
        """Take the rights away."""
        self.admin.send("DELETE", f"{_RBAC}/namespaces/{namespace}/rolebindings/{account or ROLE}").expect()

    def create_pod(
        self, namespace: str, account: str, name: str, port: int = 0, agent: str = "", node: str = ""
    ) -> Pod:
        """Create a pod; `port` is its way to the API server (the load balancer by default), `agent` its program."""
        core = f"/api/v1/namespaces/{namespace}"
        self.admin.send("POST", f"{core}/serviceaccounts", {"metadata": {"name": account}}).expect(201, 409)
        container = {"name": "main", "image": "none"}
        spec: dict[str, Any] = {"serviceAccountName": account, "automountServiceAccountToken": False}
        spec |= {"containers": [container]} | ({"nodeName": node} if node else {})
        owner = self.admin.send("POST", f"{core}/pods", {"metadata": {"name": name}, "spec": spec}).expect()
        bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": owner["metadata"]["uid"]}
        request = {"spec": {"expirationSeconds": 7200, "boundObjectRef": bound}}
        answer = self.admin.send("POST", f"{core}/serviceaccounts/{account}/token", request).expect()
        token = answer["status"]["token"]
        kubeconfig = self.plane.write_token_kubeconfig(f"{namespace}_{name}", token)
        way = f"https://127.0.0.1:{port or self.balancer.port}"
        kubeconfig.write_text(kubeconfig.read_text().replace(self.plane.server, way))
        return Pod(name, namespace, account, self.plane.create_token_client(agent or account, token), kubeconfig)

    def start_elector(self, pod: Pod, lease: str, identity: str, *flags: str, mode: str = "elector") -> Process:
        """Start a client-go elector in a program named as the pod's service account: the field manager is too."""
        program = self.directory / "programs" / pod.account
        if not program.exists():
            program.parent.mkdir(exist_ok=True)
            program.symlink_to(self.plane.binaries.clients)
        command = [str(program), mode, f"-kubeconfig={pod.kubeconfig}", f"-namespaces={pod.namespace}"]
        command += [f"-lease={lease}", f"-identity={identity}", *flags]
        return self.run(f"{mode}-{pod.namespace}-{pod.name}", command)

    def run(self, name: str, command: Sequence[str], env: dict[str, str] | None = None) -> Process:
        """Run a program that ends with the stage; `name` names its log."""
        log = self.directory / "logs" / f"{name}-{time.time_ns()}.log"
        return self.stack.enter_context(Process(command, log, env))

    def read_lease(self, namespace: str, name: str) -> dict[str, Any]:
        """Return the lease as it is stored, empty if there is none."""
        reply = self.admin.send("GET", build_lease_path(namespace, name))
        return reply.body if reply.status == 200 else {}

    def read_holder(self, namespace: str, name: str) -> str:
        """Return who holds a lease, "" if no one does."""
        return str(self.read_lease(namespace, name).get("spec", {}).get("holderIdentity") or "")

    def _let_people_write_leases(self) -> None:
        rules = [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases", "leasecandidates"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
        ]
        self.admin.send("POST", f"{_RBAC}/clusterroles", {"metadata": {"name": ROLE}, "rules": rules}).expect()
