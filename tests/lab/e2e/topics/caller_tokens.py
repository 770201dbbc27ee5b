"""An API server that proves to the webhook who it is, by a token (KEP-6060), on a control plane of its own.

kube-apiserver 1.37 issues such tokens behind a feature gate and does not fetch them by itself: what it sends to a
webhook is in a file, which is named in the kubeconfig of its admission configuration.
"""

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.lab.e2e.api_client import ApiClient, Reply
from tests.lab.e2e.control_plane import ControlPlane, free_port
from tests.lab.e2e.waiting import wait_for
from tests.lab.e2e.webhook_server import WebhookServer
from tests.lab.e2e.world import PROJECT, REGISTRATIONS, Row, World, leases

FIRST_MINOR: Final = 37
GATES: Final = "CoordinatedLeaderElection=true,APIServerWebhookAuthenticationToken=true"
ISSUER: Final = "https://kubernetes.default.svc"
ACCOUNTS: Final = "/api/v1/namespaces/kube-system/serviceaccounts"
ACCOUNT: Final = "kube-apiserver"
GROUP: Final = "coordination.k8s.io"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACE: Final = "default"
TOKEN_SECONDS: Final = 150
"""At most until an API server has read a changed file; client-go looks once a minute."""
REVIEW: Final = PROJECT / "tests" / "data" / "recordings" / "1.36.3" / "client-go" / "04-update-takeover.json"


def run(world: World) -> Iterator[Row]:
    """Start an API server with the gate on, have it issue a token, and give the token to it."""
    if world.plane.binaries.minor < FIRST_MINOR:
        yield Row("webhook authentication tokens", f"not in {world.plane.binaries.version}", passed=True)
        return
    directory = world.directory / "tokens"
    (directory / "plane").mkdir(parents=True)
    port = free_port()
    token = directory / "token"
    token.write_text("none")
    flags = [f"--admission-control-config-file={_configuration(directory, port, token)}", f"--feature-gates={GATES}"]
    with ControlPlane(world.plane.binaries, directory / "plane", flags=flags) as plane:
        admin = plane.user("admin", "system:masters")
        audience = f"https://127.0.0.1:{port}/validate"
        keys = directory / "jwks.json"
        keys.write_text(json.dumps(admin.get("/openid/v1/jwks")))
        expected = [f"--token-keys={keys}", f"--token-issuer={ISSUER}", f"--token-audience={audience}"]
        with WebhookServer(world.directory, world.certs, port=port, flags=expected) as webhook:
            uid = _register(world, admin, port)
            yield from _without(admin, webhook)
            yield from _issued(admin, audience, uid, token)
            yield from _with(admin, world.certs / "ca.crt", port, audience)


def _configuration(directory: Path, port: int, token: Path) -> Path:
    """The admission configuration and its kubeconfig, as docs/certificates.md shows them."""
    kubeconfig = directory / "webhooks.kubeconfig"
    user = {"name": f"127.0.0.1:{port}", "user": {"tokenFile": str(token)}}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": [user]}))
    group = "apiserver.config.k8s.io/v1"
    inner = {"apiVersion": group, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}
    plugins = [{"name": "ValidatingAdmissionWebhook", "configuration": inner}]
    file = directory / "admission-configuration.yaml"
    file.write_text(json.dumps({"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins}))
    return file


def _register(world: World, admin: ApiClient, port: int) -> str:
    """The configuration of the overlay `local`, at this port; gives its uid."""
    (document,) = world.render("local")
    for entry in document["webhooks"]:
        entry["clientConfig"]["url"] = f"https://127.0.0.1:{port}/validate"
    made = admin.send("POST", REGISTRATIONS, document).expect(201)
    world.settle()
    return str(made["metadata"]["uid"])


def _without(admin: ApiClient, webhook: WebhookServer) -> Iterator[Row]:
    status = _proof(admin)
    time.sleep(2)
    refused = webhook.count("lease_webhook_malformed_total", **{"class": "client"})
    seen = f"refused {refused:.0f} times, the write gives HTTP {status}"
    yield Row("another token: no verdict, and failurePolicy Ignore admits", seen, refused > 0 and status == 201)


def _issued(admin: ApiClient, audience: str, uid: str, token: Path) -> Iterator[Row]:
    admin.send("POST", ACCOUNTS, {"metadata": {"name": ACCOUNT}}).expect(201)
    refused = _request(admin, [audience], uid)
    yield Row("the account may not attest yet", f"HTTP {refused.status}", refused.status == 403)
    rule = {
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["admissionReviewAPIGroups"],
        "resourceNames": [GROUP],
        "verbs": ["attest"],
    }
    metadata = {"name": "attest-leases"}
    admin.send("POST", f"{RBAC}/clusterroles", {"metadata": metadata, "rules": [rule]}).expect(201)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "namespace": "kube-system", "name": ACCOUNT}
    body = {"metadata": metadata, "roleRef": role, "subjects": [subject]}
    admin.send("POST", f"{RBAC}/clusterrolebindings", body).expect(201)
    reply = wait_for("the right to attest", lambda: _granted(_request(admin, [audience], uid)), 30, 0.5)
    token.write_text(reply.body["status"]["token"])
    other = _request(admin, ["https://other.example"], uid)
    seen = f"issued for {reply.body['spec']['expirationSeconds']} s, for another URL HTTP {other.status}"
    yield Row("a token for the webhook's URL and API group", seen, other.status == 403)


def _granted(reply: Reply) -> Reply | None:
    return reply if reply.status == 201 else None


def _request(admin: ApiClient, audiences: list[str], uid: str) -> Reply:
    bound = {"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1"}
    spec = {
        "audiences": audiences,
        "expirationSeconds": 3600,
        "boundObjectRef": bound | {"name": "lease-webhook", "uid": uid},
        "attestations": {"admissionReviewAPIGroups": [GROUP]},
    }
    return admin.send("POST", f"{ACCOUNTS}/{ACCOUNT}/token", {"spec": spec})


def _with(admin: ApiClient, ca: Path, port: int, audience: str) -> Iterator[Row]:
    begin = time.monotonic()
    wait_for("a verdict", lambda: _proof(admin) == 422, TOKEN_SECONDS, 1)
    yield Row(
        "with the token in its file the API server gets verdicts", f"{time.monotonic() - begin:.0f} s", passed=True
    )
    spec = {"audiences": [audience], "expirationSeconds": 3600}
    ordinary = admin.send("POST", f"{ACCOUNTS}/{ACCOUNT}/token", {"spec": spec}).expect(201)["status"]["token"]
    status = _posted(ca, port, ordinary)
    yield Row("an ordinary token of the same account and audience", f"HTTP {status}", status == 403)


def _posted(ca: Path, port: int, token: str) -> int:
    context = ssl.create_default_context(cafile=str(ca))
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    connection.request("POST", "/validate", REVIEW.read_bytes(), headers)
    status = connection.getresponse().status
    connection.close()
    return status


def _proof(admin: ApiClient) -> int:
    """The status of deploy/proof.yaml as a dry run."""
    body: dict[str, Any] = yaml.safe_load((PROJECT / "deploy" / "proof.yaml").read_text())
    return admin.send("POST", leases(NAMESPACE), body, dryRun="All").status
