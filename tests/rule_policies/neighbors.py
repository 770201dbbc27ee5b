"""Writes beside one of which a rule speaks: another writer, another place, a value put back or left out.

Of some of them the rule speaks, too, of the others it must be silent, and its CEL with it.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import combinations, product
from typing import Any, Final

from tests.factories import KEEPER, STAMP_ENTRY, Document, Tweak, changed, drop, put
from tests.rules.findings import by_node, by_service_account, by_user, in_namespace

STAMP_SUFFIX: Final = "1a2b3c4d"
MAX_PAIRS: Final = 100
POD_UID: Final = "pod-1"
NUMBERS: Final[Mapping[str, Callable[[int], int]]] = {
    "a little more": lambda number: number + 1,
    "a little less": lambda number: max(1, number - 1),
    "twice as much": lambda number: 2 * number,
    "far more": lambda number: min(2_000_000_000, 1000 * number + 1000),
}
WRITTEN: Final = {
    "object": {"an hour later": "2025-11-20T13:00:00Z"},
    "oldObject": {"a day before": "2025-11-19T12:00:00Z"},
}
"""The new object is written after the old one."""
TIMES: Final = {
    "long ago": "2025-11-20T09:00:00.000000Z",
    "the next day": "2025-11-21T13:00:00.000000Z",
    "later on the next day": "2025-11-21T18:30:00.000000Z",
    "of the year 0": "0000-01-01T00:00:00.000000Z",
}
OWNER: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout", "uid": "1"}
NODE: Final = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "2"}
OWNERS: Final = {
    "a node as owner": [NODE],
    "an owner and a node": [OWNER, NODE],
    "a node of another name": [NODE | {"name": "n2"}],
    "another kind of the node's name": [NODE | {"kind": "Pod"}],
    "an owner of another kind": [OWNER | {"kind": "StatefulSet"}],
    "an owner of another name": [OWNER | {"name": "other"}],
    "an owner of another uid": [OWNER | {"uid": "3"}],
    "an owner of another group": [OWNER | {"apiVersion": "batch/v1"}],
    "an owner of another version": [OWNER | {"apiVersion": "apps/v2"}],
}
HOLDERS: Final = {
    "no holder": "",
    "another holder": "rival-5b8f7d-lk2mn_77aa",
    "the pod's name": "checkout-6d5f9c-x2x8p",
    "a holder with a UUID": "checkout-6d5f9c-x2x8p-0e7b6f1c-4d6a-4b0e-9a53-3c1f6a3b2d10",
    "a holder of a name that only begins so": "checkout-6d5f9c-x2x8p-1",
    "a holder by hand": "manual-1",
    "the node's name": "n1",
    "a long holder": "checkout-6d5f9c-x2x8p_" + "x" * 300,
    "a very long holder": "checkout-6d5f9c-x2x8p_" + "x" * 5000,
    "a holder with a control character": "checkout-6d5f9c-x2x8p_\x07",
    "a holder with a mark": "checkout-6d5f9c-x2x8p_\u200b",
}
WRITERS: Final[Mapping[str, Tweak]] = {
    "by the pod": by_service_account("shop", "checkout", "checkout-6d5f9c-x2x8p"),
    "by its account without a pod": by_service_account("shop", "checkout"),
    "by another pod": by_service_account("shop", "other", "other-0"),
    "by another namespace": by_service_account("guest", "intruder", "intruder-0"),
    "by a node": by_node("n1"),
    "by another node": by_node("n2"),
    "by a person": by_user("ann", "devs"),
    "by the API server": by_user("system:apiserver"),
    "by the garbage collector": by_service_account("kube-system", "generic-garbage-collector"),
}


PLACES: Final[Mapping[str, Tweak]] = {
    "in the namespace of nodes": in_namespace("kube-node-lease", "n1"),
    "under a node's name": in_namespace("shop", "n1"),
    "in the namespace of API servers": in_namespace("kube-system", "apiserver-7x"),
    "of another name": in_namespace("shop", "other"),
}


def list_neighbors(review: Document) -> Iterator[tuple[str, Document]]:
    """Yield writes that differ from one by a thing, or by its writer, or by both and its place, with what differs."""
    changes = dict(_list_changes(review["request"]))
    for name, change in changes.items():
        # What is not there cannot be left out.
        with suppress(KeyError, IndexError, TypeError, ValueError):
            yield name, changed(review, change)
    yield from _change_two(review, changes)
    if review["request"]["operation"] == "CREATE":
        yield "an edit of what was there", changed(review, _make_edit)
    owners = {name: change for name, change in changes.items() if "node" in name}
    for (where, place), (who, writer) in product(PLACES.items(), WRITERS.items()):
        moved = changed(review, place, writer)
        yield f"{where}, {who}", moved
        for what, change in owners.items() if "node" in who else ():
            with suppress(KeyError, TypeError, ValueError):
                yield f"{where}, {who}, {what}", changed(moved, change)


def _make_edit(review: Document) -> None:
    request = review["request"]
    request["operation"], request["oldObject"] = "UPDATE", copy.deepcopy(request["object"])
    request["options"] = request["options"] | {"kind": "UpdateOptions"}
    request["object"].setdefault("metadata", {})["labels"] = {"edited": "yes"}
    if request["object"]["kind"] == "Lease":
        put("object.spec.acquireTime", "2025-11-20T11:30:00.000000Z")(request)


def _change_two(review: Document, changes: Mapping[str, Tweak]) -> Iterator[tuple[str, Document]]:
    """Yield some of the writes that differ by two things, the same ones each time."""
    pairs = [*combinations(changes.items(), 2)]
    for (one, first), (other, second) in pairs[:: max(1, len(pairs) // MAX_PAIRS)]:
        with suppress(KeyError, IndexError, TypeError, ValueError):
            yield f"{one}, {other}", changed(review, first, second)
    has_both = all(review["request"].get(side) for side in ("object", "oldObject"))
    for (one, first), (other, second) in product(_change_owners("object"), _change_owners("oldObject")):
        if has_both:
            yield f"{one}, {other}", changed(review, first, second)


def _change_owners(side: str) -> Iterator[tuple[str, Tweak]]:
    for what, owners in OWNERS.items():
        yield f"{side}: {what}", put(f"request.{side}.metadata.ownerReferences", owners)


def _list_changes(request: Document) -> Iterator[tuple[str, Tweak]]:
    sides = [side for side in ("object", "oldObject") if request.get(side)]
    for side in sides:
        other = request.get("oldObject" if side == "object" else "object") or {}
        yield from _change_spec(side, request[side].get("spec") or {}, other.get("spec") or {})
        yield from _change_metadata(side)
        if request[side]["kind"] == "Lease":
            for who, holder in HOLDERS.items():
                yield f"{side}: {who}", put(f"request.{side}.spec.holderIdentity", holder)
    yield "from the stamped pod", _write_from_the_stamped_pod
    yield from WRITERS.items()


def _change_spec(side: str, spec: Document, other: Document) -> Iterator[tuple[str, Tweak]]:
    for name in sorted({*spec, *other}):
        path = f"request.{side}.spec.{name}"
        yield f"{side}: no {name}", drop(path)
        if name in other:
            yield f"{side}: the other {name}", put(path, other[name])
        if isinstance(spec.get(name), int):
            for how, count in NUMBERS.items():
                yield f"{side}: {how} {name}", put(path, count(spec[name]))
        for when, time in TIMES.items() if name.endswith("Time") else ():
            yield f"{side}: {name} {when}", put(path, time)


def _change_metadata(side: str) -> Iterator[tuple[str, Tweak]]:
    path = f"request.{side}.metadata"
    for when, time in WRITTEN[side].items():
        yield f"{side}: written {when}", put(f"{path}.managedFields[0].time", time)
    for field in ("managedFields", "ownerReferences", "labels", "annotations", "finalizers"):
        yield f"{side}: no {field}", drop(f"{path}.{field}")
    yield from _change_owners(side)
    yield f"{side}: labels", put(f"{path}.labels", {"a": "b"})
    yield f"{side}: stamped", _stamp(f"request.{side}", f"{POD_UID} {KEEPER}")


def _stamp(path: str, writer: str) -> Tweak:
    values: Mapping[str, Any] = {
        f"{path}.metadata.managedFields": [STAMP_ENTRY],
        f"{path}.metadata.annotations[lease-webhook/writer-{STAMP_SUFFIX}]": writer,
        f"{path}.metadata.annotations[lease-webhook/written-{STAMP_SUFFIX}]": "2025-11-20T12:00:00Z",
    }

    def tweak(document: Document) -> None:
        for place, value in values.items():
            put(place, value)(document)

    return tweak


def _write_from_the_stamped_pod(review: Document) -> None:
    for side in ("object", "oldObject"):
        if review["request"].get(side):
            _stamp(f"request.{side}", f"{POD_UID} {KEEPER}")(review)
    put("request.userInfo.username", KEEPER)(review)
    put("request.userInfo.extra[authentication.kubernetes.io/pod-uid]", [POD_UID])(review)
