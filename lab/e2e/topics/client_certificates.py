"""An API server that proves to the webhook who it is, by a client certificate, on a control plane of its own."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from lab.e2e.api_client import ApiClient
from lab.e2e.certificates import Authority
from lab.e2e.control_plane import ControlPlane, find_free_port
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import PROJECT, REGISTRATIONS, Row, World, build_lease_path

CALLER: Final = "kube-apiserver"
NAMESPACE: Final = "default"


def run(world: World) -> Iterator[Row]:
    """Start an API server that presents a certificate, and a webhook that admits its name, or another one."""
    directory = world.directory / "client-certificates"
    (directory / "plane").mkdir(parents=True)
    authority = Authority(directory, "callers")
    port = find_free_port()
    flags = [f"--admission-control-config-file={_write_configuration(directory, port, *authority.issue(CALLER))}"]
    with ControlPlane(world.plane.binaries, directory / "plane", flags=flags) as plane:
        admin = plane.create_client("admin", "system:masters")
        _register(world, admin, port)
        for name, expected in ((CALLER, 422), ("somebody-else", 201)):
            admitted = [f"--client-ca={authority.file}", f"--client-name={name}"]
            with WebhookServer(world.directory, world.certs, port=port, flags=admitted) as webhook:
                status = _try_proof(admin)
                time.sleep(2)
                refusals = webhook.read_metric("lease_webhook_malformed_total", **{"class": "client"})
            observation = f"refused {refusals:.0f} times, the write gives HTTP {status}"
            if name == CALLER:
                yield Row(
                    "with its certificate the API server gets verdicts",
                    observation,
                    status == expected and not refusals,
                )
            else:
                claim = "a name that is not admitted: no verdict, and failurePolicy Ignore admits"
                yield Row(claim, observation, status == expected and refusals > 0)


def _write_configuration(directory: Path, port: int, certificate: Path, key: Path) -> Path:
    """Write the admission configuration and its kubeconfig, as SECURITY.md shows them."""
    kubeconfig = directory / "webhooks.kubeconfig"
    files = {"client-certificate": str(certificate), "client-key": str(key)}
    user = {"name": f"127.0.0.1:{port}", "user": files}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": [user]}))
    group = "apiserver.config.k8s.io/v1"
    inner = {"apiVersion": group, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}
    plugins = [{"name": "ValidatingAdmissionWebhook", "configuration": inner}]
    file = directory / "admission-configuration.yaml"
    file.write_text(json.dumps({"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins}))
    return file


def _register(world: World, admin: ApiClient, port: int) -> None:
    """Register the configuration of the overlay `local`, at this port."""
    (document,) = world.render("local")
    for entry in document["webhooks"]:
        entry["clientConfig"]["url"] = f"https://127.0.0.1:{port}/validate"
    admin.send("POST", REGISTRATIONS, document).expect(201)
    world.settle()


def _try_proof(admin: ApiClient) -> int:
    """Return the status of deploy/proof.yaml as a dry run."""
    body: dict[str, Any] = yaml.safe_load((PROJECT / "deploy" / "proof.yaml").read_text())
    return admin.send("POST", build_lease_path(NAMESPACE), body, dryRun="All").status
