"""Electors of rare habits, each a short fixed history: what is stored without us must be stored in each mode.

Strangers write between: metadata and values that the elector's own writes then meet, or undo.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lab.e2e.api_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, ApiClient, Reply
from lab.e2e.manifests import micro_time
from lab.e2e.world import leases
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
    """One lease in one place: its two electors and a stranger, and what the electors' writes came to."""

    def __init__(self, namespace: str, name: str, clients: Mapping[str, ApiClient]) -> None:
        self.namespace, self.name, self.path = namespace, name, leases(namespace, name)
        self.electors = tuple(clients[f"system:serviceaccount:shop:checkout checkout-{at}"] for at in range(2))
        self.stranger = clients["system:serviceaccount:other:mallory mallory-0"]
        self.person = clients["mallory "]
        self.outcomes: list[tuple[str, int, str]] = []
        self._is_strangers = False

    def note(self, what: str, reply: Reply) -> Reply:
        """Keep what a write of an elector came to, unless a stranger is the stamped writer of the lease."""
        if not self._is_strangers:
            self.outcomes.append((what, reply.status, reply.message))
        return reply

    def create(self, metadata: Mapping[str, Any] = {}, by: int = 0, **spec: Any) -> Reply:
        """The creation by an elector."""
        body = {"metadata": {"name": self.name} | dict(metadata), "spec": make_claim(by) | spec}
        return self.note("creation", self.electors[by].send("POST", leases(self.namespace), body))

    def stored(self) -> dict[str, Any]:
        """The lease as it is stored; an empty one if it is gone."""
        found = self.person.send("GET", self.path)
        return copy.deepcopy(found.body) if found.status == 200 else {"metadata": {"name": self.name}, "spec": {}}

    def put(self, what: str, by: int = 0, metadata: Mapping[str, Any] = {}, **spec: Any) -> Reply:
        """A PUT over what is stored; `...` leaves a field of spec out."""
        body = self.stored()
        body["metadata"] |= metadata
        fields = body["spec"] | {"renewTime": micro_time()} | spec
        body["spec"] = {name: value for name, value in fields.items() if value is not ...}
        return self.note(what, self.electors[by].send("PUT", self.path, body))

    def patch(self, what: str, body: Any, media: str, by: int = 0, **query: Any) -> Reply:
        """A patch."""
        return self.note(what, self.electors[by].send("PATCH", self.path, body, media=media, **query))

    def fill(self, metadata: Mapping[str, Any] | None = None, **spec: Any) -> None:
        """A stranger's write, stored or not."""
        body = {"metadata": metadata or {}} | ({"spec": spec} if spec else {})
        reply = self.stranger.send("PATCH", self.path, body, media=MERGE)
        is_stamped = KEYS[0] in (reply.body.get("metadata", {}).get("annotations") or {})
        self._is_strangers = self._is_strangers or (bool(spec) and reply.status == 200 and is_stamped)


def make_claim(by: int = 0) -> dict[str, Any]:
    """The spec of a claim."""
    now = micro_time()
    return {
        "holderIdentity": f"checkout-{by}_1f0e",
        "leaseDurationSeconds": DURATION,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": 0,
    }


def _by_json_patch(seat: Seat) -> None:
    """It tests what it replaces."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        test = {"op": "test", "path": "/spec/holderIdentity", "value": "checkout-0_1f0e"}
        renewal = {"op": "replace", "path": "/spec/renewTime", "value": micro_time()}
        seat.patch(f"renewal after {list(filling)}", [test, renewal], JSON_PATCH)
    seat.patch("release", [test, {"op": "replace", "path": "/spec/holderIdentity", "value": ""}], JSON_PATCH)
    free = {"op": "test", "path": "/spec/holderIdentity", "value": ""}
    claim = [{"op": "add", "path": f"/spec/{name}", "value": value} for name, value in make_claim(1).items()]
    seat.patch("claim", [free, *claim], JSON_PATCH, by=1)


def _by_strategic_patch(seat: Seat) -> None:
    """As kubectl patches; its own label each time."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        body = {"metadata": {"labels": {"mine": "1"}}, "spec": {"renewTime": micro_time()}}
        seat.patch(f"renewal after {list(filling)}", body, STRATEGIC)


def _by_two_managers(seat: Seat) -> None:
    """It applies spec as one manager and a label as another, with and without force."""
    head: dict[str, Any] = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    for at, filling in enumerate(({}, *FILLINGS)):
        if at:
            seat.fill(filling)
        spec = {"metadata": {"name": seat.name}, "spec": make_claim()}
        seat.patch("apply of spec", head | spec, APPLY, fieldManager="elector", force=True)
        labels = {"metadata": {"name": seat.name, "labels": {"mine": str(at)}}}
        seat.patch("apply of a label", head | labels, APPLY, fieldManager="labels", force=at % 2 == 0)


def _by_protobuf(seat: Seat) -> None:
    """As the control plane's own electors send."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        body = seat.stored()
        body["spec"]["renewTime"] = micro_time()
        entries = [one for one in body["metadata"].get("managedFields", []) if len(one.get("time", "")) == 20]
        sent = protobuf.lease(body, entries)
        seat.note(
            f"renewal after {list(filling)}",
            seat.electors[0].send("PUT", seat.path, sent, media=protobuf.MEDIA),
        )


def _without_a_duration(seat: Seat) -> None:
    """It never sets a duration; a stranger does."""
    seat.create(leaseDurationSeconds=None)
    for duration in (1, 600, 86_400):
        seat.fill(leaseDurationSeconds=duration)
        seat.put(f"renewal after a duration of {duration}", leaseDurationSeconds=...)
    seat.put("release", leaseDurationSeconds=..., holderIdentity="")


def _puts_its_own_back(seat: Seat) -> None:
    """Finalizer, owner, label and a long annotation, in each PUT; a successor brings its own."""
    seat.create({"finalizers": ["app.example/elector"], "ownerReferences": [OWNER]})
    for filling in FILLINGS:
        seat.fill(filling)
        seat.put(f"renewal after {list(filling)}", metadata=_own(seat, 0))
    time.sleep(DURATION + 2)
    for at in range(3):
        seat.put(f"takeover {at}", by=1, metadata=_own(seat, 1), **make_claim(1))
    seat.put("release", by=1, metadata=_own(seat, 1), holderIdentity="")


def _own(seat: Seat, by: int) -> dict[str, Any]:
    found = seat.stored()["metadata"]
    finalizers, owners = found.get("finalizers", []), found.get("ownerReferences", [])
    mine = OWNER | {"name": f"checkout-{by}", "uid": f"0c1{by}"}
    is_deleted = "deletionTimestamp" in found
    kept = [one for one in finalizers if one != "app.example/elector"] if is_deleted else finalizers
    return {
        "labels": found.get("labels", {}) | {"mine": str(by)},
        "annotations": found.get("annotations", {}) | {"state": "s" * 8000, "epoch": micro_time()},
        "finalizers": finalizers
        if "app.example/elector" in finalizers or is_deleted
        else [*kept, "app.example/elector"],
        "ownerReferences": owners if mine in owners else [mine],
    }


def _while_it_is_deleted(seat: Seat) -> None:
    """The lease is being deleted: it renews with and without the finalizers of others, and lets go in the end."""
    seat.create({"finalizers": ["app.example/elector"]})
    seat.stranger.send("DELETE", seat.path)
    seat.put("renewal of a lease that is deleted")
    if seat.stored()["metadata"].get("deletionTimestamp"):
        seat.put("release without a finalizer", metadata={"finalizers": []}, holderIdentity="")
    else:
        seat.put("release", holderIdentity="")


def _sends_no_metadata(seat: Seat) -> None:
    """Its PUT has a name and a resourceVersion; or empty and missing lists."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        body = seat.stored()
        known = {"name": seat.name, "resourceVersion": body["metadata"].get("resourceVersion")}
        body["metadata"] = known | {"annotations": None, "labels": {}, "managedFields": None}
        body["spec"]["renewTime"] = micro_time()
        seat.note(f"renewal after {list(filling)}", seat.electors[0].send("PUT", seat.path, body))


def _brings_old_stamps(seat: Seat) -> None:
    """It keeps the annotations that it read first, stamps and all, and sends them each time."""
    seat.create()
    seat.put("renewal")
    first = seat.stored()["metadata"].get("annotations", {})
    for filling in FILLINGS:
        seat.fill(filling)
        seat.put(f"renewal after {list(filling)}", metadata={"annotations": first | {"mine": "1"}})
    seat.put("renewal with an empty stamp", metadata={"annotations": dict.fromkeys(KEYS, "")})


def _tries_first(seat: Seat) -> None:
    """A dry run before each write, and strict validation of fields."""
    seat.create()
    for filling in FILLINGS:
        seat.fill(filling)
        queries: tuple[dict[str, Any], ...] = ({"dryRun": "All"}, {"fieldValidation": "Strict"})
        for query in queries:
            body = {"spec": {"renewTime": micro_time()}}
            seat.patch(f"renewal after {list(filling)} {query}", body, MERGE, **query)


def _generates_its_name(seat: Seat) -> None:
    """Created by generateName, which it then keeps."""
    body = {"metadata": {"generateName": f"{seat.name}-"}, "spec": make_claim()}
    created = seat.note("creation", seat.electors[0].send("POST", leases(seat.namespace), body))
    seat.name = created.body.get("metadata", {}).get("name", seat.name)
    seat.path = leases(seat.namespace, seat.name)
    for filling in FILLINGS:
        seat.fill(filling)
        seat.put(f"renewal after {list(filling)}")
    time.sleep(DURATION + 2)
    seat.put("takeover", by=1, **make_claim(1))


def _starts_again(seat: Seat) -> None:
    """Its container starts again in the same pod: another identity, which waits for the one before."""
    seat.create()
    time.sleep(DURATION + 2)
    for at in range(2):
        seat.put(f"takeover {at}", holderIdentity="checkout-0_2a2a", leaseTransitions=1)
    seat.put("release", holderIdentity="", leaseDurationSeconds=1)


def _removes_its_spec(seat: Seat) -> None:
    """A release that removes the fields, from a lease with a label."""
    seat.create({"labels": {"a": "b"}})
    seat.put("release", holderIdentity=..., leaseDurationSeconds=..., acquireTime=..., renewTime=...)
    seat.put("claim", by=1, **make_claim(1))


ODD: Final[dict[str, Callable[[Seat], None]]] = {
    "json-patch": _by_json_patch,
    "strategic-patch": _by_strategic_patch,
    "two-managers": _by_two_managers,
    "protobuf": _by_protobuf,
    "no-duration": _without_a_duration,
    "own-metadata": _puts_its_own_back,
    "being-deleted": _while_it_is_deleted,
    "no-metadata": _sends_no_metadata,
    "old-stamps": _brings_old_stamps,
    "dry-runs": _tries_first,
    "generated-name": _generates_its_name,
    "new-container": _starts_again,
    "no-spec": _removes_its_spec,
}


def differences(namespaces: Mapping[str, tuple[str, Mapping[str, ApiClient]]], without_us: str) -> Iterator[str]:
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
