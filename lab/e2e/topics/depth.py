"""The shipped policy refuses managedFields that nest so deeply that no webhook can be asked, and nothing else."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from lab.e2e.api_client import APPLY, JSON_PATCH, MERGE, ApiClient, Reply
from lab.e2e.counting import CountingWebhook
from lab.e2e.one_lease import DEEP, FIRST, NEXT, OneLease, make_entry, nest_fields
from lab.e2e.world import ROUTE, Row, World, build_lease_path
from tests import protobuf
from tests.waiting import wait_for

NAMESPACE: Final = "depth"
SYSTEM: Final = ("kube-system", "kube-node-lease")
"""The namespaces that the components `control-plane` and `node-leases` add to the scope of the webhook."""
KINDS: Final = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
MAX_DEPTH: Final = 8
UNSPEAKABLE: Final = (9997, 9998, 9999, 10000)
"""Levels with which an API server cannot write the review."""
OWNERS: Final = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"n{at}", "uid": str(at)} for at in range(2000)]
_CHECKS: Final = re.compile(r"^apiserver_validating_admission_policy_check_total\{(.*)\} (\S+)$", re.MULTILINE)

Write = Callable[[OneLease], Reply]


def run(world: World) -> Iterator[Row]:
    """Apply the policy as the overlay has it, after somebody has spoiled a lease."""
    client, _ = world.create_user("depth-writer")
    world.create_namespace(NAMESPACE, route=NAMESPACE)
    lease = OneLease(client, NAMESPACE, "spoiled")
    version = _spoil(lease)
    with CountingWebhook(world.certs) as webhook:
        world.register(NAMESPACE, webhook.port, system=True)
        _route_system_namespaces(world, NAMESPACE)
        world.settle()
        unseen = {_take_unseen(client, webhook, namespace) for namespace in (NAMESPACE, *SYSTEM)}
        passed = unseen == {"HTTP 200, the webhook was not called"}
        yield Row("without the policy: 9,997 levels are admitted unseen", "; ".join(sorted(unseen)), passed)
        _apply(world, client)
        problems = list(_check_refused(client))
        yield Row("levels 9 to 10,000", "; ".join(problems) or "refused, by protobuf and by JSON", not problems)
        problems = [problem for namespace in SYSTEM for problem in _check_refused_in_system(client, namespace)]
        yield Row("the same in kube-system and kube-node-lease", "; ".join(problems) or "refused", not problems)
        problems = [problem for namespace in (NAMESPACE, *SYSTEM) for problem in _check_admitted(client, namespace)]
        yield Row("honest writes", "; ".join(problems) or "admitted, and reviewed where they should be", not problems)
        problems = list(_check_repair(client, lease, version))
        yield Row("a lease that was spoiled before", "; ".join(problems) or "renewed, repaired, deleted", not problems)
    _remove(world)
    _route_system_namespaces(world, None)
    refusals, errors = _count_checks(world, "deny"), _count_checks(world, "allow", error=True)
    observation = f"{errors:.0f}, and {refusals:.0f} refused"
    yield Row("writes that the policy admitted with an error", observation, bool(refusals) and not errors)


def _route_system_namespaces(world: World, route: str | None) -> None:
    for namespace in SYSTEM:
        labels = {"metadata": {"labels": {ROUTE: route}}}
        world.admin.send("PATCH", f"/api/v1/namespaces/{namespace}", labels, media=MERGE).expect()


def _take_unseen(client: ApiClient, webhook: CountingWebhook, namespace: str) -> str:
    """Take a lease from its holder under an entry that no review can carry, and return what came of it."""
    lease = OneLease(client, namespace, "unseen")
    lease.create().expect(201)
    status = _nest_deeply(lease, UNSPEAKABLE[0], holderIdentity="thief").status
    is_called = webhook.count_reviews(namespace, "unseen") > 1
    # A list of the namespace in JSON would nest too deeply.
    lease.delete().expect(200)
    return f"HTTP {status}, the webhook was {'called' if is_called else 'not called'}"


def _nest_deeply(lease: OneLease, levels: int, **spec: Any) -> Reply:
    return lease.put_protobuf(fields=nest_fields(levels).encode(), **spec)


def _spoil(lease: OneLease) -> str:
    """Plant an entry that no review can carry; return the resourceVersion, which JSON clients can no longer read."""
    lease.create().expect(201)
    reply = _nest_deeply(lease, UNSPEAKABLE[1])
    match = re.search(r'"resourceVersion":"(\d+)"', reply.message)
    if reply.status != 200 or not match:
        raise RuntimeError(f"cannot plant: HTTP {reply.status} {reply.message[:200]}")
    return match[1]


def _read_policy(world: World) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the object of the policy and of its binding, as the overlay has them."""
    for document in world.render("self-signed"):
        if document["kind"] in KINDS:
            name = document["metadata"]["name"]
            yield f"/apis/admissionregistration.k8s.io/v1/{KINDS[document['kind']]}/{name}", document


def _remove(world: World) -> None:
    for path, _ in _read_policy(world):
        world.admin.send("DELETE", path).expect()


def _apply(world: World, client: ApiClient) -> None:
    for path, document in _read_policy(world):
        world.admin.send("PATCH", path, document, media=APPLY, fieldManager="e2e", force=True).expect()

    lease = OneLease(client, NAMESPACE, "probe")
    lease.create().expect(201)

    def is_refused() -> bool:
        body = protobuf.lease(lease.make_changed(), [make_entry("z", nest_fields(MAX_DEPTH + 1).encode())])
        return client.send("PUT", lease.path, body, media=protobuf.MEDIA, dryRun="All").status == 422

    wait_for("the depth policy", is_refused, 30, 0.5)


def _check_refused(client: ApiClient) -> Iterator[str]:
    writes: dict[str, Write] = {
        f"{levels} levels": lambda lease, levels=levels: _nest_deeply(lease, levels)  # type: ignore[misc]
        for levels in (MAX_DEPTH + 1, 1200, 9990, *UNSPEAKABLE)
    }
    writes["9,900 levels in JSON"] = lambda lease: lease.put(
        entries=lambda old: [*old, make_entry("z", DEEP)], deep=nest_fields(9900)
    )
    for number, (name, write) in enumerate(writes.items()):
        lease = OneLease(client, NAMESPACE, f"refused-{number}")
        lease.create().expect(201)
        yield from _check_status(name, write(lease), 422)
    document = {"metadata": {"name": "created", "namespace": NAMESPACE}, "spec": {"holderIdentity": "a"}}
    body = protobuf.lease(document, [make_entry("z", nest_fields(UNSPEAKABLE[0]).encode())])
    yield from _check_status(
        "CREATE", client.send("POST", build_lease_path(NAMESPACE), body, media=protobuf.MEDIA), 422
    )


def _check_refused_in_system(client: ApiClient, namespace: str) -> Iterator[str]:
    """Take a lease in each way in which a client can send an entry."""
    deep = make_entry("z", json.loads(nest_fields(MAX_DEPTH + 1)))
    theft = {"op": "replace", "path": "/spec/holderIdentity", "value": "thief"}
    writes: dict[str, Write] = {
        f"{levels} levels in protobuf": lambda lease, levels=levels: _nest_deeply(  # type: ignore[misc]
            lease, levels, holderIdentity="thief"
        )
        for levels in (MAX_DEPTH + 1, *UNSPEAKABLE)
    }
    writes |= {
        "9 levels in JSON": lambda lease: lease.put(entries=lambda old: [*old, deep], holderIdentity="thief"),
        "9 levels by a merge patch": lambda lease: lease.patch(
            {"metadata": {"managedFields": [deep]}, "spec": {"holderIdentity": "thief"}}
        ),
        "9 levels by a JSON patch": lambda lease: lease.patch(
            [theft, {"op": "add", "path": "/metadata/managedFields/-", "value": deep}], JSON_PATCH
        ),
    }
    for number, (name, write) in enumerate(writes.items()):
        lease = OneLease(client, namespace, f"refused-{number}")
        lease.create().expect(201)
        lease.settle()
        yield from _check_status(f"{namespace}: {name}", write(lease), 422)


def _check_admitted(client: ApiClient, namespace: str) -> Iterator[str]:
    owned: dict[str, Any] = {"labels": {"a": "b"}, "ownerReferences": OWNERS[:3], "finalizers": ["a.b/c"]}
    writes: dict[str, Write] = {
        "a plain renewal": OneLease.put,
        "a plain renewal in protobuf": OneLease.put_protobuf,
        "a takeover": lambda lease: lease.put(holderIdentity="b"),
        "2,000 owners": lambda lease: lease.put({"ownerReferences": OWNERS}),
        "labels, owners and finalizers by server-side apply": lambda lease: lease.apply(owned),
        "managedFields emptied": lambda lease: lease.put(entries=lambda _: [{}]),
        f"{MAX_DEPTH} levels": lambda lease: _nest_deeply(lease, MAX_DEPTH),
    }
    for number, (name, write) in enumerate(writes.items()):
        lease = OneLease(client, namespace, f"admitted-{number}")
        lease.create().expect(201)
        lease.settle()
        yield from _check_status(f"{namespace}: {name}", write(lease), 200)


def _check_repair(client: ApiClient, lease: OneLease, version: str) -> Iterator[str]:
    """Repair the lease by PUT: an API server cannot apply a JSON patch to such a lease."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": FIRST, "leaseTransitions": 1}
    metadata = {"name": lease.name, "resourceVersion": version}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    renewal = client.send("PUT", lease.path, body | {"spec": spec | {"renewTime": NEXT}}, fieldManager="client")
    yield from _check_status("a plain renewal", renewal, 200)
    match = re.search(r'"resourceVersion":"(\d+)"', renewal.message)
    emptied: dict[str, Any] = {"managedFields": [{}], "resourceVersion": match[1] if match else version}
    body["metadata"] = metadata | emptied
    repaired = client.send("PUT", lease.path, body | {"spec": spec | {"renewTime": NEXT}}, fieldManager="client")
    yield from _check_status("managedFields emptied", repaired, 200)
    yield from _check_status("a patch after that", lease.patch({"metadata": {"labels": {"a": "b"}}}, MERGE), 200)
    yield from _check_status("DELETE", lease.delete(), 200)


def _count_checks(world: World, action: str, *, error: bool = False) -> float:
    """Return how often the API server did this by a policy; `error`: only because an expression erred."""
    samples = _CHECKS.findall(world.admin.send("GET", "/metrics").message)
    label = f'enforcement_action="{action}"'
    return sum(float(count) for labels, count in samples if label in labels and not (error and "no_error" in labels))


def _check_status(name: str, reply: Reply, status: int) -> Iterator[str]:
    if reply.status != status:
        yield f"{name}: HTTP {reply.status} {reply.message[:200]}"
