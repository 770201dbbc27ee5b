"""The installation as a whole: its components, the network around it, a cold cluster, and its end."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import yaml

from lab.cluster.elsewhere import run_elsewhere
from lab.cluster.load import Load
from lab.cluster.node import Node
from lab.cluster.world import CLOSED, NAMESPACE, ROOT, World
from lab.e2e.manifests import make_lease
from lab.e2e.world import Row, build_lease_path
from tests.waiting import wait_for

REACH = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3).close()
    print("reached")
except OSError as error:
    print("not reached")
"""
COMPONENTS = ("observe", "all-renewals", "strict", "bindings", "control-plane", "node-leases", "high-availability")


def check_components(world: World) -> Iterator[Row]:
    """Apply the self-signed overlay with each component by itself, in real pods; the proof where it reaches."""
    for component in COMPONENTS:
        seconds = world.apply("self-signed", component)
        wait_for("the effect", partial(_has_effect, world, component), 150, 0.5)
        replicas = 3 if component == "high-availability" else 2
        wait_for("ready pods", partial(world.is_ready, replicas), 120, 0.5)
        yield Row(
            f"component {component}", f"{replicas} pods ready, {EFFECTS[component]}; {seconds:.0f} s", passed=True
        )


EFFECTS = {
    "observe": "the proof is admitted with a warning",
    "all-renewals": "the proof is refused",
    "strict": "a bad Lease is refused in a namespace that fails closed",
    "bindings": "the proof is refused",
    "control-plane": "a bad Lease is refused in kube-system",
    "node-leases": "a bad Lease is refused in kube-node-lease",
    "high-availability": "the proof is refused",
}


def _has_effect(world: World, component: str) -> bool:
    namespace = {"strict": CLOSED, "control-plane": "kube-system", "node-leases": "kube-node-lease"}.get(component)
    body = yaml.safe_load((ROOT / "deploy" / "proof.yaml").read_text())
    body["metadata"]["namespace"] = namespace or "default"
    reply = world.client.send("POST", build_lease_path(namespace or "default"), body, dryRun="All")
    if component == "observe":
        return reply.status == 201 and any("time-unreadable" in one for one in reply.warnings)
    return "(lease webhook, rule time-unreadable)" in reply.message


def check_network(world: World) -> Iterator[Row]:
    """Try the NetworkPolicy from a pod of another namespace, and from ours outwards."""
    address = world.list_pods()[0]["status"]["podIP"]
    inwards = _reach_from_elsewhere(world, address)
    outwards = world.run_python(sorted(world.list_pod_names())[0], REACH, *_find_api_server(world)).strip() == "reached"
    enforced = not inwards["8081"] and not outwards
    what = "another pod reached 8443 only, and a pod of ours reached nothing"
    unenforced = "this network plugin does not enforce policies: not tested"
    passed = (inwards["8443"] and enforced) or (inwards["8081"] and outwards)
    yield Row("NetworkPolicy", what if enforced else unenforced, passed=passed)


def _reach_from_elsewhere(world: World, address: str) -> dict[str, bool]:
    """Return whether a pod in `default` reaches each of our ports."""
    return {port: run_elsewhere(world, REACH, address, port).strip() == "reached" for port in ("8443", "8081")}


def _find_api_server(world: World) -> tuple[str, str]:
    """Return the host and the port by which the API server is reached from inside."""
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    endpoints = world.client.get(path)
    return endpoints["endpoints"][0]["addresses"][0], str(endpoints["ports"][0]["port"])


def check_cold_start(node: Node) -> Callable[[World], Iterator[Row]]:
    """Return the check: the node loses its power with the webhook failing closed, and comes back."""

    def check(world: World) -> Iterator[Row]:
        wait_for("two ready pods", world.is_ready, 120, 0.5)
        node.crash()
        begin = time.monotonic()
        node.start()
        ready = time.monotonic() - begin
        # Before our pods serve again, a write that fails closed is refused and never passes unseen.
        early = world.client.send("POST", build_lease_path(CLOSED), make_lease("early"), dryRun="All")
        wait_for("the proof is refused", world.is_enforced, 180, 0.5)
        enforced = time.monotonic() - begin
        wait_for("two ready pods", world.is_ready, 180, 0.5)
        with Load(world) as load:
            time.sleep(5)
        report = load.report()
        observation = (
            f"the node and its controllers' leases needed {ready:.0f} s, the proof was refused after {enforced:.0f} s; "
            f"a write that fails closed meanwhile: HTTP {early.status}; afterwards {report}"
        )
        yield Row("a node that loses its power, with failurePolicy Fail", observation, passed=report.passed)

    return check


def check_removal(world: World) -> Iterator[Row]:
    """Uninstall as README says, under load: no write may fail."""
    with Load(world) as load:
        load.report()
        world.remove()
        report = load.report()
    remainder = world.kubectl.run_checked(
        "get", "all,pdb,netpol,secret,configmap", "-n", NAMESPACE, "--ignore-not-found"
    )
    yield Row("README's uninstalling", f"nothing left; {report}", passed=report.passed and not remainder.strip())
