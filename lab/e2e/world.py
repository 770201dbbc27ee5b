"""What the topics share: a control plane, the shipped webhook configuration, users, and webhooks that it routes to."""

import base64
import copy
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from lab.e2e.api_client import APPLY, ApiClient, Reply
from lab.e2e.control_plane import ControlPlane
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


class Row(Struct, frozen=True):
    """One line of the table: what was to be shown, what was seen, and whether that is it."""

    claim: str
    seen: str
    passed: bool


class Account(Struct, frozen=True):
    """A service account with a token that is bound to a pod of the same name."""

    namespace: str
    name: str
    client: ApiClient
    kubeconfig: Path

    @property
    def user(self) -> str:
        """Its user name."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class World:
    """A running control plane in which the shipped installation can be applied."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.directory = plane.directory
        self.admin = plane.user("admin", "system:masters")
        self.kubectl = Kubectl(plane.binaries.kubectl, plane.kubeconfig("admin", "system:masters"))
        self.tree = self._copy_of_the_project()
        self.certs = self.tree / "certs"
        self.shipped = self._shipped_registration()
        self._let_people_write_leases()

    def render(self, overlay: str) -> list[dict[str, Any]]:
        """The objects of `deploy/overlays/<overlay>`."""
        text = self.kubectl.must("kustomize", str(self.tree / "deploy" / "overlays" / overlay))
        return [document for document in yaml.safe_load_all(text) if document]

    def namespace(self, name: str, route: str = "") -> str:
        """Create a namespace; `route` is the registration that reviews its writes."""
        labels = {ROUTE: route} if route else {}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.admin.send("POST", "/api/v1/namespaces", body).expect()
        return name

    def account(self, namespace: str, name: str, pod: str = "") -> Account:
        """A service account and a pod (of the same name unless given; nothing runs in it), and a token bound to both.

        The service account may exist already.
        """
        pod = pod or name
        core = f"/api/v1/namespaces/{namespace}"
        self.admin.send("POST", f"{core}/serviceaccounts", {"metadata": {"name": name}}).expect(201, 409)
        container = {"name": "main", "image": "none"}
        spec = {"serviceAccountName": name, "automountServiceAccountToken": False, "containers": [container]}
        made = self.admin.send("POST", f"{core}/pods", {"metadata": {"name": pod}, "spec": spec}).expect()
        bound = {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": made["metadata"]["uid"]}
        asked = {"spec": {"expirationSeconds": 7200, "boundObjectRef": bound}}
        answer = self.admin.send("POST", f"{core}/serviceaccounts/{name}/token", asked).expect()
        token = answer["status"]["token"]
        kubeconfig = self.plane.token_kubeconfig(f"{namespace}_{pod}", token)
        return Account(namespace, name, self.plane.with_token(name, token), kubeconfig)

    def person(self, name: str) -> tuple[ApiClient, Kubectl]:
        """A user who may do everything with leases and candidates and is exempt from nothing."""
        kubeconfig = self.plane.kubeconfig(name, "people")
        return self.plane.user(name, "people"), Kubectl(self.plane.binaries.kubectl, kubeconfig)

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

    def stand_in_for_the_service(self) -> None:
        """A Service of the shipped name that leads to this machine, where no overlay was applied."""
        self.namespace(SERVICE)
        spec = {"type": "ExternalName", "externalName": "localhost"}
        path = f"/api/v1/namespaces/{SERVICE}/services"
        self.admin.send("POST", path, {"metadata": {"name": SERVICE}, "spec": spec}).expect(201)

    def settle(self) -> None:
        """Wait until the API server uses the registrations it was given."""
        time.sleep(SETTLING_SECONDS)

    def audit(self, namespace: str) -> Iterator[dict[str, Any]]:
        """The audit events of writes to coordination.k8s.io in a namespace, oldest first."""
        with self.plane.audit_log.open() as lines:
            for line in lines:
                event = json.loads(line)
                if event.get("objectRef", {}).get("namespace") == namespace:
                    yield event

    def annotations(self, namespace: str, reply: Reply) -> dict[str, str]:
        """Return what the webhook added to the audit event of one write, by our own keys."""

        def event() -> dict[str, Any] | None:
            return next((entry for entry in self.audit(namespace) if entry["auditID"] == reply.audit_id), None)

        found: dict[str, str] = wait_for("the audit event", event, 5).get("annotations", {})
        prefix = f"{WEBHOOK}/"
        return {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}

    def _copy_of_the_project(self) -> Path:
        """A copy of the manifests, beside certificates made for this run: the shipped overlays read `../../certs`."""
        tree = self.directory / "project"
        ignore = shutil.ignore_patterns("*.key", "*.crt", "*.pem")
        for name in ("deploy", "certs"):
            shutil.copytree(PROJECT / name, tree / name, ignore=ignore, dirs_exist_ok=True)
        make_certificates(tree / "certs")
        return tree

    def _shipped_registration(self) -> dict[str, Any]:
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


def leases(namespace: str, name: str = "") -> str:
    """The path of a namespace's leases, or of one."""
    path = f"{COORDINATION}/v1/namespaces/{namespace}/leases"
    return f"{path}/{name}" if name else path


def wait_for_the_watch_cache(client: ApiClient, path: str, version: str) -> None:
    """An API server whose cache lags tries a write against the older state first: one write, two reviews."""

    def is_new() -> bool:
        cached = client.send("GET", path, resourceVersion=0)
        return cached.status == 200 and cached.body["metadata"]["resourceVersion"] == version

    wait_for(f"{path} in the watch cache", is_new, 10, 0.01)
