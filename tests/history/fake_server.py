"""A clock, leases, and what an API server would show of them: a watch, an audit log, a dump. The truth is the script.

server = FakeServer()
a = server.elector("a", "shop/db")
a.lead(60)              # creates or takes the lease and renews it every 2 s
server.audit_log()      # as JSON lines
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from tests.factories import Document, Tweak, changed
from webhook.kubernetes.times import format_micro_time, format_time

SECOND = 1_000_000
START = 1_795_000_000 * SECOND
"""2026-11-18T11:06:40Z."""


class FakeServer(Struct):
    """`now` in microseconds since 1970; `events` are (time, type, object), `log` audit events."""

    now: int = START
    leases: dict[str, Document] = field(default_factory=dict)
    events: list[tuple[int, str, Document]] = field(default_factory=list)
    log: list[Document] = field(default_factory=list)
    revision: int = 100
    nodes: dict[str, str] = field(default_factory=dict)
    """By pod."""
    uids: dict[str, str] = field(default_factory=dict)
    """By pod."""

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)

    def elector(self, name: str, lease: str, **settings: Any) -> "Elector":
        namespace, _, _ = lease.partition("/")
        user = settings.pop("user", f"system:serviceaccount:{namespace}:{lease.partition('/')[2]}")
        return Elector(self, lease, f"{name}_1", settings.pop("pod", name), user, **settings)

    def write(self, lease: str, spec: Document, manager: str, user: str, pod: str) -> None:
        """Store a spec as an update of the lease, or create it."""
        namespace, _, name = lease.partition("/")
        stored = self.leases.get(lease)
        before = stored["spec"] if stored else {}
        self.revision += 1
        changed = {key for key in spec if spec[key] != before.get(key)}
        entries = _update_owners(
            stored["metadata"]["managedFields"] if stored else [], manager, changed, set(spec), self.now
        )
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": stored["metadata"]["uid"] if stored else f"uid-{self.revision}",
            "resourceVersion": str(self.revision),
            "creationTimestamp": stored["metadata"]["creationTimestamp"] if stored else format_time(self.now),
            "managedFields": entries,
        }
        document = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec}
        self.leases[lease] = document
        self.events.append((self.now, "MODIFIED" if stored else "ADDED", document))
        self.log_request(lease, "update" if stored else "create", user, pod, document)
        if stored:
            self.log[-1]["objectRef"]["resourceVersion"] = stored["metadata"]["resourceVersion"]

    def delete(self, lease: str, user: str = "admin", pod: str = "") -> None:
        document = self.leases.pop(lease)
        self.events.append((self.now, "DELETED", document))
        self.log_request(lease, "delete", user, pod, {"kind": "Status", "apiVersion": "v1"})

    def clear(
        self, namespace: str, user: str = "namespace-controller", selector: str = "", chosen: Sequence[str] = ()
    ) -> None:
        """Delete all leases of a namespace with one request, or those that a selector has chosen."""
        if not selector:
            chosen = [one for one in self.leases if one.startswith(f"{namespace}/")]
        items = [self.leases.pop(lease) for lease in chosen]
        self.events += [(self.now, "DELETED", one) for one in items]
        self.log_request(f"{namespace}/", "deletecollection", user, "", {"kind": "LeaseList", "items": items})
        self.log[-1]["requestURI"] += selector
        del self.log[-1]["objectRef"]["name"]

    def delete_with_finalizer(
        self, lease: str, user: str = "admin", remover: str = "janitor", seconds: float = 4
    ) -> None:
        """Delete a lease that has a finalizer, which someone else removes later."""
        document = self.leases.pop(lease)
        marks = {"deletionTimestamp": format_time(self.now), "deletionGracePeriodSeconds": 0}
        metadata = {**document["metadata"], **marks, "finalizers": ["example.com/guard"]}
        self.revision += 1
        marked = {**document, "metadata": {**metadata, "resourceVersion": str(self.revision)}}
        self.events.append((self.now, "MODIFIED", marked))
        self.log_request(lease, "delete", user, "", marked)
        self.wait(seconds)
        self.revision += 1
        freed = {**document, "metadata": {**metadata, "resourceVersion": str(self.revision), "finalizers": []}}
        self.log_request(lease, "patch", remover, "", freed)
        self.revision += 1
        gone = {**marked, "metadata": {**marked["metadata"], "resourceVersion": str(self.revision)}}
        self.events.append((self.now, "DELETED", gone))

    def log_request(
        self, lease: str, verb: str, user: str, pod: str, response: Document, code: int = 200, took: float = 0.004
    ) -> None:
        """An event of the audit log about a request that is answered now."""
        namespace, _, name = lease.partition("/")
        status: dict[str, Any] = {"metadata": {}, "code": code}
        if code >= 400:
            status |= {"status": "Failure", "message": response.get("message", "")}
        self.log.append(
            {
                "kind": "Event",
                "apiVersion": "audit.k8s.io/v1",
                "level": "RequestResponse",
                "stage": "ResponseComplete",
                "requestURI": f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}",
                "verb": verb,
                "user": {"username": user, "extra": self._extra(pod)},
                "sourceIPs": [_address(pod)],
                "userAgent": "test",
                "objectRef": {
                    "resource": "leases",
                    "namespace": namespace,
                    "name": name,
                    "apiGroup": "coordination.k8s.io",
                    "apiVersion": "v1",
                },
                "responseStatus": status,
                "responseObject": response,
                "requestReceivedTimestamp": format_micro_time(self.now - int(took * SECOND)),
                "stageTimestamp": format_micro_time(self.now),
            }
        )

    def delete_pod(self, pod: str, *tweaks: Tweak, uid: str = "", is_eviction: bool = False) -> None:
        """An event of the audit log about the deletion of a pod of shop, or its eviction, which was accepted."""
        below = "/eviction" if is_eviction else ""
        event: Document = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "stage": "ResponseComplete",
            "requestURI": f"/api/v1/namespaces/shop/pods/{pod}{below}",
            "verb": "create" if is_eviction else "delete",
            "user": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
            "objectRef": {"resource": "pods", "namespace": "shop", "name": pod, "apiVersion": "v1"}
            | ({"subresource": "eviction"} if is_eviction else {}),
            "responseStatus": {"metadata": {}, "code": 201 if is_eviction else 200},
            "responseObject": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": pod, "uid": uid}},
            "requestReceivedTimestamp": format_micro_time(self.now - 4000),
            "stageTimestamp": format_micro_time(self.now),
        }
        self.log.append(changed(event, *tweaks))

    def _extra(self, pod: str) -> Document:
        named = {"pod-name": pod, "node-name": self.nodes.get(pod, ""), "pod-uid": self.uids.get(pod, "")}
        return {f"authentication.kubernetes.io/{key}": [one] for key, one in named.items() if one}

    def watch(self, *, managed_fields: bool = True) -> bytes:
        """Return what `kubectl get -w -o json --output-watch-events` prints."""
        events = ((kind, one if managed_fields else strip_stamps(one)) for _, kind, one in self.events)
        return b"".join(json.dumps({"type": kind, "object": one}, indent=4).encode() + b"\n" for kind, one in events)

    def audit_log(self, *, metadata_only: bool = False) -> bytes:
        """The audit log, at one of two levels."""
        return b"".join(
            json.dumps(_event(one, metadata_only), separators=(",", ":")).encode() + b"\n" for one in self.log
        )

    def dump(self, *, managed_fields: bool = True) -> bytes:
        """Return what `kubectl get leases -A -o json` prints."""
        items = [one if managed_fields else strip_stamps(one) for one in self.leases.values()]
        return json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=4).encode()


class Elector(Struct):
    """One replica; `ahead` is how far its clock is ahead, in seconds."""

    server: FakeServer
    lease: str
    identity: str
    pod: str
    user: str
    duration: int = 15
    retry: float = 2.0
    ahead: float = 0.0
    manager: str = "operator"

    def take(self, **changes: Any) -> None:
        """Create the lease, or write itself into it, whoever has it."""
        stored = self.server.leases.get(self.lease)
        transitions = stored["spec"]["leaseTransitions"] + 1 if stored else 0
        self._write({"acquireTime": self._time(), "leaseTransitions": transitions, **changes})

    def renew(self, **changes: Any) -> None:
        spec = self.server.leases[self.lease]["spec"]
        self._write({"acquireTime": spec["acquireTime"], "leaseTransitions": spec["leaseTransitions"], **changes})

    def lead(self, seconds: float) -> None:
        """Take the lease unless it has it, and renew it for so long."""
        stored = self.server.leases.get(self.lease)
        if stored is None or stored["spec"]["holderIdentity"] != self.identity:
            self.take()
        for _ in self.ticks(seconds):
            self.renew()

    def ticks(self, seconds: float) -> Iterator[None]:
        end = self.server.now + int(seconds * SECOND)
        while self.server.now + int(self.retry * SECOND) <= end:
            self.server.wait(self.retry)
            yield

    def release(self) -> None:
        now = self._time()
        spec = self.server.leases[self.lease]["spec"]
        transitions = spec["leaseTransitions"]
        self._write(
            {
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": transitions,
            }
        )

    def ask(self, *, is_shown: bool = False) -> None:
        """Read the lease, as a follower does; `is_shown`: the log has the answer."""
        shown = self.server.leases[self.lease] if is_shown else {}
        self.server.log_request(self.lease, "get", self.user, self.pod, shown)

    def fail(self, code: int, message: str = "", took: float = 0.004, *, verb: str = "update") -> None:
        """Try to renew, or to do something else, in vain."""
        self.server.log_request(self.lease, verb, self.user, self.pod, {"message": message}, code, took)

    def fail_as(self, identity: str, code: int, message: str = "") -> None:
        """Try to write a name into the lease in vain, with a log that has the objects of requests."""
        self.fail(code, message)
        stored = self.server.leases[self.lease]
        self.server.log[-1]["requestObject"] = stored | {"spec": stored["spec"] | {"holderIdentity": identity}}

    def fail_to_create(self) -> None:
        """Ask for the lease, which is not there, and try to create it without the right: the log has no name then."""
        self.server.log_request(self.lease, "get", self.user, self.pod, {"message": "not found"}, 404)
        self.server.wait(0.02)
        message = f'leases.coordination.k8s.io is forbidden: User "{self.user}" cannot create resource "leases" in API'
        self.server.log_request(self.lease, "create", self.user, self.pod, {"message": message}, 403)
        del self.server.log[-1]["objectRef"]["name"]

    def fail_unauthenticated(self, verb: str = "update") -> None:
        """Try to renew, or to read, with a token that is not accepted; the API server does not know whose it is."""
        self.server.log_request(self.lease, verb, "", "", {"message": "Unauthorized"}, 401)
        self.server.log[-1] |= {"stage": "ResponseStarted", "user": {}, "sourceIPs": [_address(self.pod)]}

    def _write(self, changes: Document) -> None:
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.duration,
            "renewTime": self._time(),
            **changes,
        }
        self.server.write(self.lease, spec, self.manager, self.user, self.pod)

    def _time(self) -> str:
        return format_micro_time(self.server.now - 3000 + int(self.ahead * SECOND))


def together(seconds: float, *electors: Elector) -> None:
    """Several leaders at work at once, every 2 s."""
    server = electors[0].server
    for elector in electors:
        if elector.lease not in server.leases:
            elector.take()
    for _ in electors[0].ticks(seconds):
        for elector in electors:
            elector.renew()


def _update_owners(
    entries: list[Document], manager: str, changed: set[str], kept: set[str], now: int
) -> list[Document]:
    """ManagedFields after a write, as the field manager keeps them: each changed field has one owner."""
    owners: list[Document] = []
    mine: set[str] = set(changed)
    for entry in entries:
        fields = {key[2:] for key in entry["fieldsV1"]["f:spec"]}
        if entry["manager"] == manager:
            mine |= fields & kept
        elif rest := (fields - changed) & kept:
            owners.append({**entry, "fieldsV1": {"f:spec": {f"f:{key}": {} for key in sorted(rest)}}})
    owners.append(
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "coordination.k8s.io/v1",
            "time": format_time(now),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {f"f:{key}": {} for key in sorted(mine)}},
        }
    )
    return owners


def _address(pod: str) -> str:
    number = zlib.crc32(pod.encode())
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _event(event: Document, metadata_only: bool) -> Document:
    if not metadata_only:
        return event
    return {key: value for key, value in {**event, "level": "Metadata"}.items() if key != "responseObject"}


def strip_stamps(document: Document) -> Document:
    """Return an object as kubectl shows it by default."""
    return {
        **document,
        "metadata": {key: value for key, value in document["metadata"].items() if key != "managedFields"},
    }


def hide_responses(server: FakeServer) -> FakeServer:
    """Make the log one at level Request, which has what clients sent and not what was stored."""
    for event in server.log:
        sent: dict[str, Any] = event.get("requestObject") or event["responseObject"]
        version = event["objectRef"].get("resourceVersion")
        if "metadata" in sent:  # a read sends nothing, and a deletion no object
            metadata = {key: sent["metadata"][key] for key in ("name", "namespace")}
            event["requestObject"] = {**sent, "metadata": metadata | ({"resourceVersion": version} if version else {})}
        event["level"] = "Request"
        del event["responseObject"]
    return server
