"""A fence with a token on two API servers: a watch that is held, and whoever tampers with tokens.

The second API server does not learn of leases while its watch is held, so it admits a deposed leader for as long.
"""

import base64
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

from lab.e2e.api_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, ApiClient, Reply
from lab.e2e.fence.facts import SETTLING, Fact
from lab.e2e.fence.plane import TwoServers
from lab.e2e.fence.trial import FIRST, RBAC, SECOND, Operator, export_fence
from lab.e2e.kubectl import Kubectl
from lab.e2e.manifests import format_micro_time
from lab.e2e.stamp_cases import SUFFIX
from lab.e2e.world import PROJECT
from tests import protobuf
from tests.waiting import wait_for

PLACE: Final = "token"
KEY: Final = f"{PLACE}.lease-webhook/token-{SUFFIX}"
FORGED: Final = {KEY: "9" * 18}
MOST: Final = 262_144
"""Bytes of annotations that an object may have."""
RESOURCES: Final = (
    "configmaps",
    "deployments.apps",
    "deployments.apps/status",
    "deployments.apps/scale",
    "widgets.example.com",
    "widgets.example.com/status",
    "gadgets.example.com",
    "services",
    "jobs.batch",
    "pods",
    "pods/binding",
    "pods/ephemeralcontainers",
    "pods/resize",
    "resourceclaims.resource.k8s.io",
    "resourceclaims.resource.k8s.io/status",
    "ingresses.networking.k8s.io",
    "ingresses.networking.k8s.io/status",
    "customresourcedefinitions.apiextensions.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io/status",
    "certificatesigningrequests.certificates.k8s.io",
    "certificatesigningrequests.certificates.k8s.io/approval",
)
GROUP: Final = "/apis/example.com/v1"


class Kind(Struct, frozen=True):
    """A resource: the path of its objects, what one contains beside its metadata, and a change of it."""

    name: str
    path: str
    content: dict[str, Any]
    change: dict[str, Any]
    below: str = ""


_POD: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
_DEPLOYMENT: Final[dict[str, Any]] = {
    "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _POD}
}
KINDS: Final = (
    Kind("ConfigMap", f"/api/v1/namespaces/{PLACE}/configmaps", {"data": {"k": "0"}}, {"data": {"k": "v"}}),
    Kind("Deployment", f"/apis/apps/v1/namespaces/{PLACE}/deployments", _DEPLOYMENT, {"spec": {"paused": True}}),
    Kind("Widget", f"{GROUP}/namespaces/{PLACE}/widgets", {"spec": {}}, {"spec": {"replicas": 7}}),
    Kind("Gadget", f"{GROUP}/gadgets", {"spec": {}}, {"spec": {"replicas": 7}}),
)
STATUS: Final = (
    Kind("Deployment", KINDS[1].path, _DEPLOYMENT, {"status": {"observedGeneration": 9}}, "/status"),
    Kind("Widget", KINDS[2].path, {"spec": {}}, {"status": {"seen": 9}}, "/status"),
)
_JOB: Final = {"spec": {"containers": [{"name": "main", "image": "none"}], "restartPolicy": "Never"}}
UNLISTED: Final = (
    Kind("Service", f"/api/v1/namespaces/{PLACE}/services", {"spec": {"ports": [{"port": 80}]}}, {}, "/status"),
    Kind("Job", f"/apis/batch/v1/namespaces/{PLACE}/jobs", {"spec": {"template": _JOB}}, {}, "/status"),
)
"""Their status is not in the list of the fence, and stores what is written into metadata."""
_RESULT: Final = {"request": "one", "driver": "d.example.com", "pool": "p", "device": "d"}
_CLAIM: Final = {"spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "example.com"}}]}}}
_POD_SPEC: Final[dict[str, Any]] = {
    "spec": {
        "serviceAccountName": "operator",
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "none"}],
    }
}
PODS: Final = f"/api/v1/namespaces/{PLACE}/pods"
RESET: Final = (
    Kind("Widget", KINDS[2].path, {"spec": {}}, {"status": {"seen": 0}}, "/status"),
    Kind(
        "ResourceClaim",
        f"/apis/resource.k8s.io/v1/namespaces/{PLACE}/resourceclaims",
        _CLAIM,
        {"status": {"allocation": {"devices": {"results": [_RESULT]}}}},
        "/status",
    ),
    Kind(
        "Pod",
        PODS,
        _POD_SPEC,
        {"spec": {"ephemeralContainers": [{"name": "more", "image": "none"}]}},
        "/ephemeralcontainers",
    ),
    Kind(
        "Pod",
        PODS,
        _POD_SPEC,
        {"spec": {"containers": [{"name": "main", "image": "none", "resources": {}}]}},
        "/resize",
    ),
)
"""The API server puts back all metadata of these subresources after it was stamped."""
_INGRESS: Final = {"spec": {"defaultBackend": {"service": {"name": "any", "port": {"number": 80}}}}}
_CONDITION: Final = {"type": "Approved", "status": "True", "reason": "Any"}
STORING: Final = (
    Kind(
        "Ingress",
        f"/apis/networking.k8s.io/v1/namespaces/{PLACE}/ingresses",
        _INGRESS,
        {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}},
        "/status",
    ),
    Kind(
        "CustomResourceDefinition",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {},
        {"status": {"storedVersions": ["v1"]}},
        "/status",
    ),
    Kind(
        "CertificateSigningRequest",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {},
        {"status": {"conditions": [_CONDITION]}},
        "/approval",
    ),
)
"""The API server stores the annotations of these subresources."""
_STORED: Final = ("x", "widgets.example.com", "x")
"""The name of an object of each of them."""
OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "5b0c"}
METADATA: Final[dict[str, Any]] = {
    "label": {"labels": {"late": "1"}},
    "annotation": {"annotations": {"late": "1"}},
    "finalizer": {"finalizers": ["example.com/late"]},
    "owner that does not exist": {"ownerReferences": [OWNER]},
}


class Bench:
    """A namespace with stamps, a fence with a token, and the clients of its two pods by both API servers."""

    def __init__(
        self, plane: TwoServers, kubectl: Kubectl, namespace: str = PLACE, *, fenced: bool = True, **keys: Any
    ) -> None:
        self.plane, self.kubectl, self.namespace = plane, kubectl, namespace
        self.admin = plane.create_admin_client(plane.port)
        self.operator = Operator(plane, self.admin, namespace)
        self.operator.label_namespace()
        own = {"writers": [f"{namespace}/operator"], "resources": ["configmaps"], "namespaces": [namespace]}
        self.keys: dict[str, Any] = {**own, "token": True} | keys
        if fenced:
            self.apply()
        self.leases, _, self.lease_name = self.operator.lease.rpartition("/")

    def apply(self, **keys: Any) -> None:
        """Apply the fence, with changes."""
        text = export_fence(self.namespace, f"{self.namespace}/operator", suffix=SUFFIX, **(self.keys | keys))
        self.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=text)
        time.sleep(SETTLING)

    def create_pod_client(self, name: str, port: int = 0) -> ApiClient:
        """Return a client of a pod by the first API server, or by the one of a port."""
        return ApiClient(port or self.plane.port, self.plane.authority.file, name, token=self.operator.tokens[name])

    def create_lease(self, client: ApiClient, **spec: Any) -> Reply:
        """Create the lease; the holder's identity says nothing about its pod."""
        fields = {"holderIdentity": "5b0c", "leaseDurationSeconds": 3600, "renewTime": format_micro_time()} | spec
        return self._settle(client.send("POST", self.leases, {"metadata": {"name": self.lease_name}, "spec": fields}))

    def write_lease(self, client: ApiClient, *, settle: bool = True, **spec: Any) -> Reply:
        """Renew the lease; `spec` takes or releases it."""
        body = {"spec": {"renewTime": format_micro_time()} | spec}
        reply = client.send("PATCH", self.operator.lease, body, media=MERGE)
        return self._settle(reply) if settle else reply

    def move(self, old: ApiClient, new: ApiClient, holder: str) -> None:
        """Release the lease as the old leader, and take it as the new one."""
        self.write_lease(old, holderIdentity="")
        self.write_lease(new, holderIdentity=holder)

    def _settle(self, reply: Reply) -> Reply:
        reply.expect()
        time.sleep(0.5)
        return reply


def install_stamps(kubectl: Kubectl) -> None:
    """Apply deploy/stamp with the suffix of these runs."""
    text = (PROJECT / "deploy" / "stamp" / "policies.yaml").read_text(encoding="utf-8")
    manifest = text.replace("expression: SUFFIX", f"expression: \"'{SUFFIX}'\"")
    kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=manifest)


def read_token(document: dict[str, Any], key: str = KEY) -> str:
    """Return the token of an object, "" without one."""
    return str((document.get("metadata", {}).get("annotations") or {}).get(key, ""))


def check_tokens(plane: TwoServers, kubectl: Kubectl) -> Iterator[Fact]:
    """Check single requests by both API servers, and what stays stored."""
    admin = plane.create_admin_client(plane.port)
    _allow_more(admin)
    install_stamps(kubectl)
    bench = Bench(plane, kubectl, resources=list(RESOURCES))
    again = kubectl.run("diff", "--server-side", "-f", "-", manifest=_read_text(bench))
    yield Fact("applied twice by server-side apply, nothing changes", not again.status, again.stdout + again.stderr)
    largest = kubectl.run("apply", "--server-side", "--dry-run=server", "-f", "-", manifest=_find_largest())
    yield Fact("the largest fence with a token and a clock is accepted", not largest.status, largest.stderr)
    yield from _check_term(bench)
    yield from _check_two_appliers(bench)
    yield from _check_metadata_that_is_put_back(bench)
    yield from _check_metadata_that_is_stored(bench)
    yield from _check_edges_of_room(bench)
    yield from _check_bindings(bench)
    yield from _check_unlisted_status(bench)
    yield from _check_stall(bench)
    yield from _check_tampering(bench)
    yield from _check_unreadable_time(bench)
    yield from _check_without_policies(bench)
    yield from _check_recreation(bench)
    yield from _check_expired(bench)


def _check_term(bench: Bench) -> Iterator[Fact]:
    a, b = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND)
    bench.create_lease(a)
    for kind in KINDS:
        for name in ("x", "y", "untouched"):
            yield _check(f"{kind.name}: the leader creates", _create(a, kind, name), 201)
        yield _check(f"{kind.name}: a follower updates", _change(b, kind, "x"), 403)
    for kind in STATUS:
        yield _check(f"status of a {kind.name}: a follower", _change(b, kind, "x"), 403)
    yield _check("scale: a follower", _scale(b), 403)
    lease = bench.operator.lease
    first = bench.admin.get(lease)["metadata"]
    bench.write_lease(a)
    for kind in KINDS:
        before = bench.admin.get(f"{kind.path}/x")
        for media in (MERGE, APPLY):
            body = _make_object(kind, "x", {}) if media == APPLY else kind.content
            query: dict[str, Any] = {"fieldManager": "op", "force": True} if media == APPLY else {}
            sent = [a.send("PATCH", f"{kind.path}/x", body, media=media, **query) for _ in range(2)]
            same = sent[0].body["metadata"]["resourceVersion"] == sent[1].body["metadata"]["resourceVersion"]
            yield Fact(f"{kind.name}: the same again after a renewal stores nothing ({media})", same)
        yield Fact(f"{kind.name}: one token in a term", read_token(before) == read_token(sent[1].body) != "")
    term = bench.admin.get(lease)["metadata"]["annotations"][f"lease-webhook/term-{SUFFIX}"]
    token = read_token(bench.admin.get(f"{KINDS[0].path}/x"))
    yield Fact("the token is the term", int(token) == int(term) == int(first["resourceVersion"]) - 1, token)
    yield _check("scale: the leader", _scale(a), 200)
    for kind in STATUS:
        yield _check(f"status of a {kind.name}: the leader", _change(a, kind, "x"), 200)


def _check_two_appliers(bench: Bench) -> Iterator[Fact]:
    """Check two managers that apply parts of one object, without force: the token is owned by neither."""
    a, kind = bench.create_pod_client(FIRST), KINDS[0]
    for number in range(2):
        for manager in ("one", "two"):
            body = _make_object(kind, "shared", {"data": {manager: str(number)}})
            reply = a.send("PATCH", f"{kind.path}/shared", body, media=APPLY, fieldManager=manager)
            yield Fact("apply without force: no conflict", reply.status in (200, 201), reply.message)
            _change(a, kind, "shared", {"data": {"three": str(number)}}).expect()
    stored = bench.admin.get(f"{kind.path}/shared")
    owned = [one["manager"] for one in stored["metadata"]["managedFields"] if KEY in str(one)]
    yield Fact("the token has no owner, so no apply removes it", bool(read_token(stored)) and not owned, str(owned))


def _check_unlisted_status(bench: Bench) -> Iterator[Fact]:
    """Check that a pod that does not lead writes metadata by a status that is not listed."""
    a, b = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND)
    for kind in UNLISTED:
        yield _check(f"{kind.name}: the leader creates", _create(a, kind, "x"), 201)
        token = read_token(bench.admin.get(f"{kind.path}/x"))
        for name, metadata in METADATA.items():
            reply = _change(b, kind, "x", {"metadata": metadata})
            yield _check(f"status of a {kind.name}, not listed: a follower writes a {name}", reply, 403)
        forged = _change(b, kind, "x", {"metadata": {"annotations": FORGED}})
        yield _check(
            f"status of a {kind.name}, not listed: a follower forges the token, which is put back", forged, 200
        )
        stored = bench.admin.get(f"{kind.path}/x")["metadata"]
        is_left = any(
            name in stored.get(part, ())
            for part, name in (("labels", "late"), ("annotations", "late"), ("finalizers", "example.com/late"))
        )
        is_token_unchanged = read_token({"metadata": stored}) == token != ""
        clean = is_token_unchanged and not is_left and "ownerReferences" not in stored
        yield Fact(f"{kind.name}: nothing of it is stored, and the token stays", clean, str(stored))
        label = {"metadata": METADATA["label"]}
        yield _check(f"status of a {kind.name}, not listed: the leader", _change(a, kind, "x", label), 200)


def _check_metadata_that_is_put_back(bench: Bench) -> Iterator[Fact]:
    """Check leaders that write nothing but a subresource by which no token is stored."""
    a, b = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND)
    for kind in RESET:
        name = kind.below[1:]
        claim = f"{name} of a {kind.name} that no leader has written"
        _create(bench.admin, kind, name).expect(201)
        yield _check(f"{claim}: the leader", _change(a, kind, name), 200)
        yield _check(f"{claim}: a follower", _change(b, kind, name), 403)
        yield Fact(f"{claim}: it has no token", not read_token(bench.admin.get(f"{kind.path}/{name}")))
        label = {"metadata": {"labels": {"written": "by-a"}}}
        a.send("PATCH", f"{kind.path}/{name}", label, media=MERGE).expect(200)
        yield _check(f"{claim}, then its main resource: the leader", _change(a, kind, name), 200)
    tokens = {kind.below: read_token(bench.admin.get(f"{kind.path}/{kind.below[1:]}")) for kind in RESET}
    bench.move(a, b, "66ff")
    for kind in RESET:
        name = kind.below[1:]
        claim = f"{name} of a {kind.name} of an earlier term"
        yield _check(f"{claim}: the leader", _change(b, kind, name), 200)
        yield _check(f"{claim}: the former leader", _change(a, kind, name), 403)
        forged = _change(b, kind, name, kind.change | {"metadata": {"annotations": FORGED}})
        yield _check(f"{claim}: the leader forges the token", forged, 200)
        stored = read_token(bench.admin.get(f"{kind.path}/{name}"))
        yield Fact(f"{claim}: the token stays", stored == tokens[kind.below] != "", stored)
    label = {"metadata": {"labels": {"written": "by-b"}}}
    stored = read_token(b.send("PATCH", f"{RESET[0].path}/status", label, media=MERGE).expect(200))
    yield Fact("a write of the main resource raises it", stored > tokens["/status"], stored)
    bench.move(b, a, "5b0c")


def _create_signing_request() -> dict[str, Any]:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "any")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    text = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    return {"spec": {"request": text, "signerName": "example.com/any", "usages": ["client auth"]}}


def _check_metadata_that_is_stored(bench: Bench) -> Iterator[Fact]:
    """Check subresources by which a token is stored, which is required there."""
    a, b = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND)
    contents = (_INGRESS, None, _create_signing_request())
    for kind, name, content in zip(STORING, _STORED, contents, strict=True):
        if content:
            bench.admin.send("POST", kind.path, {"metadata": {"name": name}, **content}).expect(201)
        claim = f"{kind.below[1:]} of a {kind.name}"
        yield _check(f"{claim}: a follower", _change(b, kind, name), 403)
        yield _check(f"{claim}: the leader", _change(a, kind, name), 200)
        stored = read_token(bench.admin.get(f"{kind.path}/{name}"))
        yield Fact(f"{claim}: its token is stored", bool(stored), stored)


def _check_edges_of_room(bench: Bench) -> Iterator[Fact]:
    """Check objects whose annotations leave just room for a token, and those with one more."""
    a, kind, eve = bench.create_pod_client(FIRST), KINDS[0], _create_account(bench, "mallory")
    most = MOST - len(KEY) - 18 - len("fill")
    fills: dict[str, tuple[dict[str, str], bool]] = {
        f"{count} annotations": ({f"a{at}": "" for at in range(count)}, count <= 1000) for count in (999, 1000, 1001)
    }
    fills |= {f"{size - most:+} bytes": ({"fill": "x" * size}, size <= most) for size in (most - 1, most, most + 1)}
    for number, (name, (annotations, has_room)) in enumerate(fills.items()):
        metadata = {"name": f"room-{number}", "annotations": annotations}
        path, body = f"{kind.path}/room-{number}", {"metadata": metadata}
        for who, client in (("another", eve), ("the leader", a)):
            yield _check(f"room, {name}: {who} creates", client.send("POST", kind.path, body), 201)
            yield _check(f"room, {name} by {who}: PATCH", _change(a, kind, f"room-{number}"), 200)
            yield _check(f"room, {name} by {who}: PUT", a.send("PUT", path, body | {"data": {"a": "b"}}), 200)
            applied = _make_object(kind, f"room-{number}", {"data": {"c": "d"}})
            reply = a.send("PATCH", path, applied, media=APPLY, fieldManager="op", force=True)
            yield _check(f"room, {name} by {who}: apply", reply, 200)
            forged = _change(a, kind, f"room-{number}", {"metadata": {"annotations": {KEY: "0" * 18}}})
            yield _check(f"room, {name} by {who}: the leader forges", forged, 200)
            stored = read_token(bench.admin.get(path))
            yield Fact(f"room, {name} by {who}: a token only where it fits", bool(stored) == has_room, stored)
            bench.admin.send("DELETE", path).expect(200)


def _check_bindings(bench: Bench) -> Iterator[Fact]:
    """Check both ways to bind a pod, which copy the annotations of a Binding into it."""
    a, b, eve = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND), _create_account(bench, "binder")
    kind = RESET[2]
    for at, forged in enumerate(("9" * 18, "0" * 18, "")):
        for way in ("bindings", "pods/binding"):
            for number, (who, client, status) in enumerate((("not fenced", eve, 201), ("the leader", a, 201))):
                name = f"pod-{at}-{way[:1]}-{number}"
                token = read_token(_create(a, kind, name).expect(201))
                reply = _bind(client, way, name, {KEY: forged})
                yield _check(f"{way}, {who}, with a forged token", reply, status)
                pod = bench.admin.get(f"{PODS}/{name}")
                bound = pod["spec"].get("nodeName") == "node"
                yield Fact(
                    f"{way}, {who}: bound, and the token stays", bound and read_token(pod) == token, str(pod)[:400]
                )
                label = {"metadata": {"labels": {"a": "b"}}}
                reply = a.send("PATCH", f"{PODS}/{name}", label, media=MERGE)
                yield _check(f"{way}, {who}: the leader goes on", reply, 200)
    for way in ("bindings", "pods/binding"):
        name = f"unbound-{way[:1]}"
        _create(a, kind, name).expect(201)
        yield _check(f"{way}: a follower", _bind(b, way, name, {}), 403, "is held by")
        yield _check(f"{way}: the leader, without annotations", _bind(a, way, name, {}), 201)


def _check_stall(bench: Bench) -> Iterator[Fact]:
    """Check an API server that does not learn that the lease moved."""
    a, b, old = (
        bench.create_pod_client(FIRST),
        bench.create_pod_client(SECOND),
        bench.create_pod_client(FIRST, bench.plane.second_port),
    )
    wait_for("the second API server", lambda: _change(old, KINDS[0], "x").status == 200, 60)
    with bench.plane.stall():
        bench.move(a, b, "77aa")
        for kind in KINDS:
            for name in ("x", "y"):
                yield _check(f"{kind.name}: the new leader updates", _change(b, kind, name), 200)
        yield _check("status of a Deployment: the new leader", _change(b, STATUS[0], "untouched"), 200)
        for kind in KINDS:
            for name, reply in _send_stale_writes(old, kind):
                yield _check(
                    f"{kind.name}, watch held, the old leader: {name}", reply, 403, "its watch of the lease is late"
                )
        for kind, name in zip(STATUS, ("untouched", "x"), strict=True):
            reply = _change(old, kind, name)
            yield _check(f"status of a {kind.name}, watch held, the old leader", reply, 403, "its watch of the lease")
        yield _check("LIMIT: scale, watch held, the old leader", _scale(old, 3), 200)
        label = {"metadata": {"labels": {"written": "by-b"}}}
        for way, falls in (("bindings", False), ("pods/binding", True)):
            path = f"{PODS}/late-{way[:1]}"
            _create(b, RESET[2], f"late-{way[:1]}").expect(201)
            token = read_token(bench.admin.get(path))
            yield _check(f"LIMIT: {way}, watch held, the old leader", _bind(old, way, f"late-{way[:1]}", {}), 201)
            stored = read_token(bench.admin.get(path))
            claim = "LIMIT: pods/binding puts back the token of the old term" if falls else "bindings leave the token"
            yield Fact(claim, "" < stored < token if falls else stored == token, stored)
            status = 200 if falls else 403
            yield _check(f"{claim}: the old leader then", old.send("PATCH", path, label, media=MERGE), status)
        kind = RESET[0]
        yield _check(
            "LIMIT: status of a Widget of an earlier term, watch held, the old leader",
            _change(old, kind, "status", {"status": {"seen": 1}}),
            200,
        )
        yield _check("LIMIT: what the new leader has not written", _change(old, KINDS[0], "untouched"), 200)
        yield _check("LIMIT: a new name", _create(old, KINDS[0], "new"), 201)
        yield _check("the new leader then", _change(b, KINDS[0], "new"), 200)
        yield _check("and the old one", _change(old, KINDS[0], "new", {"data": {"k": "late"}}), 403)
    wait_for("the watch", lambda: "is held by 77aa" in _change(old, KINDS[0], "x").message, 60)
    other = bench.create_pod_client(SECOND, bench.plane.second_port)
    yield _check("the new leader by the second API server", _change(other, KINDS[0], "x"), 200)


def _send_stale_writes(client: ApiClient, kind: Kind) -> Iterator[tuple[str, Reply]]:
    path, late = f"{kind.path}/x", {"metadata": {"labels": {"late": "1"}}}
    yield "PATCH", client.send("PATCH", path, late, media=MERGE)
    yield (
        "JSON patch",
        client.send("PATCH", path, [{"op": "add", "path": "/metadata/labels", "value": {}}], media=JSON_PATCH),
    )
    if kind.path.startswith("/api"):
        media = STRATEGIC if "example.com" not in kind.path else MERGE
        yield "kubectl edit", client.send("PATCH", path, late, media=media)
    stored = client.get(path)
    yield "PUT", client.send("PUT", path, stored | {"metadata": stored["metadata"] | {"labels": {"late": "1"}}})
    bare = {"name": "x", "resourceVersion": stored["metadata"]["resourceVersion"], "labels": {"late": "1"}}
    yield "PUT without annotations", client.send("PUT", path, stored | {"metadata": bare})
    yield (
        "apply",
        client.send("PATCH", path, _make_object(kind, "x", kind.change), media=APPLY, fieldManager="l", force=True),
    )
    for name, annotations in (("a forged token", FORGED), ("without the token", {KEY: None}), ("with none", None)):
        yield name, client.send("PATCH", path, {"metadata": {"annotations": annotations}}, media=MERGE)
    yield "DELETE", client.send("DELETE", path)
    yield "DELETE of the collection", client.send("DELETE", kind.path, fieldSelector="metadata.name=y")


def _check_tampering(bench: Bench) -> Iterator[Fact]:
    """Check tokens written by somebody who is not fenced; the leader goes on, and the token stays as it was."""
    b, eve = bench.create_pod_client(SECOND), _create_account(bench, "eve")
    kind = KINDS[0]
    token = read_token(bench.admin.get(f"{kind.path}/x"))
    put = {"metadata": {"name": "x"}, "data": {"by": "eve"}}
    ways: dict[str, Callable[[], Reply]] = {
        "forges": lambda: eve.send("PATCH", f"{kind.path}/x", {"metadata": {"annotations": FORGED}}, media=MERGE),
        "removes": lambda: eve.send("PATCH", f"{kind.path}/x", {"metadata": {"annotations": {KEY: None}}}, media=MERGE),
        "removes all": lambda: eve.send("PATCH", f"{kind.path}/x", {"metadata": {"annotations": None}}, media=MERGE),
        "replaces": lambda: eve.send("PUT", f"{kind.path}/x", put),
        "applies": lambda: eve.send(
            "PATCH",
            f"{kind.path}/x",
            _make_object(kind, "x", {"metadata": {"name": "x", "annotations": FORGED}}),
            media=APPLY,
            fieldManager="eve",
            force=True,
        ),
        "applies without it": lambda: eve.send(
            "PATCH", f"{kind.path}/x", _make_object(kind, "x", {}), media=APPLY, fieldManager="eve", force=True
        ),
        "writes words": lambda: eve.send(
            "PATCH", f"{kind.path}/x", {"metadata": {"annotations": {KEY: "soon"}}}, media=MERGE
        ),
        "writes 200,000 characters": lambda: eve.send(
            "PATCH", f"{kind.path}/x", {"metadata": {"annotations": {KEY: "9" * 200_000}}}, media=MERGE
        ),
        "replaces by protobuf": lambda: eve.send(
            "PUT", f"{kind.path}/x", protobuf.config_map("x", PLACE, {"by": "eve"}), media=protobuf.MEDIA
        ),
        "fills the annotations": lambda: eve.send(
            "PATCH",
            f"{kind.path}/x",
            {"metadata": {"annotations": {"fill": "x" * (MOST - len(KEY) - 22)}}},
            media=MERGE,
        ),
    }
    for name, way in ways.items():
        yield _check(f"not fenced, {name}: allowed", way(), 200)
        stored = read_token(bench.admin.get(f"{kind.path}/x"))
        yield Fact(f"not fenced, {name}: the token is kept", stored == token, stored[:40])
        yield _check(f"not fenced, {name}: the leader goes on", _change(b, kind, "x", {"data": {"after": name}}), 200)
    b.send("PATCH", f"{kind.path}/x", {"metadata": {"annotations": {"fill": None}}}, media=MERGE).expect()
    own = _change(b, kind, "x", {"metadata": {"annotations": FORGED}})
    yield Fact("the leader forges: its term is stored", read_token(own.body) == token, read_token(own.body))
    yield _check(
        "by protobuf, the leader",
        b.send("PUT", f"{kind.path}/x", protobuf.config_map("x", PLACE, {"a": "b"}), media=protobuf.MEDIA),
        200,
    )
    yield Fact("by protobuf, the token is kept", read_token(bench.admin.get(f"{kind.path}/x")) == token)
    reply = eve.send("POST", kind.path, {"metadata": {"name": "planted", "annotations": FORGED}})
    yield Fact("not fenced, creates with a token: none is stored", reply.status == 201 and not read_token(reply.body))
    fills = {"full": {"fill": "x" * (MOST - 4)}, "crowded": {f"a{at}": "" for at in range(40_000)}}
    for name, annotations in fills.items():
        reply = eve.send("POST", kind.path, {"metadata": {"name": name, "annotations": annotations}})
        yield _check(f"LIMIT: an object with {name} annotations: the leader writes it", _change(b, kind, name), 200)
        yield Fact(f"LIMIT: it has no token ({name})", not read_token(bench.admin.get(f"{kind.path}/{name}")))
    reply_of_leader = b.send("POST", kind.path, {"metadata": {"name": "own", "annotations": fills["full"]}})
    yield _check("the leader itself fills the annotations", reply_of_leader, 201)
    zero = bench.admin.send("PATCH", f"{kind.path}/x", {"metadata": {"annotations": {KEY: "0" * 18}}}, media=MERGE)
    yield Fact("system:masters sets it to zero", read_token(zero.body) == "0" * 18, read_token(zero.body))
    reply_of_admin = bench.admin.send("PATCH", f"{kind.path}/x", {"metadata": {"annotations": FORGED}}, media=MERGE)
    yield Fact(
        "system:masters sets it to no other value",
        read_token(reply_of_admin.body) == "0" * 18,
        read_token(reply_of_admin.body),
    )
    yield _check("the leader stamps it again", _change(b, kind, "x"), 200)
    edited = bench.kubectl.run("-n", PLACE, "annotate", "configmap", "x", "note=1", "--overwrite")
    yield Fact("kubectl annotate", not edited.status and read_token(bench.admin.get(f"{kind.path}/x")) == token)


def _check_unreadable_time(bench: Bench) -> Iterator[Fact]:
    """Check an object in which somebody who is not fenced left a time that no client reads."""
    a, b = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND)
    eve, kind = _create_account(bench, "eve", exists=True), KINDS[0]
    path = f"{kind.path}/timed"
    put = {"metadata": {"name": "timed"}, "data": {"k": "w"}}
    owned: dict[str, Any] = {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:z": {}}}}}
    entry = {"manager": "z", "operation": "Apply", "apiVersion": "v1", "time": "9999-12-31T23:59:59-01:00"} | owned
    token = read_token(_create(b, kind, "timed").expect(201))
    for who, client in (("not fenced, replaces it", eve), ("the leader of the next term, PUT", a)):
        stored = eve.get(path)
        stored["metadata"]["managedFields"].append(entry)
        eve.send("PUT", path, stored).expect(200)
        if client == a:
            bench.move(b, a, "5b0c")
        yield _check(f"a time of year 10000 in managedFields: {who}", client.send("PUT", path, put), 200)
        document = bench.admin.get(path)
        is_right = (read_token(document) > token) if client == a else (read_token(document) == token)
        is_clean = "10000-" not in str(document) and len(document["metadata"]["managedFields"]) > 1
        yield Fact(f"a time of year 10000 in managedFields: {who}: its token, and no such time", is_right and is_clean)
    bench.move(a, b, "77aa")


def _check_without_policies(bench: Bench) -> Iterator[Fact]:
    """Check that a stamped token is required, and that one planted while nothing was in force harms one object."""
    b, kind, eve = bench.create_pod_client(SECOND), KINDS[0], _create_account(bench, "eve", exists=True)
    name = f"fence-{PLACE}"
    bench.kubectl.run_checked("delete", "mutatingadmissionpolicybinding", f"{name}.token", f"{name}.kept")
    time.sleep(SETTLING)
    yield _check(
        "without the stamping policy: refused",
        _change(b, kind, "x", {"data": {"k": "1"}, "metadata": {"annotations": {KEY: None}}}),
        403,
        "is not in force",
    )
    for stored, of_it in zip(STORING, _STORED, strict=True):
        unstamped = _change(b, stored, of_it, stored.change | {"metadata": {"labels": {"late": "1"}}})
        claim = f"without the stamping policy: {stored.below[1:]} of a {stored.name}: refused"
        yield _check(claim, unstamped, 403, "is not in force")
    eve.send("PATCH", f"{kind.path}/y", {"metadata": {"annotations": FORGED}}, media=MERGE).expect()
    eve.send("PATCH", f"{kind.path}/untouched", {"metadata": {"annotations": {KEY: "soon"}}}, media=MERGE).expect()
    bench.apply()
    yield _check("planted in words: the leader writes", _change(b, kind, "untouched"), 200)
    yield _check(
        "LIMIT: planted as a number: refused", _change(b, kind, "y"), 403, "was written in term 999999999999999999"
    )
    repaired = bench.kubectl.run("-n", PLACE, "annotate", "--overwrite", "configmap", "y", f"{KEY}={'0' * 18}")
    yield Fact("repaired by system:masters", not repaired.status, repaired.stderr)
    yield _check("planted as a number and repaired: the leader writes", _change(b, kind, "y"), 200)


def _check_recreation(bench: Bench) -> Iterator[Fact]:
    """Check a lease that is deleted and created: terms go on growing, renewed or not."""
    a, b, kind = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND), KINDS[0]
    tokens = [read_token(bench.admin.get(f"{kind.path}/x"))]
    bench.admin.send("DELETE", bench.operator.lease).expect(200)
    time.sleep(0.5)
    yield _check("no lease: refused", _change(b, kind, "x"), 422, "no params found")
    bench.create_lease(a)
    tokens.append(read_token(_change(a, kind, "x").body))
    yield _check("created again by the other pod: the former leader", _change(b, kind, "x"), 403)
    bench.write_lease(a, holderIdentity=None)
    bench.write_lease(b, holderIdentity="88bb")
    tokens.append(read_token(_change(b, kind, "x").body))
    yield Fact("terms grow over deletion and creation", "" < tokens[0] < tokens[1] < tokens[2], str(tokens))
    labels = f"/api/v1/namespaces/{PLACE}"
    bench.admin.send("PATCH", labels, {"metadata": {"labels": {"lease-webhook/stamp": None}}}, media=MERGE).expect()
    bench.admin.send("DELETE", bench.operator.lease).expect(200)
    bench.create_lease(b)
    reply = _change(b, kind, "x")
    yield _check("a lease of a namespace without the label: refused", reply, 403, "no writer of it is stamped")
    bench.admin.send(
        "PATCH", labels, {"metadata": {"labels": {"lease-webhook/stamp": "required"}}}, media=MERGE
    ).expect()
    time.sleep(SETTLING)
    bench.write_lease(b)
    yield _check("labeled again and renewed: allowed", _change(b, kind, "x"), 200)


def _check_expired(bench: Bench) -> Iterator[Fact]:
    """Check an expired lease that nobody took."""
    b, kind = bench.create_pod_client(SECOND), KINDS[0]
    bench.apply(expired="deny")
    bench.write_lease(b, leaseDurationSeconds=3)
    yield _check("clock: within the duration", _change(b, kind, "x", {"data": {"c": "1"}}), 200)
    eve = _create_account(bench, "eve", exists=True)
    stored = bench.admin.get(f"{kind.path}/y")
    entry = stored["metadata"]["managedFields"][0] | {"manager": "eve", "time": "2036-01-01T00:00:00Z"}
    stored["metadata"]["managedFields"].append(entry)
    eve.send("PUT", f"{kind.path}/y", stored).expect()
    bench.write_lease(b)
    yield _check("clock: times that others planted count for nothing", _change(b, kind, "y", {"data": {"c": "1"}}), 200)
    yield _check("clock: a time that others planted and removed counts for nothing", _put_older_copy(b, eve, kind), 200)
    time.sleep(6)
    for name, reply in (
        ("PATCH", _change(b, kind, "x", {"data": {"c": "2"}})),
        (
            "apply",
            b.send(
                "PATCH",
                f"{kind.path}/x",
                _make_object(kind, "x", {"data": {"d": "1"}}),
                media=APPLY,
                fieldManager="o",
                force=True,
            ),
        ),
        ("CREATE", _create(b, kind, "late")),
        ("what others planted a time in", _change(b, kind, "y", {"data": {"c": "2"}})),
    ):
        yield _check(f"clock: expired, and no one took it: {name}", reply, 403, "renew the lease first")
    yield _check("LIMIT: clock: a DELETE has no time", b.send("DELETE", f"{kind.path}/y"), 200)
    bench.apply(expired="warn")
    reply = _change(b, kind, "x", {"data": {"c": "3"}})
    warned = reply.status == 200 and "renew the lease first" in "".join(reply.warnings)
    yield Fact("clock: warn", warned, f"{reply.status} {reply.message} {reply.warnings}")
    bench.apply(expired="deny")
    bench.write_lease(b)
    yield _check("clock: renewed", _change(b, kind, "x", {"data": {"c": "4"}}), 200)


def _put_older_copy(leader: ApiClient, eve: ApiClient, kind: Kind) -> Reply:
    """Have the leader write what it read before somebody removed a planted time, without a resourceVersion."""
    path = f"{kind.path}/y"
    copy = leader.get(path)
    del copy["metadata"]["resourceVersion"]
    stored = eve.get(path)
    stored["metadata"]["managedFields"] = [{}]
    eve.send("PUT", path, stored).expect()
    time.sleep(1)
    return leader.send("PUT", path, copy | {"data": {"c": "1.5"}})


# ---- requests --------------------------------------------------------------------------------------------------------


def _create(client: ApiClient, kind: Kind, name: str) -> Reply:
    version = (
        kind.path.removeprefix("/apis/").removeprefix("/api/").partition("/namespaces")[0].removesuffix("/gadgets")
    )
    body = {"apiVersion": version, "kind": kind.name, "metadata": {"name": name}, **kind.content}
    return client.send("POST", kind.path, body)


def _change(client: ApiClient, kind: Kind, name: str, change: dict[str, Any] | None = None) -> Reply:
    return client.send("PATCH", f"{kind.path}/{name}{kind.below}", change or kind.change, media=MERGE)


def _bind(client: ApiClient, way: str, name: str, annotations: dict[str, str]) -> Reply:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": annotations},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node"},
    }
    path = f"/api/v1/namespaces/{PLACE}/bindings" if way == "bindings" else f"{PODS}/{name}/binding"
    return client.send("POST", path, body)


def _scale(client: ApiClient, replicas: int = 2) -> Reply:
    return client.send("PATCH", f"{KINDS[1].path}/x/scale", {"spec": {"replicas": replicas}}, media=MERGE)


def _make_object(kind: Kind, name: str, content: dict[str, Any]) -> dict[str, Any]:
    version = {"ConfigMap": "v1", "Deployment": "apps/v1"}.get(kind.name, "example.com/v1")
    return {"apiVersion": version, "kind": kind.name, "metadata": {"name": name}, **content}


def _check(claim: str, reply: Reply, status: int, words: str = "") -> Fact:
    return Fact(claim, reply.status == status and words in reply.message, f"{reply.status} {reply.message[:400]}")


# ---- preparations ----------------------------------------------------------------------------------------------------


def _allow_more(admin: ApiClient) -> None:
    """Allow custom resources, and all that these requests write."""
    names = {"Widget": "Namespaced", "Gadget": "Cluster"}
    for kind, scope in names.items():
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        spec = {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        }
        body = {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}
        admin.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body).expect(201)
        wait_for(plural, lambda plural=plural: admin.send("GET", f"{GROUP}/{plural}").status == 200, 30)
    everything = {
        "apiGroups": [
            *("", "apps", "batch", "example.com", "coordination.k8s.io", "resource.k8s.io"),
            *("networking.k8s.io", "apiextensions.k8s.io", "certificates.k8s.io"),
        ],
        "resources": ["*"],
        "verbs": ["*"],
    }
    admin.send("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "token-trial"}, "rules": [everything]}).expect()
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": f"system:serviceaccounts:{PLACE}"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "token-trial"}
    body = {"metadata": {"name": "token-trial"}, "subjects": [group], "roleRef": role}
    admin.send("POST", f"{RBAC}/clusterrolebindings", body).expect()


def _create_account(bench: Bench, name: str, *, exists: bool = False) -> ApiClient:
    core = f"/api/v1/namespaces/{bench.namespace}/serviceaccounts"
    if not exists:
        bench.admin.send("POST", core, {"metadata": {"name": name}}).expect(201)
    answer = bench.admin.send("POST", f"{core}/{name}/token", {"spec": {"expirationSeconds": 3600}}).expect()
    return bench.plane.create_token_client(name, str(answer["status"]["token"]))


def _read_text(bench: Bench) -> str:
    return export_fence(bench.namespace, f"{bench.namespace}/operator", suffix=SUFFIX, **bench.keys)


def _find_largest() -> str:
    return export_fence(
        "f" * 57,
        f"{'n' * 60}/{'l' * 240}",
        suffix="s" * 32,
        token=True,
        expired="deny",
        writers=[f"{'n' * 60}/{number:03}{'a' * 240}" for number in range(32)],
        resources=[f"r{number}.{'g' * 60}.example.com/status" for number in range(128)],
        namespaces=[f"{'s' * 60}{number:03}" for number in range(128)],
    )
