"""The faults for which the alerts are made: each is caused in real pods, and repaired."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from msgspec import Struct

from lab.cluster.elsewhere import run_elsewhere
from lab.cluster.shortened import shorten
from lab.cluster.world import NAMESPACE, World
from lab.e2e.manifests import make_lease
from lab.e2e.webhook_server import make_certificates
from lab.e2e.world import build_lease_path

OPEN = "cluster-open"
"""A namespace in which a write that is not reviewed is admitted."""
STANDARD = "apiVersion: lease-webhook/v1\npreset: standard\n"
OFF = f'{STANDARD}mode: "off"\n'
BROKEN = "preset: [this is not a policy\n"
SHORT_LIVED = 10
"""Days; the alert is for less than fourteen."""
LARGE = {f"key-{number:04}": "v" * 20 for number in range(8000)}
"""Annotations of 224 KB, of which an API server takes 256 KiB; a review takes 40 ms of CPU."""
STARVED = "60m"
"""6 ms of CPU in each tenth of a second: some reviews then end within the second that they are given, others do not."""
ABUSE = r"""
import socket, ssl, sys
context = ssl._create_unverified_context()
def sent(size, body):
    connection = context.wrap_socket(socket.create_connection((sys.argv[1], 8443), timeout=10))
    head = b"POST /validate?timeout=2s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % size + body)
    return connection
print(sent(2, b"{}").recv(100))
# Bodies of 16 MiB that begin as a review and do not end, on more connections than two workers of 64 MiB each take.
opening = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"'
open_ones = [sent(1 << 24, opening) for _ in range(24)]
for _ in range(100):
    for one in list(open_ones):
        try:
            one.sendall(b"x" * (1 << 16))
        except OSError:
            open_ones.remove(one)
"""


class Fault(Struct, frozen=True):
    """A fault; `alerts` are those that it is for, `also` may fire beside them."""

    what: str
    alerts: tuple[str, ...]
    during: Callable[[World], AbstractContextManager[None]]
    also: tuple[str, ...] = ()


def apply_monitored(world: World) -> None:
    """Apply the installation that everything here is about, with its files as they are shipped."""
    text = shorten(world.render("self-signed", "strict", "monitoring"))
    world.kubectl.run_checked("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=text)
    world.wait_for_rollout()


@contextmanager
def remove_pods(world: World) -> Iterator[None]:
    """Scale the Deployment to zero."""
    world.kubectl.run_checked("-n", NAMESPACE, "scale", "deployment/lease-webhook", "--replicas=0")
    yield
    world.kubectl.run_checked("-n", NAMESPACE, "scale", "deployment/lease-webhook", "--replicas=2")
    world.wait_for_rollout()


@contextmanager
def abuse(world: World) -> Iterator[None]:
    """Use the TLS port once from a pod of another namespace."""
    run_elsewhere(world, ABUSE, world.list_pods()[0]["status"]["podIP"])
    yield


@contextmanager
def starve(world: World) -> Iterator[None]:
    """Run pods with hardly any CPU, and write large Leases."""
    limits = {"requests": {"cpu": STARVED}, "limits": {"cpu": STARVED}}
    patch = json.dumps({"spec": {"containers": [{"name": "webhook", "resources": limits}]}})
    for name in world.list_pod_names():
        world.kubectl.run_checked("-n", NAMESPACE, "patch", "pod", name, "--subresource=resize", f"--patch={patch}")
    end = threading.Event()
    writers = [threading.Thread(target=_write, args=(world, f"large-{number}", end)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        end.set()
        for writer in writers:
            writer.join()
    world.kubectl.run_checked("-n", NAMESPACE, "rollout", "restart", "deployment/lease-webhook")
    world.wait_for_rollout()


@contextmanager
def break_policy(world: World) -> Iterator[None]:
    """Set a policy file that cannot be read."""
    _put_policy(world, BROKEN)
    yield
    _put_policy(world, STANDARD)


@contextmanager
def forget(world: World) -> Iterator[None]:
    """Leave a certificate that nobody renews, and a kill switch on."""
    make_certificates(world.certs, "--days", str(SHORT_LIVED))
    apply_monitored(world)
    _put_policy(world, OFF)
    yield
    make_certificates(world.certs)
    apply_monitored(world)
    world.refresh_volumes()


FAULTS = (
    Fault(
        "no pod runs, and leases are written",
        ("LeaseWebhookFailsOpen", "LeaseWebhookFailsClosed", "LeaseWebhookGone"),
        remove_pods,
    ),
    Fault(
        "another pod sends bodies that are not reviews, and bodies that do not end",
        ("LeaseWebhookMalformedBody", "LeaseWebhookSheds"),
        abuse,
    ),
    Fault(
        f"{STARVED} of CPU for each pod, and writes of very large Leases",
        ("LeaseWebhookSlow", "LeaseWebhookIncident"),
        starve,
        also=("LeaseWebhookFailsOpen", "LeaseWebhookFailsClosed"),
    ),
    Fault("a policy that cannot be read", ("LeaseWebhookReloadFails",), break_policy),
    Fault(
        f"a certificate for {SHORT_LIVED} days, and the kill switch",
        ("LeaseWebhookCertificateEnds", "LeaseWebhookAllowsEverything"),
        forget,
    ),
)
"""Each alert of the component `monitoring` belongs to one."""


def _put_policy(world: World, text: str) -> None:
    metadata = {"name": "lease-webhook-policy", "namespace": NAMESPACE}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": text}}
    world.kubectl.run_checked("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=json.dumps(body))
    world.refresh_volumes()


def _write(world: World, name: str, end: threading.Event) -> None:
    path, count = build_lease_path(OPEN, name), 0
    while not end.is_set():
        count += 1
        body = make_lease(name)
        body["metadata"]["annotations"] = LARGE | {"count": str(count)}
        media = "application/apply-patch+yaml"
        # Whatever becomes of it: what counts is how the webhook shows it.
        world.client.send("PATCH", path, body, media=media, fieldManager=name, force="true")
        time.sleep(0.2)
