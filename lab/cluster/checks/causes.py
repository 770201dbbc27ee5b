"""`lease-webhook status` where one thing is broken: it names that thing, and repaired it is in force."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lab.cluster.world import NAMESPACE, WORKLOAD, Object, World
from lab.e2e.webhook_server import make_certificates
from lab.e2e.world import Row
from tests.waiting import wait_for

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/lease-webhook"
SERVICE = f"/api/v1/namespaces/{NAMESPACE}/services/lease-webhook"
JSON_PATCH = "application/json-patch+json"
PERSON = "system:serviceaccount:default:default"


def check_causes(world: World) -> Iterator[Row]:
    """Break one thing after another; the webhook is installed, and stays so."""
    world.apply("self-signed")
    yield _await_reason(world, "nothing", "refused a lease", code=0)
    make_certificates(world.directory / "another-ca")
    another = base64.b64encode((world.directory / "another-ca" / "ca.crt").read_bytes()).decode()
    with _change(world, CONFIGURATION, "/webhooks/0/clientConfig/caBundle", another):
        yield _await_reason(world, "a caBundle of another CA", "certificate-untrusted")
    with _change(world, CONFIGURATION, "/webhooks/0/clientConfig/service/port", 444):
        yield _await_reason(world, "a port that the Service lacks", "service-port-missing")
    with _change(world, CONFIGURATION, "/webhooks/0/clientConfig/service/name", "other"):
        yield _await_reason(world, "a Service that is not there", "service-missing")
        # It leads to the same pods, whose certificate lacks its name.
        world.kubectl.run_checked("-n", NAMESPACE, "expose", "deployment/lease-webhook", "--name=other", *_PORTS)
        yield _await_reason(world, "a name that the certificate lacks", "certificate-untrusted")
        world.kubectl.run_checked("-n", NAMESPACE, "delete", "service", "other")
    with _change(world, SERVICE, "/spec/ports/0/targetPort", "nothing"):
        _end_connections(world)
        yield _await_reason(world, "a targetPort that no container names", "target-port-missing")
    with _change(world, SERVICE, "/spec/ports/0/targetPort", 9999):
        _end_connections(world)
        yield _await_reason(world, "a targetPort at which nothing listens", "target-port-closed")
    replicas = {"spec": {"replicas": 0}}
    world.client.send("PATCH", WORKLOAD, replicas, media="application/merge-patch+json").expect(200)
    yield _await_reason(world, "no pods", "no-ready-endpoint")
    role = ["clusterrole", "status-lease-writer", "--verb=create", "--resource=leases.coordination.k8s.io"]
    world.kubectl.run_checked("create", *role)
    world.kubectl.run_checked(
        "create", "clusterrolebinding", role[1], f"--clusterrole={role[1]}", "--serviceaccount=default:default"
    )
    yield _await_reason(world, "no pods, asked by who may only write leases", "why is not known", "--as", PERSON)
    for kind in ("clusterrole", "clusterrolebinding"):
        world.kubectl.run_checked("delete", kind, role[1])
    world.apply("self-signed")
    yield _await_reason(world, "nothing any longer", "refused a lease", code=0)


_PORTS = ("--port=443", "--target-port=webhook")


def _end_connections(world: World) -> None:
    """Replace the pods: API servers keep connections, and go on calling where a Service no longer leads."""
    world.kubectl.run_checked("-n", NAMESPACE, "rollout", "restart", "deployment/lease-webhook")
    world.wait_for_rollout()


def _await_reason(world: World, defect: str, expected: str, *words: str, code: int = 1) -> Row:
    """Ask until the reason has the text: API servers and controllers take a change after some seconds."""
    exit_code, reason = 0, ""

    def is_told() -> bool:
        nonlocal exit_code, reason
        exit_code, output = world.run_status("--format=json", *words)
        reason = json.loads(output.splitlines()[0])["reason"]
        return exit_code == code and expected in reason

    with suppress(TimeoutError):
        wait_for(f"status with {defect}", is_told, 40, 1)
    return Row(
        f"`lease-webhook status` with {defect}", f"exit {exit_code}: {reason}", exit_code == code and expected in reason
    )


@contextmanager
def _change(world: World, path: str, place: str, value: object) -> Iterator[None]:
    """Change one place of an object, and change it back."""
    before: Object = world.client.get(path)
    old: Any = before
    for step in place.strip("/").split("/"):
        old = old[int(step) if step.isdigit() else step]
    _replace(world, path, place, value)
    try:
        yield
    finally:
        _replace(world, path, place, old)


def _replace(world: World, path: str, place: str, value: object) -> None:
    patch = [{"op": "replace", "path": place, "value": value}]
    world.client.send("PATCH", path, patch, media=JSON_PATCH).expect(200)
