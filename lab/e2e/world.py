"""The parts that topics share: a control plane, the shipped configuration, users, and webhooks that it routes to."""

import base64
import copy
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from lab.e2e.api_client import APPLY, ApiClient, Reply
from lab.e2e.control_plane import ControlPlane, read_audit_log
from lab.e2e.kubectl import Kubectl
from lab.e2e.webhook_server import make_certificates
from tests.waiting import wait_for

COORDINATION = "/apis/coordination.k8s.io"
REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SERVICE = "lease-webhook"
"""Name of the shipped Service and of its namespace."""
WEBHOOK = "leases.lease-webhook.svc"
ROUTE = "e2e/route"
SETTLING_SECONDS = 6.0
"""A new webhook configuration takes effect after 1 to 3 s."""
PROJECT = Path(__file__).parents[2]


class Row(Struct, frozen=True, omit_defaults=True):
    """One line of the table: the claim, the observation, and whether they agree.

    Without `was_run` nothing was observed, as the machine lacks what that needs: no failure, and nothing to publish.
    """

    claim: str
    observation: str = msgspec.field(name="seen")
    passed: bool
    was_run: bool = True

    @property
    def mark(self) -> str:
        """The outcome as a word: ok, FAILED or NOT RUN."""
        if not self.passed:
            return "FAILED"
        return "ok" if self.was_run else "NOT RUN"


def make_absent_row(what: str, version: str) -> Row:
    """Return the only row of a topic on a version that has nothing of it."""
    return Row(what, f"not in {version}", passed=True)


def complete_rows(rows: list[Row]) -> None:
    """Add a failed row where there is none: what checked nothing has not passed."""
    if not rows:
        rows.append(Row("checks something", "it yielded no row", passed=False))


def list_not_run(rows: Mapping[str, Iterable[Row]]) -> list[str]:
    """Return the claims that were not run, and why."""
    return [f"{row.claim}: {row.observation}" for those in rows.values() for row in those if not row.was_run]


class Account(Struct, frozen=True):
    """A service account with a token that is bound to a pod of the same name."""

    namespace: str
    name: str
    client: ApiClient
    kubeconfig: Path

    @property
    def user(self) -> str:
        """User name of the account."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class World:
    """A running control plane in which the shipped installation can be applied."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.directory = plane.directory
        self.admin = plane.create_client("admin", "system:masters")
        self.kubectl = Kubectl(plane.binaries.kubectl, plane.write_kubeconfig("admin", "system:masters"))
        self.tree = self._copy_project()
        self.certs = self.tree / "certs"
        self.shipped = self._find_shipped_registration()
        self._let_people_write_leases()

    def render(self, overlay: str) -> list[dict[str, Any]]:
        """Return the objects of `deploy/overlays/<overlay>`."""
        text = self.kubectl.run_checked("kustomize", str(self.tree / "deploy" / "overlays" / overlay))
        return [document for document in yaml.safe_load_all(text) if document]

    def create_namespace(self, name: str, route: str = "") -> str:
        """Create a namespace; `route` is the registration that reviews its writes."""
        labels = {ROUTE: route} if route else {}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.admin.send("POST", "/api/v1/namespaces", body).expect()
        return name

    def create_account(self, namespace: str, name: str, pod: str = "") -> Account:
        """Create a service account, a pod (of the same name unless given; nothing runs in it), and a token for both.

        The service account may exist already.
        """
        pod = pod or name
        core = f"/api/v1/namespaces/{namespace}"
        self.admin.send("POST", f"{core}/serviceaccounts", {"metadata": {"name": name}}).expect(201, 409)
        container = {"name": "main", "image": "none"}
        spec = {"serviceAccountName": name, "automountServiceAccountToken": False, "containers": [container]}
        owner = self.admin.send("POST", f"{core}/pods", {"metadata": {"name": pod}, "spec": spec}).expect()
        bound = {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": owner["metadata"]["uid"]}
        request = {"spec": {"expirationSeconds": 7200, "boundObjectRef": bound}}
        answer = self.admin.send("POST", f"{core}/serviceaccounts/{name}/token", request).expect()
        token = answer["status"]["token"]
        kubeconfig = self.plane.write_token_kubeconfig(f"{namespace}_{pod}", token)
        return Account(namespace, name, self.plane.create_token_client(name, token), kubeconfig)

    def create_user(self, name: str) -> tuple[ApiClient, Kubectl]:
        """Return a user who may do everything with leases and candidates and is exempt from nothing."""
        kubeconfig = self.plane.write_kubeconfig(name, "people")
        return self.plane.create_client(name, "people"), Kubectl(self.plane.binaries.kubectl, kubeconfig)

    def register(
        self,
        route: str,
        port: int,
        *,
        failure_policy: str = "Ignore",
        renewals: bool = False,
        system: bool = False,
        bundle: bytes = b"",
    ) -> None:
        """Register the shipped webhook for namespaces of one route, at a local port, by the shipped Service's name.

        `renewals`: without the matchConditions, so that the webhook sees plain renewals as well. `system`: kube-system
        may have the route too, as with the component for the control plane's leases.
        """
        body = copy.deepcopy(self.shipped)
        body["metadata"] = {"name": f"e2e-{route}"}
        for webhook in body["webhooks"]:
            webhook["clientConfig"]["service"]["port"] = port
            webhook["failurePolicy"] = failure_policy
            if system:
                webhook["namespaceSelector"]["matchExpressions"].clear()
            webhook["namespaceSelector"]["matchExpressions"].append({"key": ROUTE, "operator": "In", "values": [route]})
            if bundle:
                webhook["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
            if renewals:
                del webhook["matchConditions"]
        path = f"{REGISTRATIONS}/e2e-{route}"
        self.admin.send("PATCH", path, body, media=APPLY, fieldManager="e2e", force=True).expect()

    def create_local_service(self) -> None:
        """Create a Service of the shipped name that leads to this machine, where no overlay was applied."""
        self.create_namespace(SERVICE)
        spec = {"type": "ExternalName", "externalName": "localhost"}
        path = f"/api/v1/namespaces/{SERVICE}/services"
        self.admin.send("POST", path, {"metadata": {"name": SERVICE}, "spec": spec}).expect(201)

    def settle(self) -> None:
        """Wait until the API server uses the registrations it was given."""
        time.sleep(SETTLING_SECONDS)

    def read_audit_events(self, namespace: str) -> Iterator[dict[str, Any]]:
        """Yield the audit events of writes to coordination.k8s.io in a namespace, oldest first."""
        for event in read_audit_log(self.plane.audit_log):
            if event.get("objectRef", {}).get("namespace") == namespace:
                yield event

    def find_annotations(self, namespace: str, reply: Reply) -> dict[str, str]:
        """Return the annotations that the webhook added to the audit event of one write, by our own keys."""

        def find_event() -> dict[str, Any] | None:
            return next(
                (entry for entry in self.read_audit_events(namespace) if entry["auditID"] == reply.audit_id), None
            )

        annotations: dict[str, str] = wait_for("the audit event", find_event, 5).get("annotations", {})
        prefix = f"{WEBHOOK}/"
        return {key.removeprefix(prefix): value for key, value in annotations.items() if key.startswith(prefix)}

    def _copy_project(self) -> Path:
        """Copy the manifests beside certificates made for this run: the shipped overlays read `../../certs`."""
        tree = self.directory / "project"
        ignore = shutil.ignore_patterns("*.key", "*.crt", "*.pem")
        for name in ("deploy", "certs"):
            shutil.copytree(PROJECT / name, tree / name, ignore=ignore, dirs_exist_ok=True)
        make_certificates(tree / "certs")
        return tree

    def _find_shipped_registration(self) -> dict[str, Any]:
        kinds = {document["kind"]: document for document in self.render("self-signed")}
        return kinds["ValidatingWebhookConfiguration"]

    def _let_people_write_leases(self) -> None:
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases", "leasecandidates"], "verbs": ["*"]}
        metadata = {"name": "e2e-lease-writer"}
        self.admin.send("POST", f"{rbac}/clusterroles", {"metadata": metadata, "rules": [rule]}).expect()
        groups = [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}
            for name in ("people", "system:serviceaccounts")
        ]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "e2e-lease-writer"}
        binding = {"metadata": metadata, "subjects": groups, "roleRef": role}
        self.admin.send("POST", f"{rbac}/clusterrolebindings", binding).expect()


def build_lease_path(namespace: str, name: str = "") -> str:
    """Return the path of a namespace's leases, or of one."""
    path = f"{COORDINATION}/v1/namespaces/{namespace}/leases"
    return f"{path}/{name}" if name else path


def wait_for_watch_cache(client: ApiClient, path: str, version: str) -> None:
    """Wait for the watch cache.

    An API server whose cache lags tries a write on the older object first: one write, two reviews.
    """

    def is_new() -> bool:
        cached = client.send("GET", path, resourceVersion=0)
        return cached.status == 200 and cached.body["metadata"]["resourceVersion"] == version

    wait_for(f"{path} in the watch cache", is_new, 10, 0.01)
