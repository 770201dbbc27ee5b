"""The overlays whose certificates come from others: cert-manager's own controllers, and the service CA of OpenShift."""

import base64
import json
from collections.abc import Callable, Iterator

from lab.cluster.load import Load
from lab.cluster.monitoring import apply_definitions
from lab.cluster.node import Node
from lab.cluster.programs import build_neighbors
from lab.cluster.world import NAMESPACE, World
from lab.e2e.processes import Process
from lab.e2e.world import REGISTRATIONS, Row
from tests.waiting import wait_for

KINDS = ("certificaterequests", "certificates", "clusterissuers", "issuers")
CERTIFICATE = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/certificates/lease-webhook"
RESTRICTED = 1000650000
"""A user as the security context constraint restricted-v2 takes one from the range of a namespace."""
ASSIGNED = f"""
patches:
- target: {{kind: Deployment, name: lease-webhook}}
  patch: |-
    - {{op: add, path: /spec/template/spec/securityContext/runAsUser, value: {RESTRICTED}}}
    - {{op: add, path: /spec/template/spec/securityContext/fsGroup, value: {RESTRICTED}}}
"""
SERVING = """
import hashlib, socket, ssl
context = ssl._create_unverified_context()
with context.wrap_socket(socket.create_connection(("127.0.0.1", 8443), timeout=5)) as connection:
    print(hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest())
"""


def check_cert_manager(node: Node) -> Callable[[World], Iterator[Row]]:
    """Return the check of the overlay cert-manager: issued, injected, renewed."""

    def check(world: World) -> Iterator[Row]:
        apply_definitions(world, *KINDS)
        world.remove()
        command = [
            str(build_neighbors().cert_manager),
            str(node.plane.write_kubeconfig("cert-manager", "system:masters")),
        ]
        with Process(command, node.directory / "cert-manager.log") as controllers:
            seconds = world.apply("cert-manager", "strict")
            wait_for("the proof is refused", world.is_enforced, 60, 0.5)
            controllers.check_alive()
            observation = (
                f"certificate issued, caBundle injected, both pods ready after {seconds:.0f} s, the proof is refused"
            )
            yield Row("overlay cert-manager, with cert-manager's own controllers", observation, passed=True)
            yield _renew(world)

    return check


def _renew(world: World) -> Row:
    before = _read_serving_certificates(world)
    status = world.client.get(CERTIFICATE)["status"]
    # What `cmctl renew` does.
    status["conditions"].append({"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "now"})
    patch = json.dumps({"status": status})
    with Load(world) as load:
        world.kubectl.run_checked(
            *("-n", NAMESPACE, "patch", "certificate", "lease-webhook"),
            *("--subresource=status", "--type=merge", f"--patch={patch}"),
        )
        wait_for("a new Secret", lambda: world.client.get(CERTIFICATE)["status"].get("revision") == 2, 30, 0.5)
        world.refresh_volumes()
        wait_for("both pods serve it", lambda: not before & _read_serving_certificates(world), 120, 1)
        report = load.report()
    return Row("a certificate that cert-manager renews", f"served by both pods; {report}", passed=report.passed)


def _read_serving_certificates(world: World) -> set[str]:
    return {world.run_python(name, SERVING).strip() for name in world.list_pod_names()}


def check_openshift(world: World) -> Iterator[Row]:
    """Check the overlay openshift with a user of the platform's choice, and a certificate placed as by service-ca."""
    world.remove()
    text = world.render("openshift", edit=ASSIGNED)
    world.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=text)
    names = ("ca.crt", "tls.crt", "tls.key")
    data = {name: base64.b64encode((world.certs / name).read_bytes()).decode() for name in names}
    metadata = {"name": "lease-webhook-tls", "namespace": NAMESPACE}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}
    world.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=secret)
    path = f"{REGISTRATIONS}/lease-webhook"
    entries = world.client.get(path)["webhooks"]
    patch = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": data["ca.crt"]}
        for index in range(len(entries))
    ]
    world.client.send("PATCH", path, patch, media="application/json-patch+json").expect(200)
    world.wait_for_rollout()
    wait_for("the proof is refused", world.is_enforced, 60, 0.5)
    users = {
        world.run_python(name, "import os; print(os.getuid(), os.getgroups())").strip()
        for name in world.list_pod_names()
    }
    yield Row(
        "overlay openshift; service-ca was not available, so its Secret and caBundle were written by hand",
        f"both pods run as user and groups {', '.join(sorted(users))}; the proof is refused",
        passed=len(users) == 1 and users.pop().startswith(f"{RESTRICTED} "),
    )
    world.remove()
