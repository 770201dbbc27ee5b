"""A cluster as the checks see it: through kubectl, and through one plain connection of `kubectl proxy`."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import yaml

from lab.cluster.proxied import ProxiedClient
from lab.e2e.kubectl import Kubectl
from lab.e2e.processes import Process
from lab.e2e.webhook_server import make_certificates
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
NAMESPACE = "lease-webhook"
WORKLOAD = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/lease-webhook"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLOSED = "cluster-closed"
"""A namespace in which a write that is not reviewed fails."""
PYTHON = "/usr/local/bin/python3"
SECONDS_PAST_EXPIRY = 4
"""By then a lease has expired for every clock: stamps have whole seconds, and clocks of API servers differ."""
Object = dict[str, Any]


class World:
    """One cluster with the webhook in it; a context manager that holds the connection."""

    def __init__(self, kubectl: Path, kubeconfig: Path, image: str, directory: Path, *, ours: bool) -> None:
        """Set up the world.

        `ours`: this process runs on the node itself. `directory` takes certificates and overlays.
        """
        self.kubeconfig = kubeconfig
        self.kubectl = Kubectl(kubectl, kubeconfig)
        self.image = image
        self.ours = ours
        self.directory = directory
        self.certs = directory / "checkout" / "certs"
        self.program = kubectl

    def __enter__(self) -> Self:
        make_certificates(self.certs)
        shutil.copy(ROOT / "certs" / "kustomization.yaml", self.certs)
        shutil.copytree(ROOT / "deploy", self.directory / "checkout" / "deploy")
        log = self.directory / "proxy.log"
        log.unlink(missing_ok=True)
        flags = [f"--kubeconfig={self.kubeconfig}", "proxy", "--port=0"]
        self._proxy = Process([str(self.program), *flags], log)

        def find_port() -> str | None:
            self._proxy.check_alive()
            match = re.search(r"127\.0\.0\.1:(\d+)", log.read_text())
            return match[1] if match else None

        self.client = ProxiedClient(int(wait_for("kubectl proxy", find_port, 20)))
        return self

    def __exit__(self, *_: object) -> None:
        self._proxy.stop()

    def apply(self, overlay: str, *components: str, edit: str = "") -> float:
        """Apply an overlay with components and our image, and return how many seconds the rollout took."""
        text = self.render(overlay, *components, edit=edit)
        begin = time.monotonic()
        self.kubectl.run_checked("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=text)
        self.wait_for_rollout()
        return time.monotonic() - begin

    def with_checkout(self, tree: Path, image: str) -> "World":
        """Return the same cluster and certificates with the manifests and the image of another checkout."""
        other = copy.copy(self)
        other.image, other.directory = image, self.directory / "beside"
        shutil.copytree(tree / "deploy", other.directory / "checkout" / "deploy")
        shutil.copytree(self.certs, other.directory / "checkout" / "certs")
        return other

    def render(self, overlay: str, *components: str, edit: str = "") -> str:
        """Return the manifests of a custom overlay, as README shows it, over a copy of the checkout."""
        tree = self.directory / "checkout"
        name, _, tag = self.image.rpartition(":")
        document: Object = {
            "resources": [f"../deploy/overlays/{overlay}"],
            "components": [f"../deploy/components/{component}" for component in components],
            "images": [{"name": "lease-webhook", "newName": name, "newTag": tag}],
        } | (yaml.safe_load(edit) if edit else {})
        own = tree / "own"
        own.mkdir(exist_ok=True)
        (own / "kustomization.yaml").write_text(yaml.safe_dump(document))
        return self.kubectl.run_checked("kustomize", str(own))

    def refresh_volumes(self) -> None:
        """Update a pod, so that it gets its volumes at once and not within a minute and a half."""
        stamp = f"lease-webhook.example/looked-at={time.time()}"
        self.kubectl.run_checked("-n", NAMESPACE, "annotate", "--overwrite", "pod", "--all", stamp)

    def wait_for_rollout(self, seconds: int = 180) -> None:
        """Wait until every replica is of the newest revision and ready."""
        command = ["-n", NAMESPACE, "rollout", "status", "deployment/lease-webhook", f"--timeout={seconds}s"]
        result = self.kubectl.run(*command, seconds=seconds + 10)
        if result.status:
            raise TimeoutError(f"the rollout did not end: {result.stderr}")

    def remove(self) -> None:
        """Uninstall as README says."""
        self.kubectl.run_checked("delete", "validatingwebhookconfiguration", "lease-webhook", "--ignore-not-found")
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            self.kubectl.run_checked("delete", kind, "lease-webhook-depth", "--ignore-not-found")
        self.kubectl.run("delete", "namespace", NAMESPACE, "--ignore-not-found", seconds=120)

    def list_pods(self) -> list[Object]:
        """Return the pods that are not about to end, the oldest first."""
        alive = [pod for pod in self._list_all_pods() if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def list_pod_names(self) -> set[str]:
        """Return the names of those pods."""
        return {str(pod["metadata"]["name"]) for pod in self.list_pods()}

    def count_restarts(self) -> int:
        """Return how often a container was restarted, over all pods."""
        return sum(
            one["restartCount"] for pod in self.list_pods() for one in pod["status"].get("containerStatuses", ())
        )

    def is_ready(self, replicas: int = 2) -> bool:
        """Return whether so many pods are ready and none is about to end."""
        items = self._list_all_pods()
        ready = [pod for pod in items if _is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]
        return len(ready) == len(items) == replicas

    def _list_all_pods(self) -> list[Object]:
        """Return the webhook's pods, and not those of the audit's jobs."""
        selected = self.client.send("GET", PODS, labelSelector=f"app.kubernetes.io/name={NAMESPACE}").expect(200)
        items: list[Object] = selected["items"]
        return items

    def run_python(self, pod: str, code: str, *arguments: str, namespace: str = NAMESPACE) -> str:
        """Return the output of a piece of Python inside the container, as its user and in its limits."""
        result = self.kubectl.run("-n", namespace, "exec", pod, "--", PYTHON, "-c", code, *arguments)
        if result.status:
            raise RuntimeError(f"exec in {pod}: status {result.status}\n{result.stdout}{result.stderr}")
        return result.stdout

    def is_enforced(self) -> bool:
        """Return whether the Lease that only we refuse is refused."""
        body = yaml.safe_load((ROOT / "deploy" / "proof.yaml").read_text())
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        return "(lease webhook, rule " in self.client.send("POST", path, body, dryRun="All").message

    def run_status(self, *words: str) -> tuple[int, str]:
        """Return the exit code of `lease-webhook status`, and its output."""
        environment = {**os.environ, "PATH": f"{self.program.parent}:{os.environ['PATH']}", "COLUMNS": "100"}
        command = [sys.executable, "-m", "webhook", "status", f"--kubeconfig={self.kubeconfig}", *words]
        result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr

    def create_namespace(self, name: str, labels: dict[str, str]) -> None:
        """Create a namespace, or label it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=json.dumps(body))


def _is_ready(pod: Object) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))
