"""The recorder with its metrics: its own rights, its own port, and an election that it sees from inside a pod."""

import contextlib
import time
from collections.abc import Iterator

from lab.cluster.monitoring import apply_definitions
from lab.cluster.world import NAMESPACE, PYTHON, SECONDS_PAST_EXPIRY, World
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.world import Row, build_lease_path
from tests.waiting import wait_for

SHOP = "cluster-recorded"
DURATION = 4
IN_MEMORY = """
patches:
- target: {kind: StatefulSet, name: lease-recorder}
  patch: |-
    - {op: remove, path: /spec/volumeClaimTemplates}
    - {op: add, path: /spec/template/spec/volumes, value: [{name: history, emptyDir: {}}]}
"""
"""The node of this suite has no volumes to claim."""
SCRAPE = (
    "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8082/metrics', timeout=5).read().decode())"
)
POD = "lease-recorder-0"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"


def check_recorder(world: World) -> Iterator[Row]:
    """Check the metrics of a lease that is held, silent and taken, and the answer of `why` about the history."""
    apply_definitions(world, "prometheusrules", "servicemonitors")
    world.create_namespace(SHOP, {})
    world.apply("self-signed", "recorder", "recorder-metrics", edit=IN_MEMORY)
    world.kubectl.run_checked("-n", NAMESPACE, "rollout", "status", "statefulset/lease-recorder", "--timeout=120s")
    wait_for("metrics are served", lambda: _has_metrics(world), 60, 0.5)
    world.client.send("POST", build_lease_path(SHOP), make_lease("shift", leaseDurationSeconds=DURATION)).expect(201)
    wait_for("the lease is live", lambda: _read_metric(world, "live") == 1, 30, 0.5)
    slices = world.client.send("GET", SLICES, labelSelector="kubernetes.io/service-name=lease-recorder-metrics")
    ports = {port["port"] for one in slices.expect(200)["items"] for port in one["ports"]}
    wait_for("no one leads", lambda: _read_metric(world, "live") == 0, 30, 0.5)
    # A takeover sooner may have come before the expiry, by stamps of whole seconds and clocks that may differ.
    time.sleep(SECONDS_PAST_EXPIRY)
    absent = _read_metric(world, "leaderless_seconds_total")
    path = build_lease_path(SHOP, "shift")
    lease = world.client.get(path)
    lease["spec"] |= {"holderIdentity": "next", "renewTime": format_micro_time(), "acquireTime": format_micro_time()}
    lease["spec"]["leaseTransitions"] = 1
    world.client.send("PUT", path, lease).expect(200)
    wait_for("the next holder is live", lambda: _read_metric(world, "live") == 1, 30, 0.5)
    takeovers = _read_metric(world, "handovers_total", how="expired")
    observation = (
        f"live 1, 0, 1; {absent:.0f} s without a leader; handovers by expiry {takeovers:.0f}; "
        f"the Service leads to {ports}"
    )
    passed = absent >= DURATION and takeovers == 1 and ports == {8082}
    yield Row("component recorder-metrics: a lease that is held, silent and taken", observation, passed=passed)
    time.sleep(1)
    command = (PYTHON, "-m", "webhook", "why", f"{SHOP}/shift", "--input", "/history")
    account = world.kubectl.run_checked("-n", NAMESPACE, "exec", POD, "--", *command)
    yield Row("`why` in the pod of the recorder", account.splitlines()[0], passed="next holds it since" in account)
    world.remove()
    world.kubectl.run("delete", "clusterrolebinding,clusterrole", "lease-recorder", "--ignore-not-found")
    world.kubectl.run("delete", "namespace", SHOP, "--ignore-not-found", "--wait=false")


def _has_metrics(world: World) -> bool:
    """Return whether the port is open: the pod has no probe, so it is ready before its program has begun."""
    with contextlib.suppress(RuntimeError):
        return bool(world.run_python(POD, SCRAPE))
    return False


def _read_metric(world: World, name: str, **labels: str) -> float:
    """Return a metric of the lease, -1 if it has none yet."""
    labels_as_text = [f'{key}="{value}"' for key, value in {"lease": "shift", "namespace": SHOP, **labels}.items()]
    for line in world.run_python(POD, SCRAPE).splitlines():
        if line.startswith(f"lease_webhook_leader_{name}{{") and all(label in line for label in labels_as_text):
            return float(line.rpartition(" ")[2])
    return -1
