"""Strangers: what somebody with every right on the lease may write to it, besides its electors.

A write is a few changes to what is stored at that moment, sent by one verb; so it means the same in every world.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tests.factories import Document
from tests.law.api_server import CREATE, DELETE, ETCD_LIMIT, MERGE, NAME, PUT, Request, copied, stored_size
from tests.law.modes import KEYS
from tests.model.api_server import User, service_account
from tests.model.managed_fields import APPLY, SECOND
from webhook.kubernetes.times import format_micro_time, format_time

USERS: Final[Mapping[str, User]] = {
    "a pod of the same namespace": service_account("shop", "mallory", "mallory-0"),
    "a pod of another namespace": service_account("other", "mallory", "mallory-0"),
    "another pod of the electors' account": service_account("shop", "checkout", "checkout-9"),
    "a user without a pod": User("mallory"),
}
COLLECTOR: Final = service_account("kube-system", "generic-garbage-collector")
ADMINISTRATOR: Final = User("admin", ("system:masters", "system:authenticated"))

Arguments = tuple[Any, ...]


class Change(Struct, frozen=True):
    """One change, by its name in CHANGES, with its arguments."""

    name: str
    arguments: Arguments = ()


class StrangersWrite(Struct, frozen=True):
    """Changes in one write, by whom and how; `manager` is the name of the field manager."""

    by: str
    changes: tuple[Change, ...]
    verb: str = PUT
    manager: str = "mallory"

    @property
    def is_about_spec(self) -> bool:
        """Return whether it changes more than metadata."""
        return any(change.name in _OF_SPEC for change in self.changes)

    def request(self, stored: Document | None, now: int) -> Request | None:
        """Return what is sent over what is stored; None where the lease is not there, or already is."""
        if self.verb == DELETE:
            return None if stored is None else Request(verb=DELETE, body={}, manager=self.manager)
        if (stored is None) is not (self.verb == CREATE):
            return None
        old = stored or {"metadata": {"name": NAME}, "spec": {"holderIdentity": "", "leaseDurationSeconds": 15}}
        new = copied(old)
        for change in self.changes:
            CHANGES[change.name](new, now, *change.arguments)
        if self.verb == APPLY:
            return Request(verb=APPLY, body=_applied(old, new), manager=self.manager)
        if self.verb == MERGE:
            return Request(verb=MERGE, body=_difference(old, new), manager=self.manager)
        return Request(verb=self.verb, body=new, manager=self.manager)


def _difference(old: Document, new: Document) -> Document:
    """The merge patch that makes one object of the other."""
    patch: Document = {}
    for key in old.keys() | new.keys():
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            if inner := _difference(before, after):
                patch[key] = inner
        elif before != after:
            patch[key] = after
    return patch


def _applied(old: Document, new: Document) -> Document:
    """An apply of all that is new; nothing can be removed by it."""
    body: Document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}, "spec": {}}
    for part in ("metadata", "spec"):
        before, after = old[part], new[part]
        changed = {key: value for key, value in after.items() if before.get(key) != value and key != "managedFields"}
        body[part] |= changed
    return body


# ---- changes --------------------------------------------------------------------------------------------------------


def _get_part(new: Document, part: str) -> Document:
    fields: Document = new.setdefault(part, {})
    return fields


def _labels(new: Document, now: int, count: int, stays: bool = False) -> None:
    mine = {f"x{number}": "" for number in range(count)}
    _get_part(new, "metadata")["labels"] = ((new["metadata"].get("labels") or {}) if stays else {}) | mine


def _annotations(new: Document, now: int, count: int, size: int = 0, stays: bool = True) -> None:
    """As many annotations as there are to be in all, stamps not counted, the first of some size."""
    annotations = {
        key: value for key, value in (new["metadata"].get("annotations") or {}).items() if stays or key in KEYS
    }
    others = [key for key in annotations if key not in KEYS]
    for key in others[count:]:
        del annotations[key]
    for number in range(count - len(others)):
        annotations[f"x{number:05}"] = ""
    if size and count:
        annotations["x00000"] = "v" * size
    new["metadata"]["annotations"] = annotations


def _finalizers(new: Document, now: int, count: int, name: str = "a.b/c") -> None:
    new["metadata"]["finalizers"] = [f"{name}{number}" for number in range(count)]


def _collectors_finalizer(new: Document, now: int, name: str) -> None:
    new["metadata"]["finalizers"] = [*(new["metadata"].get("finalizers") or ()), name]


def _owners(new: Document, now: int, count: int, kind: str = "ConfigMap", stays: bool = False) -> None:
    mine = [
        {"apiVersion": "v1", "kind": kind, "name": f"c{number}", "uid": f"{kind}-{number}"} for number in range(count)
    ]
    new["metadata"]["ownerReferences"] = [*((new["metadata"].get("ownerReferences") or ()) if stays else ()), *mine]


def _nothing_of(new: Document, now: int, name: str) -> None:
    new["metadata"].pop(name, None)


def _stamp(new: Document, now: int, number: int, value: str) -> None:
    new["metadata"].setdefault("annotations", {})[KEYS[number]] = value


def _no_stamps(new: Document, now: int) -> None:
    annotations = new["metadata"].get("annotations") or {}
    new["metadata"]["annotations"] = {key: value for key, value in annotations.items() if key not in KEYS}


def _entries(new: Document, now: int, kind: str, seconds: int = 0) -> None:
    """Lists of managedFields as a client may send them."""
    metadata = new["metadata"]
    entries = [dict(entry) for entry in metadata.get("managedFields") or ()]
    time = format_time((now // SECOND + seconds) * SECOND)
    if kind == "emptied":
        entries = [{}] if seconds < 0 else []
    elif kind == "dated":
        entries = [entry | {"time": time} for entry in entries]
    elif kind == "renamed":
        entries = [entry | {"manager": "ancient-changes", "time": time} for entry in entries]
    elif kind == "joined":
        fields: Document = {"f:spec": {"f:renewTime": {}, "f:holderIdentity": {}}}
        entries.append(_entry("z", "Apply", time, fields))
    elif kind == "many":
        entries += [
            _entry(f"m{at}", "Update", time, {"f:metadata": {"f:labels": {f"f:l{at}": {}}}}) for at in range(12)
        ]
    elif kind == "hundreds":
        entries += [_entry(f"m{at}", "Apply", time, {"f:metadata": {"f:labels": {f"f:l{at}": {}}}}) for at in range(60)]
    elif kind == "below":
        entries.append(_entry("z", "Update", time, {"f:spec": {"f:renewTime": {"f:x": {}}}}))
    metadata["managedFields"] = entries


def _entry(manager: str, operation: str, time: str, fields: Document) -> Document:
    head = {"manager": manager, "operation": operation, "apiVersion": "coordination.k8s.io/v1", "time": time}
    return head | {"fieldsType": "FieldsV1", "fieldsV1": fields}


def _holder(new: Document, now: int, holder: str) -> None:
    spec = _get_part(new, "spec")
    count = min((spec.get("leaseTransitions") or 0) + 1, 2**31 - 1)
    spec |= {"holderIdentity": holder, "renewTime": format_micro_time(now), "acquireTime": format_micro_time(now)}
    spec |= {"leaseDurationSeconds": 15, "leaseTransitions": count}


def _renewal(new: Document, now: int, seconds: int = 0) -> None:
    _get_part(new, "spec")["renewTime"] = format_micro_time(now + seconds * SECOND)


def _value(new: Document, now: int, name: str, value: Any) -> None:
    if value is None:
        _get_part(new, "spec").pop(name, None)
    else:
        _get_part(new, "spec")[name] = value


def _generate_name(new: Document, now: int, size: int) -> None:
    new["metadata"]["generateName"] = "g" * size


def _filled(new: Document, now: int, room: int) -> None:
    """Labels of some 200 bytes until there is only so much room in etcd, and a last one that fits."""
    labels: Document = {}
    new["metadata"]["labels"] = labels
    wanted = ETCD_LIMIT - stored_size(new) - room
    label, value = f"{'p' * 120}/l", "v" * 63
    count = wanted // (len(label) + 5 + len(value) + 10)
    labels |= {f"{label}{at:05}": value for at in range(count)}
    labels["rest"] = "v" * min(63, max(0, ETCD_LIMIT - stored_size(new) - room - 14))


def _weight(new: Document, now: int, room: int) -> None:
    """Annotations of a stranger alone, and labels, until the JSON of the object is `room` bytes below 256 KiB."""
    metadata = new["metadata"]
    stamps = {key: value for key, value in (metadata.get("annotations") or {}).items() if key in KEYS}
    metadata["annotations"] = stamps | {"weight": "v" * 200_000}
    # Each label is named by the entry of its manager, too.
    label, value = f"{'w' * 120}/l", "v" * 63
    wanted = 256 * 1024 - room - len(msgspec.json.encode(new)) - 400
    metadata["labels"] = {f"{label}{at:05}": value for at in range(wanted // (2 * len(label) + len(value) + 25))}


CHANGES: Final[Mapping[str, Callable[..., None]]] = {
    "labels": _labels,
    "annotations": _annotations,
    "finalizers": _finalizers,
    "finalizer of the collector": _collectors_finalizer,
    "owners": _owners,
    "nothing of": _nothing_of,
    "stamp": _stamp,
    "no stamps": _no_stamps,
    "entries": _entries,
    "generateName": _generate_name,
    "filled": _filled,
    "weight": _weight,
    "holder": _holder,
    "renewal": _renewal,
    "value": _value,
}
_OF_SPEC: Final = frozenset({"holder", "renewal", "value"})


def _or_many(draw: random.Random, counts: tuple[int, ...]) -> int:
    """One of these, or now and then more than is stamped."""
    return draw.choice((200, 201, 1000, 1001)) if draw.random() < 0.02 else draw.choice(counts)


def some_metadata(draw: random.Random) -> Change:
    """A change of metadata of any size, those around the bounds most of all."""
    name = draw.choice(
        ("labels",) * 4
        + ("annotations",) * 4
        + ("finalizers",) * 3
        + ("owners",) * 4
        + ("nothing of",) * 5
        + ("stamp", "no stamps", "entries", "entries", "generateName", "finalizer of the collector")
    )
    if name == "labels":
        return Change(name, (_or_many(draw, (1, 8, 62, 63, 64, 65, 66, 100)), draw.random() < 0.3))
    if name == "annotations":
        count = _or_many(draw, (0, 1, 1, 2, *range(96, 109)))
        size = draw.choice((0, 0, 0, 0, 10, 16_000, 16_300 + draw.randrange(110), 49_152, 200_000)) if count else 0
        return Change(name, (count, size, draw.random() < 0.7))
    if name == "finalizers":
        return Change(name, (draw.choice((1, 7, 8, 9, 10, 40)),))
    if name == "owners":
        kind = draw.choice(("ConfigMap", "ConfigMap", "Ghost"))
        return Change(name, (draw.choice((1, 1, 2, 7, 8, 9, 12)), kind, draw.random() < 0.4))
    if name == "nothing of":
        return Change(
            name, (draw.choice(("labels", "annotations", "finalizers", "ownerReferences", "ownerReferences")),)
        )
    if name == "stamp":
        value = draw.choice(("", "- mallory", "planted", "2999-01-01T00:00:00Z", "9" * 30, "x" * 4000))
        return Change(name, (draw.randrange(3), value))
    if name == "entries":
        kind = draw.choice(("emptied", "dated", "renamed", "joined", "many", "hundreds", "below"))
        return Change(name, (kind, draw.choice((-864_000, -3600, -61, -5, 0, 5, 45, 59))))
    if name == "generateName":
        return Change(name, (draw.choice((5, 253, 254)),))
    if name == "finalizer of the collector":
        return Change(name, (draw.choice(("foregroundDeletion", "orphan")),))
    return Change(name)


def some_spec(draw: random.Random) -> Change:
    """A change of spec."""
    name = draw.choice(("holder", "holder", "renewal", "value", "value", "value"))
    if name == "holder":
        return Change(name, (draw.choice(("mallory", "", "checkout-0_1f0e", "h" * 1024, "h" * 1025, "h" * 5000)),))
    if name == "renewal":
        return Change(name, (draw.choice((0, 0, -3600, -864_000, 30, 200)),))
    return Change(
        name,
        draw.choice(
            (
                ("leaseDurationSeconds", 1),
                ("leaseDurationSeconds", None),
                ("leaseDurationSeconds", 600),
                ("renewTime", None),
                ("renewTime", "2999-01-01T00:00:00.000000Z"),
                ("acquireTime", None),
                ("acquireTime", "2001-01-01T00:00:00.000000Z"),
                ("leaseTransitions", 2**31 - 1),
                ("leaseTransitions", 999_999_999),
                ("leaseTransitions", 0),
                ("leaseTransitions", None),
                ("strategy", "OldestEmulationVersion"),
                ("strategy", "example.com/mine"),
            )
        ),
    )


def some_write(draw: random.Random, *, spec: float = 0.3) -> StrangersWrite:
    """A write of one to three changes; `spec` is how likely it changes spec."""
    by = draw.choice(tuple(USERS))
    if draw.random() < 0.03:
        return StrangersWrite(by, (), DELETE)
    if draw.random() < 0.001:
        return StrangersWrite(by, (Change("filled", (draw.choice((20, 100, 300, 1000, 2000)),)),))
    if draw.random() < 0.01:
        return StrangersWrite(by, (Change("weight", (draw.choice((-9_000, -500, 0, 500, 1000, 2500, 9_000)),)),))
    changes = [some_metadata(draw) for _ in range(draw.choice((1, 1, 2, 3)))]
    if draw.random() < spec:
        changes = [some_spec(draw), *changes[: draw.randrange(2)]]
    verb = draw.choice((PUT, PUT, MERGE, MERGE, APPLY)) if draw.random() < 0.95 else CREATE
    return StrangersWrite(by, tuple(changes), verb, draw.choice(("mallory", "mallory", "checkout", "ancient-changes")))
