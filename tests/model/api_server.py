"""A model kube-apiserver for one Lease: what it stores, how it keeps managedFields, and the review it would send.

It follows apimachinery's `pkg/util/managedfields` as far as a Lease goes: entry times are whole seconds of the API
server's clock, an entry belongs to a (manager, operation), an Update that sets something stamps its writer's entry, an
apply that changes nothing stamps nothing, and a list that was emptied stays empty until the next apply.
All instants are microseconds since 1970.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests import factories

SECOND: Final = 1_000_000
UPDATE: Final = "Update"
APPLY: Final = "Apply"
MOST_UPDATE_MANAGERS: Final = 10
BEFORE_FIRST_APPLY: Final = "before-first-apply"
ANCIENT_CHANGES: Final = "ancient-changes"
NAMESPACE: Final = "shop"
NAME: Final = "checkout"


class Spec(Struct, frozen=True, kw_only=True):
    """`spec` of a Lease; None is absent."""

    holder: str | None = None
    duration: int | None = None
    acquired: int | None = None
    renewed: int | None = None
    transitions: int | None = None
    strategy: str | None = None
    preferred: str | None = None


WIRE_NAMES: Final = {
    "holder": "holderIdentity",
    "duration": "leaseDurationSeconds",
    "acquired": "acquireTime",
    "renewed": "renewTime",
    "transitions": "leaseTransitions",
    "strategy": "strategy",
    "preferred": "preferredHolder",
}
TIMES: Final = frozenset({"acquired", "renewed"})
LABELS: Final = "labels"
"""The map of labels itself, which its first writer owns beside its own label."""

Labels = tuple[tuple[str, str], ...]


class Entry(Struct, frozen=True):
    """One entry of managedFields; `fields` are names of `Spec`, LABELS, and `labels.<key>`."""

    manager: str
    operation: str
    time: int | None
    fields: frozenset[str]


class Lease(Struct, frozen=True):
    """The stored object."""

    spec: Spec
    labels: Labels = ()
    entries: tuple[Entry, ...] = ()
    version: int = 1


class Write(Struct, frozen=True):
    """What one client sends: a whole object (PUT, or a patch's result), or an apply of the fields in `applied`.

    `entries` are managedFields that the client sends along; None leaves them out, as every honest client does.
    `version` is the resourceVersion it insists on.
    """

    manager: str
    spec: Spec
    labels: Labels = ()
    operation: str = UPDATE
    applied: frozenset[str] = frozenset()
    entries: tuple[Entry, ...] | None = None
    version: int | None = None


def values(spec: Spec, labels: Labels) -> dict[str, Any]:
    """Every field that is set, by its name in an entry."""
    found = {name: value for name in WIRE_NAMES if (value := getattr(spec, name)) is not None}
    if labels:
        found[LABELS] = True
    found |= {f"{LABELS}.{key}": value for key, value in labels}
    return found


def whole(clock: int) -> int:
    """An entry time: whole seconds, the rest cut off."""
    return clock // SECOND * SECOND


def created(write: Write, clock: int) -> Lease:
    """The object that a POST stores."""
    fields = frozenset(values(write.spec, write.labels))
    entries = (Entry(write.manager, write.operation, whole(clock), fields),) if fields else ()
    return Lease(write.spec, write.labels, entries)


def stored(old: Lease, write: Write, clock: int) -> Lease:
    """The object that an update or apply stores; the caller has compared resourceVersions."""
    return _applied(old, write, clock) if write.operation == APPLY else _updated(old, write, clock)


def _updated(old: Lease, write: Write, clock: int) -> Lease:
    before, after = values(old.spec, old.labels), values(write.spec, write.labels)
    entries = old.entries if write.entries is None else write.entries
    if before == after and _without_times(entries) == _without_times(old.entries):
        entries = old.entries
    new = Lease(write.spec, write.labels, (), old.version + 1)
    if not entries:
        return new
    set_now = {field for field, value in after.items() if before.get(field) != value}
    lost = set_now | (before.keys() - after.keys())
    by_writer = {(entry.manager, entry.operation): entry for entry in entries}
    own = by_writer.pop((write.manager, UPDATE), Entry(write.manager, UPDATE, None, frozenset()))
    kept = [replace(entry, fields=entry.fields - lost) for entry in by_writer.values()]
    time = whole(clock) if set_now else own.time
    kept.append(replace(own, fields=(own.fields - lost) | set_now, time=time))
    return replace(new, entries=_in_order(_capped([entry for entry in kept if entry.fields])))


def _applied(old: Lease, write: Write, clock: int) -> Lease:
    before, wanted = values(old.spec, old.labels), values(write.spec, write.labels)
    entries = {(entry.manager, entry.operation): entry for entry in old.entries}
    if not entries and before:
        first = Entry(BEFORE_FIRST_APPLY, UPDATE, whole(clock), frozenset(before))
        entries = {(first.manager, first.operation): first}
    own = entries.pop((write.manager, APPLY), Entry(write.manager, APPLY, None, frozenset()))
    owned_by_others = frozenset().union(*(entry.fields for entry in entries.values()))
    dropped = own.fields - write.applied - owned_by_others
    after = {field: value for field, value in before.items() if field not in dropped}
    after |= {field: wanted[field] for field in write.applied}
    set_now = {field for field, value in after.items() if before.get(field) != value}
    others = [replace(entry, fields=entry.fields - set_now - dropped) for entry in entries.values()]
    time = whole(clock) if after != before else own.time
    mine = Entry(write.manager, APPLY, time, write.applied)
    kept = [entry for entry in (*others, mine) if entry.fields]
    spec = Spec(**{name: after.get(name) for name in WIRE_NAMES})
    prefix = f"{LABELS}."
    labels = tuple(sorted((key.removeprefix(prefix), after[key]) for key in after if key.startswith(prefix)))
    return Lease(spec, labels, _in_order(kept), old.version + 1)


def _without_times(entries: Iterable[Entry]) -> list[Entry]:
    return [replace(entry, time=None) for entry in entries]


def _in_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.operation, entry.time or 0, entry.manager)))


def _capped(entries: list[Entry]) -> list[Entry]:
    """Apimachinery's `capManagers`: the oldest Update entries become one, which takes the latest of their times."""
    updates = sorted(
        (entry for entry in entries if entry.operation == UPDATE), key=lambda entry: (entry.time or 0, entry.manager)
    )
    surplus = len(updates) - MOST_UPDATE_MANAGERS
    if surplus <= 0:
        return entries
    merged = updates[: surplus + 1]
    bucket = Entry(ANCIENT_CHANGES, UPDATE, merged[-1].time, frozenset().union(*(entry.fields for entry in merged)))
    return [bucket, *(entry for entry in entries if entry not in merged)]


# ---- the review -----------------------------------------------------------------------------------------------------


class User(Struct, frozen=True):
    """Who writes; `pod` is the pod that the token is bound to."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)
    pod: str = ""


def service_account(namespace: str, name: str, pod: str = "") -> User:
    """A service account's token."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups, pod)


def review(user: User, old: Lease | None, new: Lease | None) -> bytes:
    """The AdmissionReview about this write: a CREATE without `old`, a DELETE without `new`."""
    operation = "CREATE" if old is None else "DELETE" if new is None else "UPDATE"
    head, tail = _frame(user, operation)
    return b"".join((head, b'"object":', _document(new), b',"oldObject":', _document(old), tail))


@lru_cache(maxsize=256)
def _frame(user: User, operation: str) -> tuple[bytes, bytes]:
    extra = {"authentication.kubernetes.io/pod-name": [user.pod]} if user.pod else None
    info = {"username": user.name, "groups": user.groups} | ({"extra": extra} if extra else {})
    whole_review = factories.make_review(
        factories.put("request.userInfo", info),
        factories.put("request.operation", operation),
        factories.put("request.options", {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}),
        factories.drop("request.object"),
        factories.drop("request.oldObject"),
    )
    body = msgspec.json.encode(whole_review)
    marker = b'"request":{'
    head, _, tail = body.partition(marker)
    return head + marker, b"," + tail


@lru_cache(maxsize=65536)
def _document(lease: Lease | None) -> bytes:
    if lease is None:
        return b"null"
    metadata: dict[str, Any] = {
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": "6a1d4c52-8f4e-4d53-9d0c-5a2f5f0c7e11",
        "resourceVersion": str(lease.version),
        "creationTimestamp": "2025-11-20T11:00:00Z",
    }
    if lease.labels:
        metadata["labels"] = dict(lease.labels)
    if lease.entries:
        metadata["managedFields"] = [entry_document(entry) for entry in lease.entries]
    spec = {
        wire: micro_time(value) if name in TIMES else value
        for name, wire in WIRE_NAMES.items()
        if (value := getattr(lease.spec, name)) is not None
    }
    return msgspec.json.encode(
        {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec}
    )


def entry_document(entry: Entry) -> Mapping[str, Any]:
    """An entry as the API server prints it."""
    spec: dict[str, Any] = {f"f:{wire}": {} for name, wire in WIRE_NAMES.items() if name in entry.fields}
    keys = sorted(field.partition(".")[2] for field in entry.fields if field.startswith(f"{LABELS}."))
    labels: dict[str, Any] = {f"f:{key}": {} for key in keys}
    if LABELS in entry.fields and labels:
        labels = {".": {}, **labels}
    fields: dict[str, Any] = {"f:metadata": {"f:labels": labels}} if labels or LABELS in entry.fields else {}
    if spec:
        fields["f:spec"] = spec
    time = {} if entry.time is None else {"time": f"{datetime.fromtimestamp(entry.time // SECOND, UTC):%FT%TZ}"}
    return {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": "coordination.k8s.io/v1",
        **time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def micro_time(instant: int) -> str:
    """A metav1.MicroTime as the API server prints it."""
    seconds, fraction = divmod(instant, SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%FT%T}.{fraction:06d}Z"
