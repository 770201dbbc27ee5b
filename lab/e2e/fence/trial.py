"""One operator with two pods, and the steps of which the faults consist."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self

from lab.e2e.api_client import MERGE, ApiClient
from lab.e2e.control_plane import ControlPlane
from lab.e2e.fence.history import POLICY, Event, Figures, compute_figures, parse_events
from lab.e2e.fence.plane import TwoServers
from lab.e2e.forwarder import Partition
from lab.e2e.kubectl import Kubectl
from lab.e2e.processes import Process
from tests.waiting import wait_for

PATIENCE: Final = 60.0
FIRST, SECOND = "op-a", "op-b"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


def allow_service_accounts(admin: ApiClient, namespace: str = "") -> None:
    """Let every service account, or those of a namespace, write what the operators of the trials write."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "events"], "verbs": ["*"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"]},
    ]
    name = {"name": "fence-trial"}
    admin.send("POST", f"{RBAC}/clusterroles", {"metadata": name, "rules": rules}).expect()
    group = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Group",
        "name": f"system:serviceaccounts:{namespace}".rstrip(":"),
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fence-trial"}
    body = {"metadata": name, "subjects": [group], "roleRef": role}
    admin.send("POST", f"{RBAC}/clusterrolebindings", body).expect()


def export_fence(name: str, lease: str, *, suffix: str = "", **keys: Any) -> str:
    """Return what `lease-webhook export fence` prints for one fence, of mode deny unless `keys` say otherwise.

    `suffix` is that of the stamps of its lease, if there are any.
    """
    document: dict[str, Any] = {
        "apiVersion": "lease-webhook/v1",
        "fences": [{"name": name, "lease": lease, "mode": "deny", **keys}],
    }
    if suffix:
        document["stamps"] = [{"suffix": suffix, "namespaces": [lease.partition("/")[0]]}]
    with NamedTemporaryFile("w", suffix=".yaml") as policy:
        json.dump(document, policy)
        policy.flush()
        command = [sys.executable, "-m", "webhook", "export", "fence", policy.name]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


class Operator:
    """A namespace with a service account, two pods, and a shared object; with or without a fence."""

    def __init__(self, plane: ControlPlane, admin: ApiClient, namespace: str) -> None:
        self.plane, self.admin, self.namespace = plane, admin, namespace
        self.lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/operator"
        self.log = f"/api/v1/namespaces/{namespace}/configmaps/log"
        self.tokens: dict[str, str] = {}
        core = f"/api/v1/namespaces/{namespace}"
        self.admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).expect()
        self.admin.send("POST", f"{core}/serviceaccounts", {"metadata": {"name": "operator"}}).expect()
        self.admin.send("POST", f"{core}/configmaps", {"metadata": {"name": "log"}}).expect()
        for pod in (FIRST, SECOND):
            self.tokens[pod] = self.create_token(pod)

    def create_token(self, pod: str) -> str:
        """Create a pod, in which nothing runs, and a token that is bound to it."""
        core = f"/api/v1/namespaces/{self.namespace}"
        container = {"name": "main", "image": "none"}
        spec = {"serviceAccountName": "operator", "automountServiceAccountToken": False, "containers": [container]}
        owner = self.admin.send("POST", f"{core}/pods", {"metadata": {"name": pod}, "spec": spec}).expect()
        bound = {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": owner["metadata"]["uid"]}
        request = {"spec": {"expirationSeconds": 7200, "boundObjectRef": bound}}
        answer = self.admin.send("POST", f"{core}/serviceaccounts/operator/token", request).expect()
        return str(answer["status"]["token"])

    def apply_fence(self, kubectl: Kubectl) -> None:
        """Apply a fence as a reader of the docs does, and wait until both API servers hold it."""
        kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=self.export_manifest())

    def export_manifest(self, **keys: Any) -> str:
        """Return the fence of this operator."""
        own = f"{self.namespace}/operator"
        name = f"{self.namespace}-operator"
        return export_fence(name, own, writers=[own], resources=["configmaps"], namespaces=[self.namespace], **keys)

    def label_namespace(self) -> None:
        """Label the namespace, so that its leases are stamped."""
        labels = {"metadata": {"labels": {"lease-webhook/stamp": "required"}}}
        self.admin.send("PATCH", f"/api/v1/namespaces/{self.namespace}", labels, media=MERGE).expect()

    def wait_for_fence(self, ports: Sequence[int]) -> None:
        """Wait until the fence is up: it refuses every write while no lease exists."""
        for port in ports:
            client = ApiClient(port, self.plane.authority.file, FIRST, token=self.tokens[FIRST])
            wait_for("the fence refuses", lambda client=client: self._is_refused(client), PATIENCE)

    def _is_refused(self, client: ApiClient) -> bool:
        body = {"data": {"entry": ""}}
        return POLICY in client.send("PATCH", self.log, body, media=MERGE, dryRun="All").message


class Trial:
    """One run of the pods of an operator, and its output. `ports` are the API servers of the first and second."""

    def __init__(
        self, plane: TwoServers, operator: Operator, program: Path, library: str, ports: tuple[int, int]
    ) -> None:
        self.plane, self.operator, self.program, self.library = plane, operator, program, library
        self.stack = ExitStack()
        self.partition = self.stack.enter_context(Partition(ports[0]))
        self.ports = {FIRST: self.partition.port, SECOND: ports[1]}
        self.processes: dict[str, Process] = {}
        self.deletions: dict[str, int] = {}

    def __enter__(self) -> Self:
        admin = self.plane.admin_kubeconfig
        self._run("observer", "observe", f"-kubeconfig={admin}", f"-namespace={self.operator.namespace}")
        self._wait("observer", "the observer watches", lambda one: one.event == "observing")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
        self.stack.close()

    def start(self, pod: str, *flags: str, library: str = "") -> None:
        """Start a pod's process."""
        name = f"{self.operator.namespace}_{pod}"
        config = self.plane.write_kubeconfig_for(self.ports[pod], name, self.operator.tokens[pod])
        where = [f"-kubeconfig={config}", f"-namespace={self.operator.namespace}", f"-pod={pod}"]
        self._run(pod, "work", *where, f"-library={library or self.library}", *flags)

    def wait_for_writes(self, pod: str, number: int = 20) -> None:
        """Wait until that many of its writes were stored."""
        self._wait(pod, f"{pod} writes", lambda one: one.event == "write" and one.status == 200, number)

    def send_signal(self, pod: str, number: signal.Signals) -> None:
        """Send a signal to a pod's process."""
        os.kill(self.processes[pod].pid, number)

    def delete_lease(self) -> None:
        """Delete the lease as an administrator who cleans up."""
        self.deletions["sent"] = time.time_ns()
        self.operator.admin.send("DELETE", self.operator.lease).expect(200)

    def compute_figures(self) -> Figures:
        """Return the figures, once everything has ended."""
        return compute_figures([one for name in self.processes for one in self.read_events(name)], self.deletions)

    def read_events(self, name: str) -> list[Event]:
        """Return the events that a process has printed so far."""
        text = self.processes[name].log.read_text(errors="replace")
        return parse_events(text.splitlines(), json.loads)

    def _run(self, name: str, *arguments: str) -> None:
        log = self.plane.directory / "fence" / f"{self.operator.namespace}-{name}.log"
        self.processes[name] = self.stack.enter_context(Process([str(self.program), *arguments], log))

    def _wait(self, name: str, what: str, fits: Callable[[Event], Any], number: int = 1) -> None:
        def is_seen() -> bool:
            self.processes[name].check_alive()
            return sum(bool(fits(one)) for one in self.read_events(name)) >= number

        wait_for(f"{self.operator.namespace}: {what}", is_seen, PATIENCE)
