"""The requests of Kubernetes' conformance test "lease API should be available", as the users who run conformance.

They are taken from test/e2e/common/node/lease.go of k8s.io/kubernetes v1.37.1: the program of all end-to-end
tests is too large to build here.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

from lab.e2e.api_client import ApiClient, Reply
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import Row, World, build_lease_path

KUBEADM: Final = "kubeadm:cluster-admins"
STRATEGIC: Final = "application/strategic-merge-patch+json"
EXEMPT: Final = f"""\
apiVersion: lease-webhook/v1
preset: strict
exempt:
- {{groups: ["{KUBEADM}"], owner: platform, reason: repairs by kubeadm's admin.conf}}
"""
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


def run(world: World) -> Iterator[Row]:
    """Play the test under `standard` and `strict`, as system:masters and as kubeadm's admin."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": KUBEADM}
    binding = {"metadata": {"name": KUBEADM}, "subjects": [group], "roleRef": role}
    world.admin.send("POST", f"{RBAC}/clusterrolebindings", binding).expect()
    exempt = world.directory / "conformance.yaml"
    exempt.write_text(EXEMPT)
    kubeadm = world.plane.create_client("kubernetes-admin", KUBEADM)
    cases: dict[str, tuple[str, ApiClient, str]] = {
        "standard, kubeadm's admin": ("standard", kubeadm, ""),
        "strict, system:masters": ("strict", world.admin, ""),
        "strict, kubeadm's admin": ("strict", kubeadm, "update"),
        "strict that exempts kubeadm's admin": (str(exempt), kubeadm, ""),
    }
    with ExitStack() as stack:
        for number, policy in enumerate(("standard", "strict", str(exempt))):
            server = stack.enter_context(WebhookServer(world.directory, world.certs, policy=policy))
            world.register(f"conformance-{number}", server.port, failure_policy="Fail")
        world.settle()
        for number, (name, (policy, client, step_of_refusal)) in enumerate(cases.items()):
            route = f"conformance-{('standard', 'strict', str(exempt)).index(policy)}"
            place = world.create_namespace(f"conformance-test-{number}", route=route)
            step, reply = _play(client, place)
            observation = f"{step}: HTTP {reply.status} {reply.message[-90:]}" if reply else "passes"
            yield Row(name, observation, step == step_of_refusal)


def _make_spec(holder: str, seconds: int, acquire_time: int, renew_time: int, transitions: int) -> dict[str, Any]:
    """Return a spec as the test has it: its times are seconds of the year 1."""
    times = {
        name: f"0001-01-01T00:{at // 60:02}:{at % 60:02}.000000Z"
        for name, at in (("acquireTime", acquire_time), ("renewTime", renew_time))
    }
    return {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": transitions} | times


def _play(client: ApiClient, place: str) -> tuple[str, Reply | None]:
    """Return the first request that is refused, and its reply; ("", None) if none is."""
    path, lease_path = build_lease_path(place), build_lease_path(place, "lease")
    first = {"metadata": {"name": "lease"}, "spec": _make_spec("holder", 30, 2, 5, 0)}
    second = {"metadata": {"name": "lease2", "labels": {"deletecollection": "true"}}, "spec": first["spec"]}

    def update() -> Reply:
        lease = client.get(lease_path)
        return client.send("PUT", lease_path, lease | {"spec": _make_spec("holder2", 30, 20, 50, 1)})

    steps: dict[str, Callable[[], Reply]] = {
        "create": lambda: client.send("POST", path, first),
        "update": update,
        "patch": lambda: client.send(
            "PATCH", lease_path, {"spec": _make_spec("holder3", 60, 50, 70, 2)}, media=STRATEGIC
        ),
        "create with a label": lambda: client.send("POST", path, second),
        "delete the collection": lambda: client.send("DELETE", path, labelSelector="deletecollection=true"),
        "delete": lambda: client.send("DELETE", lease_path),
    }
    for name, step in steps.items():
        reply = step()
        if reply.status not in {200, 201}:
            return name, reply
    is_gone = client.send("GET", lease_path)
    return ("", None) if is_gone.status == 404 else ("get what was deleted", is_gone)
