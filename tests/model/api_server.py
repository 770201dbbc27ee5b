"""A model kube-apiserver for one Lease: what it stores, and the review it would send.

Which managedFields it keeps is in `managed_fields.py`. A list that was emptied stays empty until the next apply. What
is too large for etcd loses its list (isTooLargeError in `pkg/endpoints/handlers` of apiserver); an apply fails. All
instants are microseconds since 1970.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests import factories, protobuf
from tests.deep_json import written_out
from tests.model.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    FINALIZERS,
    LABELS,
    OWNERS,
    SECOND,
    UPDATE,
    WIRE_NAMES,
    Entry,
    after_update,
    differs_in_times_only,
    entry_document,
    fails,
    in_order,
    whole,
)
from webhook.kubernetes.times import format_micro_time, format_time

NAMESPACE: Final = "shop"
NAME: Final = "checkout"
UNSTORED: Final = 0
"""The version of an object that is reviewed before it is stored for the first time."""
TIMES: Final = frozenset({"acquired", "renewed"})
KEEPS_THE_STORED_LIST: Final = 37
"""Since this minor version of Kubernetes the stored managedFields stay if those that were sent cannot be used."""

ETCD_LIMIT: Final = 1_572_864
"""Bytes of a request that etcd takes by default."""

SUFFIX: Final = "5f3a9c1e"
STAMP_TIME: Final = 946_684_800 * SECOND
"""The time of the one entry of a stamped lease."""

Labels = tuple[tuple[str, str], ...]


class Spec(Struct, frozen=True, kw_only=True):
    """`spec` of a Lease; None is absent."""

    holder: str | None = None
    duration: int | None = None
    acquired: int | None = None
    renewed: int | None = None
    transitions: int | None = None
    strategy: str | None = None
    preferred: str | None = None


class Owner(Struct, frozen=True):
    """An ownerReference."""

    version: str
    kind: str
    name: str
    uid: str


class Lease(Struct, frozen=True):
    """The stored object; `writer` and `written` are its stamps, where the API server stamps writers."""

    spec: Spec
    labels: Labels = ()
    entries: tuple[Entry, ...] = ()
    version: int = 1
    owners: tuple[Owner, ...] = ()
    name: str = NAME
    namespace: str = NAMESPACE
    born: int = 1_763_636_400 * SECOND
    finalizers: tuple[str, ...] = ()
    deleted: int | None = None
    writer: str = ""
    written: int | None = None


class Write(Struct, frozen=True):
    """What one client sends: a whole object (PUT, or a patch's result), or an apply of the fields in `applied`.

    `entries` are managedFields that the client sends along; None leaves them out, as honest clients do. `version` is
    the resourceVersion it insists on. `owners` and `finalizers` None: as they are. `minor` is the version of Kubernetes
    that stores it.
    """

    manager: str
    spec: Spec
    labels: Labels = ()
    operation: str = UPDATE
    applied: frozenset[str] = frozenset()
    entries: tuple[Entry, ...] | None = None
    version: int | None = None
    owners: tuple[Owner, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    minor: int = 36


def values(
    spec: Spec, labels: Labels, owners: tuple[Owner, ...] = (), finalizers: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Every field that is set, by its name in an entry."""
    fields = {name: value for name in WIRE_NAMES if (value := getattr(spec, name)) is not None}
    if labels:
        fields[LABELS] = True
    fields |= {f"{LABELS}.{key}": value for key, value in labels}
    if owners:
        fields[OWNERS] = True
    if finalizers:
        fields[FINALIZERS] = True
    fields |= {f"{FINALIZERS}.{name}": name for name in finalizers}
    return fields | {f"{OWNERS}.{owner.uid}": owner for owner in owners}


def created(write: Write, clock: int, name: str = NAME, namespace: str = NAMESPACE) -> Lease:
    """The object that a POST, or an apply of nothing yet, stores."""
    owners = write.owners or ()
    fields = frozenset(values(write.spec, write.labels, owners))
    if write.operation == APPLY:
        entries: tuple[Entry, ...] = (Entry(write.manager, APPLY, whole(clock), fields),) if fields else ()
    else:
        entries = after_update(write.entries or (), write.manager, fields, frozenset(), clock)
    return Lease(write.spec, write.labels, entries, 1, owners, name, namespace, whole(clock))


def stored(old: Lease, write: Write, clock: int) -> Lease:
    """The object that an update or apply stores; the caller has compared resourceVersions."""
    return _applied(old, write, clock) if write.operation == APPLY else _updated(old, write, clock)


def _updated(old: Lease, write: Write, clock: int) -> Lease:
    owners = old.owners if write.owners is None else write.owners
    finalizers = old.finalizers if write.finalizers is None else write.finalizers
    before = values(old.spec, old.labels, old.owners, old.finalizers)
    after = values(write.spec, write.labels, owners, finalizers)
    sent = old.entries if write.entries is None else write.entries
    new = replace(
        old,
        spec=write.spec,
        labels=write.labels,
        owners=owners,
        finalizers=finalizers,
        entries=(),
        version=old.version + 1,
    )
    if not sent:
        return new
    if write.minor >= KEEPS_THE_STORED_LIST and fails(sent):
        return replace(new, entries=old.entries)
    set_now = frozenset(field for field, value in after.items() if before.get(field) != value)
    entries = after_update(sent, write.manager, set_now, frozenset(before.keys() - after.keys()), clock)
    if before == after and differs_in_times_only(entries, old.entries):
        entries = old.entries
    new = replace(new, entries=entries)
    return replace(new, entries=()) if stored_size(new) > ETCD_LIMIT else new


def stored_size(lease: Lease) -> int:
    """The bytes of the request that stores a large lease; 0 for a small one."""
    return len(protobuf.lease(document(lease))) + _AROUND if _may_be_large(lease) else 0


_AROUND: Final = 200
"""About what etcd's key and transaction take, and the fields that the encoder of the tests leaves out."""


def _may_be_large(lease: Lease) -> bool:
    return sum(len(field) for entry in lease.entries for field in entry.fields) > ETCD_LIMIT // 2


def _applied(old: Lease, write: Write, clock: int) -> Lease:
    before, wanted = values(old.spec, old.labels, old.owners), values(write.spec, write.labels, write.owners or ())
    entries = {entry.key: entry for entry in old.entries}
    if not entries and before:
        first = Entry(BEFORE_FIRST_APPLY, UPDATE, whole(clock), frozenset(before))
        entries = {first.key: first}
    mine = Entry(write.manager, APPLY, None, write.applied)
    own = entries.pop(mine.key, Entry(write.manager, APPLY, None, frozenset()))
    owned_by_others = frozenset().union(*(entry.fields for entry in entries.values()))
    dropped = own.fields - write.applied - owned_by_others
    after = {field: value for field, value in before.items() if field not in dropped}
    after |= {field: wanted[field] for field in write.applied}
    if any(field.startswith(f"{LABELS}.") for field in after):
        after[LABELS] = True
    if any(field.startswith(f"{OWNERS}.") for field in after):
        after[OWNERS] = True
    set_now = {field for field, value in after.items() if before.get(field) != value}
    others = [replace(entry, fields=entry.fields - set_now - dropped) for entry in entries.values()]
    mine = replace(mine, time=whole(clock) if after != before else own.time)
    kept = [entry for entry in (*others, mine) if entry.fields]
    spec = Spec(**{name: after.get(name) for name in WIRE_NAMES})
    prefix = f"{LABELS}."
    labels = tuple(sorted((key.removeprefix(prefix), after[key]) for key in after if key.startswith(prefix)))
    owners = tuple(after[key] for key in after if key.startswith(f"{OWNERS}."))
    return replace(old, spec=spec, labels=labels, owners=owners, entries=in_order(kept), version=old.version + 1)


# ---- the review -----------------------------------------------------------------------------------------------------


class User(Struct, frozen=True):
    """Who writes; `pod` is the pod that the token is bound to."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)
    pod: str = ""

    @property
    def requester(self) -> str:
        """What is stamped when this user writes."""
        return f"{f'uid-of-{self.pod}' if self.pod else '-'} {self.name}"


def service_account(namespace: str, name: str, pod: str = "") -> User:
    """A service account's token."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups, pod)


def review(user: User, old: Lease | None, new: Lease | None) -> bytes:
    """The AdmissionReview about this write: a CREATE without `old`, a DELETE without `new`."""
    if old is None:
        operation = "CREATE"
    else:
        operation = "DELETE" if new is None else "UPDATE"
    some = new or old
    assert some is not None
    if old is None and new is not None:
        new = replace(new, version=UNSTORED)
    head, tail = _frame(user, operation, some.namespace, some.name)
    return b"".join((head, b'"object":', _document_bytes(new), b',"oldObject":', _document_bytes(old), tail))


@lru_cache(maxsize=256)
def _frame(user: User, operation: str, namespace: str, name: str) -> tuple[bytes, bytes]:
    token = "authentication.kubernetes.io"
    extra = {f"{token}/pod-name": [user.pod], f"{token}/pod-uid": [f"uid-of-{user.pod}"]} if user.pod else None
    info = {"username": user.name, "groups": user.groups} | ({"extra": extra} if extra else {})
    whole_review = factories.make_review(
        factories.put("request.userInfo", info),
        factories.put("request.operation", operation),
        factories.put("request.namespace", namespace),
        factories.put("request.name", name),
        factories.put("request.options", {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}),
        factories.drop("request.object"),
        factories.drop("request.oldObject"),
    )
    body = msgspec.json.encode(whole_review)
    marker = b'"request":{'
    head, _, tail = body.partition(marker)
    return head + marker, b"," + tail


@lru_cache(maxsize=65536)
def _document_bytes(lease: Lease | None) -> bytes:
    return b"null" if lease is None else written_out(msgspec.json.encode(document(lease)))


def document(lease: Lease) -> dict[str, Any]:
    """The object as JSON, deep places of managedFields as one text."""
    metadata: dict[str, Any] = {
        "name": lease.name,
        "namespace": lease.namespace,
        "uid": "6a1d4c52-8f4e-4d53-9d0c-5a2f5f0c7e11",
        "creationTimestamp": f"{datetime.fromtimestamp(lease.born // SECOND, UTC):%FT%TZ}",
    }
    if lease.version != UNSTORED:
        metadata["resourceVersion"] = str(lease.version)
    if lease.labels:
        metadata["labels"] = dict(lease.labels)
    if lease.writer:
        written = "" if lease.written is None else format_time(lease.written)
        metadata["annotations"] = {
            f"lease-webhook/writer-{SUFFIX}": lease.writer,
            f"lease-webhook/written-{SUFFIX}": written,
        }
    if lease.owners:
        metadata["ownerReferences"] = [
            {"apiVersion": owner.version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
            for owner in lease.owners
        ]
    if lease.finalizers:
        metadata["finalizers"] = list(lease.finalizers)
    if lease.deleted is not None:
        metadata["deletionTimestamp"] = f"{datetime.fromtimestamp(lease.deleted // SECOND, UTC):%FT%TZ}"
        metadata["deletionGracePeriodSeconds"] = 0
    if lease.entries:
        metadata["managedFields"] = [entry_document(entry) for entry in lease.entries]
    spec = {
        wire: micro_time(value) if name in TIMES else value
        for name, wire in WIRE_NAMES.items()
        if (value := getattr(lease.spec, name)) is not None
    }
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec}


def micro_time(instant: int) -> str:
    """A metav1.MicroTime as the API server prints it."""
    return format_micro_time(instant)
