"""Electors of rare habits, each a short fixed history; all that is stored without us must be stored in each mode.

Strangers write between: metadata and values that the elector's own writes then meet, or undo.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lab.e2e.api_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, ApiClient, Reply
from lab.e2e.manifests import format_micro_time
from lab.e2e.world import build_lease_path
from tests import protobuf
from tests.law.modes import KEYS

DURATION: Final = 2
OWNER: Final = {"apiVersion": "v1", "kind": "Pod", "name": "checkout-0", "uid": "0c11", "blockOwnerDeletion": True}
GHOST: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "0c12"}
FILLINGS: Final[tuple[dict[str, Any], ...]] = (
    {"labels": {f"x{at}": "" for at in range(64)}},
    {"labels": None},
    {"annotations": {f"x{at}": "" for at in range(100)}},
    {"annotations": None},
    {"annotations": {"pad": "v" * 16_000}},
    {"finalizers": [f"a.b/c{at}" for at in range(8)]},
    {"finalizers": None},
    {"ownerReferences": [GHOST | {"uid": f"u{at}"} for at in range(8)]},
    {"ownerReferences": None},
)
"""Metadata as strangers change it between two writes of an elector."""


class Seat:
    """One lease in one place: its two electors, a stranger, and the outcomes of the electors' writes."""

    def __init__(self, namespace: str, name: str, clients: Mapping[str, ApiClient]) -> None:
        self.namespace, self.name, self.path = namespace, name, build_lease_path(namespace, name)
        self.electors = tuple(clients[f"system:serviceaccount:shop:checkout checkout-{at}"] for at in range(2))
        self.stranger = clients["system:serviceaccount:other:mallory mallory-0"]
        self.person = clients["mallory "]
        self.outcomes: list[tuple[str, int, str]] = []
        self._is_strangers = False

    def record(self, what: str, reply: Reply) -> Reply:
        """Record the outcome of an elector's write, unless a stranger is the stamped writer of the lease."""
        if not self._is_strangers:
            self.outcomes.append((what, reply.status, reply.message))
        return reply

    def create(self, metadata: Mapping[str, Any] = {}, by: int = 0, **spec: Any) -> Reply:
        """Create the lease as an elector."""
        body = {"metadata": {"name": self.name} | dict(metadata), "spec": make_claim(by) | spec}
        return self.record("creation", self.electors[by].send("POST", build_lease_path(self.namespace), body))

    def read(self) -> dict[str, Any]:
        """Return the lease as it is stored; an empty one if it is gone."""
        reply = self.person.send("GET", self.path)
        return copy.deepcopy(reply.body) if reply.status == 200 else {"metadata": {"name": self.name}, "spec": {}}

    def put(self, what: str, by: int = 0, metadata: Mapping[str, Any] = {}, **spec: Any) -> Reply:
        """Send a PUT over the stored lease; `...` leaves a field of spec out."""
        body = self.read()
        body["metadata"] |= metadata
        fields = body["spec"] | {"renewTime": format_micro_time()} | spec
        body["spec"] = {name: value for name, value in fields.items() if value is not ...}
        return self.record(what, self.electors[by].send("PUT", self.path, body))

    def patch(self, what: str, body: Any, media: str, by: int = 0, **query: Any) -> Reply:
        """Send a patch."""
        return self.record(what, self.electors[by].send("PATCH", self.path, body, media=media, **query))

    def fill(self, metadata: Mapping[str, Any] | None = None, **spec: Any) -> None:
        """Send a stranger's write, stored or not."""
        body = {"metadata": metadata or {}} | ({"spec": spec} if spec else {})
        reply = self.stranger.send("PATCH", self.path, body, media=MERGE)
        is_stamped = KEYS[0] in (reply.body.get("metadata", {}).get("annotations") or {})
        self._is_strangers = self._is_strangers or (bool(spec) and reply.status == 200 and is_stamped)


def make_claim(by: int = 0) -> dict[str, Any]:
    """Return the spec of a claim."""
    now = format_micro_time()
    return {
        "holderIdentity": f"checkout-{by}_1f0e",
        "leaseDurationSeconds": DURATION,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 0,
    }


def _renew_by_json_patch(seat: Seat) -> None:
    """Renew by JSON patches that test what they replace."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        test = {"op": "test", "path": "/spec/holderIdentity", "value": "checkout-0_1f0e"}
        renewal = {"op": "replace", "path": "/spec/renewTime", "value": format_micro_time()}
        seat.patch(f"renewal after {list(filling)}", [test, renewal], JSON_PATCH)
    seat.patch("release", [test, {"op": "replace", "path": "/spec/holderIdentity", "value": ""}], JSON_PATCH)
    free = {"op": "test", "path": "/spec/holderIdentity", "value": ""}
    claim = [{"op": "add", "path": f"/spec/{name}", "value": value} for name, value in make_claim(1).items()]
    seat.patch("claim", [free, *claim], JSON_PATCH, by=1)


def _renew_by_strategic_patch(seat: Seat) -> None:
    """Renew as kubectl patches, with the elector's own label each time."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        body = {"metadata": {"labels": {"mine": "1"}}, "spec": {"renewTime": format_micro_time()}}
        seat.patch(f"renewal after {list(filling)}", body, STRATEGIC)


def _apply_as_two_managers(seat: Seat) -> None:
    """Apply spec as one manager and a label as another, with and without force."""
    head: dict[str, Any] = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    for at, filling in enumerate(({}, *FILLINGS)):
        if at:
            seat.fill(filling)
        spec = {"metadata": {"name": seat.name}, "spec": make_claim()}
        seat.patch("apply of spec", head | spec, APPLY, fieldManager="elector", force=True)
        labels = {"metadata": {"name": seat.name, "labels": {"mine": str(at)}}}
        seat.patch("apply of a label", head | labels, APPLY, fieldManager="labels", force=at % 2 == 0)


def _write_protobuf(seat: Seat) -> None:
    """Write as the control plane's own electors do."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        body = seat.read()
        body["spec"]["renewTime"] = format_micro_time()
        entries = [one for one in body["metadata"].get("managedFields", []) if len(one.get("time", "")) == 20]
        sent = protobuf.lease(body, entries)
        seat.record(
            f"renewal after {list(filling)}",
            seat.electors[0].send("PUT", seat.path, sent, media=protobuf.MEDIA),
        )


def _omit_duration(seat: Seat) -> None:
    """Never set a duration; a stranger does."""
    seat.create(leaseDurationSeconds=None)
    for duration in (1, 600, 86_400):
        seat.fill(leaseDurationSeconds=duration)
        seat.put(f"renewal after a duration of {duration}", leaseDurationSeconds=...)
    seat.put("release", leaseDurationSeconds=..., holderIdentity="")


def _put_back_own_metadata(seat: Seat) -> None:
    """Send a finalizer, an owner, a label and a long annotation in each PUT; a successor brings its own."""
    seat.create({"finalizers": ["app.example/elector"], "ownerReferences": [OWNER]})
    for filling in FILLINGS:
        seat.fill(filling)
        seat.put(f"renewal after {list(filling)}", metadata=_make_own_metadata(seat, 0))
    time.sleep(DURATION + 2)
    for at in range(3):
        seat.put(f"takeover {at}", by=1, metadata=_make_own_metadata(seat, 1), **make_claim(1))
    seat.put("release", by=1, metadata=_make_own_metadata(seat, 1), holderIdentity="")


def _make_own_metadata(seat: Seat, by: int) -> dict[str, Any]:
    metadata = seat.read()["metadata"]
    finalizers, owners = metadata.get("finalizers", []), metadata.get("ownerReferences", [])
    mine = OWNER | {"name": f"checkout-{by}", "uid": f"0c1{by}"}
    is_deleted = "deletionTimestamp" in metadata
    others = [one for one in finalizers if one != "app.example/elector"] if is_deleted else finalizers
    return {
        "labels": metadata.get("labels", {}) | {"mine": str(by)},
        "annotations": metadata.get("annotations", {}) | {"state": "s" * 8000, "epoch": format_micro_time()},
        "finalizers": finalizers
        if "app.example/elector" in finalizers or is_deleted
        else [*others, "app.example/elector"],
        "ownerReferences": owners if mine in owners else [mine],
    }


def _renew_during_deletion(seat: Seat) -> None:
    """Renew a lease that is being deleted, with and without the finalizers of others, and release it in the end."""
    seat.create({"finalizers": ["app.example/elector"]})
    seat.stranger.send("DELETE", seat.path)
    seat.put("renewal of a lease that is deleted")
    if seat.read()["metadata"].get("deletionTimestamp"):
        seat.put("release without a finalizer", metadata={"finalizers": []}, holderIdentity="")
    else:
        seat.put("release", holderIdentity="")


def _send_no_metadata(seat: Seat) -> None:
    """Send a PUT with a name and a resourceVersion; or with empty and missing lists."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        body = seat.read()
        known = {"name": seat.name, "resourceVersion": body["metadata"].get("resourceVersion")}
        body["metadata"] = known | {"annotations": None, "labels": {}, "managedFields": None}
        body["spec"]["renewTime"] = format_micro_time()
        seat.record(f"renewal after {list(filling)}", seat.electors[0].send("PUT", seat.path, body))


def _resend_old_stamps(seat: Seat) -> None:
    """Keep the annotations that were read first, stamps and all, and send them each time."""
    seat.create()
    seat.put("renewal")
    first = seat.read()["metadata"].get("annotations", {})
    for filling in FILLINGS:
        seat.fill(filling)
        seat.put(f"renewal after {list(filling)}", metadata={"annotations": first | {"mine": "1"}})
    seat.put("renewal with an empty stamp", metadata={"annotations": dict.fromkeys(KEYS, "")})


def _try_first(seat: Seat) -> None:
    """Send a dry run before each write, and ask for strict validation of fields."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        queries: tuple[dict[str, Any], ...] = ({"dryRun": "All"}, {"fieldValidation": "Strict"})
        for query in queries:
            body = {"spec": {"renewTime": format_micro_time()}}
            seat.patch(f"renewal after {list(filling)} {query}", body, MERGE, **query)


def _generate_name(seat: Seat) -> None:
    """Create the lease by generateName, and keep the generated name."""
    body = {"metadata": {"generateName": f"{seat.name}-"}, "spec": make_claim()}
    created = seat.record("creation", seat.electors[0].send("POST", build_lease_path(seat.namespace), body))
    seat.name = created.body.get("metadata", {}).get("name", seat.name)
    seat.path = build_lease_path(seat.namespace, seat.name)
    for filling in FILLINGS:
        seat.fill(filling)
        seat.put(f"renewal after {list(filling)}")
    time.sleep(DURATION + 2)
    seat.put("takeover", by=1, **make_claim(1))


def _restart_container(seat: Seat) -> None:
    """Restart the container in the same pod: another identity, which waits for the previous one."""
    seat.create()
    time.sleep(DURATION + 2)
    for at in range(2):
        seat.put(f"takeover {at}", holderIdentity="checkout-0_2a2a", leaseTransitions=1)
    seat.put("release", holderIdentity="", leaseDurationSeconds=1)


def _remove_spec(seat: Seat) -> None:
    """Release by removing the fields, from a lease with a label."""
    seat.create({"labels": {"a": "b"}})
    seat.put("release", holderIdentity=..., leaseDurationSeconds=..., acquireTime=..., renewTime=...)
    seat.put("claim", by=1, **make_claim(1))


ODD: Final[dict[str, Callable[[Seat], None]]] = {
    "json-patch": _renew_by_json_patch,
    "strategic-patch": _renew_by_strategic_patch,
    "two-managers": _apply_as_two_managers,
    "protobuf": _write_protobuf,
    "no-duration": _omit_duration,
    "own-metadata": _put_back_own_metadata,
    "being-deleted": _renew_during_deletion,
    "no-metadata": _send_no_metadata,
    "old-stamps": _resend_old_stamps,
    "dry-runs": _try_first,
    "generated-name": _generate_name,
    "new-container": _restart_container,
    "no-spec": _remove_spec,
}


def find_differences(namespaces: Mapping[str, tuple[str, Mapping[str, ApiClient]]], without_us: str) -> Iterator[str]:
    """Play each in every place; yield what is stored in the place without us and refused in another.

    `namespaces` are the place's namespace and clients, by the name of its mode.
    """
    for name, play in ODD.items():
        seats = {mode: Seat(namespace, f"odd-{name}", clients) for mode, (namespace, clients) in namespaces.items()}
        for seat in seats.values():
            play(seat)
        alone = {what for what, status, _ in seats[without_us].outcomes if status in (200, 201)}
        for mode, seat in seats.items():
            for what, status, message in seat.outcomes:
                if status not in (200, 201) and what in alone:
                    yield f"{mode}: {name}: {what}: HTTP {status} {message[:300]}"
