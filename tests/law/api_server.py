"""A model kube-apiserver for one Lease as a document: every kind of write, with its metadata, until etcd has it.

It validates, keeps managedFields (`tests/model/managed_fields.py`), compares resourceVersions, asks an admission, and
refuses what is too large. What differs from a real one: values are taken to be of the right type, names to be legal,
and sizes are those of protobuf to within some hundred bytes. Instants are microseconds since 1970.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tests.factories import Document
from tests.model.api_server import User
from tests.model.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Entry,
    after_update,
    differs_in_times_only,
    in_order,
    whole,
)
from webhook.kubernetes.times import format_time, parse_seconds

NAMESPACE: Final = "shop"
NAME: Final = "checkout"
PUT, MERGE, CREATE, DELETE = "put", "merge", "create", "delete"
ETCD_LIMIT: Final = 1_572_864
MAX_ANNOTATIONS: Final = 262_144
"""Characters of all annotations that an API server takes."""
MAX_INT32: Final = 2**31 - 1

CONFLICT, NOT_FOUND, EXISTS, INVALID, TOO_LARGE = "conflict", "not found", "already exists", "invalid", "too large"
OF_THE_API_SERVER: Final = frozenset({CONFLICT, NOT_FOUND, EXISTS, INVALID, TOO_LARGE})
"""First words of a refusal that is not an admission's."""

_BETWEEN: Final = " > "
_METADATA: Final = ("labels", "annotations", "ownerReferences", "finalizers", "generateName")

Fields = dict[str, Any]
"""Values by path: the fields of a document that managedFields know."""
Admission = Callable[[User, str, Document | None, Document | None], Document | None]
"""Takes the writer, the operation, the objects before and after; returns the object to store, or raises Refused."""


class Refused(Exception):  # noqa: N818 - it is an answer
    """A write is refused; the text says by what."""


class Request(Struct, frozen=True, kw_only=True):
    """What a client sends: a whole object (PUT, POST), a merge patch, or an apply; `force` is that of an apply."""

    verb: str
    body: Document
    manager: str = "checkout"
    force: bool = True


class ApiServer:
    """The state of one Lease, and what happens to requests about it."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.stored: Document | None = None
        self.revision = 100

    def get(self) -> Document | None:
        """Return the stored object, which is not to be changed."""
        return self.stored

    def send(self, user: User, request: Request, clock: int) -> Document | None:
        """Store what a client sends. Raises Refused."""
        self.stored, self.revision = self.outcome(self.stored, user, request, clock, self.admission), self.revision + 1
        return self.stored

    def outcome(
        self, old: Document | None, user: User, request: Request, clock: int, admission: Admission
    ) -> Document | None:
        """Return the object that a write would leave over this one, None if it is deleted. Raises Refused."""
        if request.verb == DELETE:
            return _deleted(old, user, clock, admission)
        if old is None or request.verb == CREATE:
            if request.verb not in (CREATE, APPLY):
                raise Refused(NOT_FOUND)
            if old is not None:
                raise Refused(EXISTS)
            return self._stored(None, user, _created(request, clock), admission)
        wanted = request.body.get("metadata", {}).get("resourceVersion")
        if wanted is None and request.verb == PUT:
            raise Refused(f"{INVALID}: resourceVersion")  # AllowUnconditionalUpdate of leases is false
        if wanted not in (None, old["metadata"]["resourceVersion"]):
            raise Refused(CONFLICT)
        return self._stored(old, user, _updated(old, request, clock), admission)

    def _stored(self, old: Document | None, user: User, new: Document, admission: Admission) -> Document | None:
        admitted = self._admitted(old, user, new, admission)
        if stored_size(admitted) > ETCD_LIMIT and new["metadata"].get("managedFields"):
            # An API server tries once more without managedFields.
            new = new | {"metadata": _without(new["metadata"], "managedFields")}
            admitted = self._admitted(old, user, new, admission)
        if stored_size(admitted) > ETCD_LIMIT:
            raise Refused(TOO_LARGE)
        metadata = admitted["metadata"]
        if old is not None and admitted == old:
            return old
        if old is not None and metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            return None
        return admitted | {"metadata": metadata | {"resourceVersion": str(self.revision + 1)}}

    def _admitted(self, old: Document | None, user: User, new: Document, admission: Admission) -> Document:
        admitted = admission(user, "CREATE" if old is None else "UPDATE", old, new)
        assert admitted is not None
        problem = invalidity(admitted, old)
        if problem:
            raise Refused(f"{INVALID}: {problem}")
        return admitted


def _deleted(old: Document | None, user: User, clock: int, admission: Admission) -> Document | None:
    if old is None:
        raise Refused(NOT_FOUND)
    admission(user, "DELETE", old, None)
    if not old["metadata"].get("finalizers"):
        return None
    marked = {"deletionTimestamp": format_time(whole(clock)), "deletionGracePeriodSeconds": 0}
    return old | {"metadata": marked | old["metadata"]}


def invalidity(new: Document, old: Document | None) -> str:
    """Return why an API server refuses an object by itself, "" if it does not."""
    spec, metadata = new["spec"], new["metadata"]
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and not 0 < duration <= MAX_INT32:
        return "leaseDurationSeconds"
    if transitions is not None and not 0 <= transitions <= MAX_INT32:
        return "leaseTransitions"
    if spec.get("preferredHolder") and not spec.get("strategy"):
        return "strategy"
    annotations = metadata.get("annotations") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        return "annotations"
    if {"orphan", "foregroundDeletion"} <= set(metadata.get("finalizers") or ()):
        return "finalizers"
    before = () if old is None else old["metadata"].get("finalizers") or ()
    if metadata.get("deletionTimestamp") and set(metadata.get("finalizers") or ()) - set(before):
        return "finalizers"
    return ""


def stored_size(document: Document) -> int:
    """About the bytes that etcd is sent."""
    metadata, spec = document["metadata"], document["spec"]
    maps = [metadata.get(name) or {} for name in ("labels", "annotations")]
    total = sum(len(key) + len(value) + 10 for one in maps for key, value in one.items())
    owners, finalizers = metadata.get("ownerReferences") or (), metadata.get("finalizers") or ()
    total += sum(sum(len(str(value)) + 3 for value in owner.values()) + 6 for owner in owners)
    total += sum(len(one) + 3 for one in finalizers) + sum(len(str(value)) + 4 for value in spec.values())
    entries = metadata.get("managedFields") or ()
    return total + sum(_entry_size(entry["fieldsV1"]) + 150 for entry in entries) + 300


def _entry_size(fields: Document) -> int:
    return sum(len(key) + 6 + _entry_size(child) for key, child in fields.items())


# ---- what a write makes of an object --------------------------------------------------------------------------------


def _created(request: Request, clock: int) -> Document:
    new = _cleaned(request.body)
    metadata = new["metadata"]
    metadata |= {
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": "6a1d4c52-8f4e-4d53-9d0c-5a2f5f0c7e11",
        "creationTimestamp": format_time(whole(clock)),
    }
    sent = [_entry(one) for one in metadata.pop("managedFields", ())]
    fields = frozenset(fields_of(new))
    if request.verb == APPLY:
        entries: tuple[Entry, ...] = (Entry(request.manager, APPLY, whole(clock), fields),) if fields else ()
    else:
        entries = after_update(sent, request.manager, fields, frozenset(), clock)
    return _with_entries(new, entries)


def _updated(old: Document, request: Request, clock: int) -> Document:
    if request.verb == APPLY:
        return _applied(old, request, clock)
    if request.verb == MERGE:
        new = merged(old, request.body)
    else:
        new = copied(request.body)
        kept = {name: value for name, value in old["metadata"].items() if name not in (*_METADATA, "managedFields")}
        new["metadata"] = new.get("metadata", {}) | kept
    new = _cleaned(new)
    metadata = new["metadata"]
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    stored = [_entry(one) for one in old["metadata"].get("managedFields") or ()]
    sent = metadata.pop("managedFields", None)
    # An empty list that is sent, or one empty entry, empties the stored one (isResetManagedFields of apimachinery).
    begins = stored if sent is None else [_entry(one) for one in sent if one]
    if not begins:
        return new
    before, after = fields_of(old), fields_of(new)
    set_now = frozenset(path for path, value in after.items() if path not in before or before[path] != value)
    entries = after_update(begins, request.manager, set_now, frozenset(before.keys() - after.keys()), clock)
    if before == after and differs_in_times_only(entries, stored):
        entries = in_order(stored)
    return _with_entries(new, entries)


def _applied(old: Document, request: Request, clock: int) -> Document:
    before, wanted = fields_of(old), fields_of(_cleaned(request.body))
    known = [_entry(one) for one in old["metadata"].get("managedFields") or ()]
    entries = {entry.key: entry for entry in known}
    if not entries and before:
        first = Entry(BEFORE_FIRST_APPLY, UPDATE, whole(clock), frozenset(before))
        entries = {first.key: first}
    mine = Entry(request.manager, APPLY, None, frozenset(wanted))
    own = entries.pop(mine.key, Entry(request.manager, APPLY, None, frozenset()))
    of_others: frozenset[str] = frozenset().union(*(entry.fields for entry in entries.values()))
    if not request.force and any(path in of_others and before.get(path) != value for path, value in wanted.items()):
        raise Refused(CONFLICT)
    dropped = own.fields - mine.fields - of_others
    after = {path: value for path, value in before.items() if path not in dropped} | wanted
    set_now = {path for path, value in after.items() if path not in before or before[path] != value}
    others = [
        Entry(entry.manager, entry.operation, entry.time, entry.fields - set_now - dropped, entry.version)
        for entry in entries.values()
    ]
    time = whole(clock) if after != before else own.time
    kept = [entry for entry in (*others, Entry(request.manager, APPLY, time, mine.fields)) if entry.fields]
    return _with_entries(_document_of(after, old), in_order(kept))


def copied(document: Document) -> Document:
    """Return a copy of a document, for a tenth of what `copy.deepcopy` takes."""
    decoded: Document = msgspec.json.decode(msgspec.json.encode(document))
    return decoded


def merged(old: Document, patch: Document) -> Document:
    """Return the object after a JSON merge patch."""
    new = copy.copy(old)
    for key, value in patch.items():
        if isinstance(value, dict):
            before = new.get(key)
            new[key] = merged(before if isinstance(before, dict) else {}, value)
        elif value is None:
            new.pop(key, None)
        else:
            new[key] = value
    return new


def _cleaned(document: Document) -> Document:
    """A copy without what an API server leaves out: nulls and empty texts, lists and maps."""
    given = document.get("metadata") or {}
    metadata = {key: value for key, value in given.items() if value or value == 0 or key == "managedFields"}
    metadata.pop("resourceVersion", None)
    spec = {key: value for key, value in (document.get("spec") or {}).items() if value is not None}
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return head | {"metadata": metadata, "spec": spec}


def _without(metadata: Document, name: str) -> Document:
    return {key: value for key, value in metadata.items() if key != name}


# ---- managedFields --------------------------------------------------------------------------------------------------


def fields_of(document: Document) -> Fields:
    """The value of each field that managedFields know, by its path; a map or list of metadata is one, too."""
    fields: Fields = {f"f:spec > f:{name}": value for name, value in document["spec"].items() if value is not None}
    for name in _METADATA:
        value = document["metadata"].get(name)
        if value:
            place = f"f:metadata > f:{name}"
            fields[place] = value if isinstance(value, str) else True
            fields |= {f"{place}{_BETWEEN}{step}": item for step, item in _items(name, value)}
    return fields


def _items(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if name in ("labels", "annotations"):
        yield from ((f"f:{key}", item) for key, item in value.items())
    elif name == "ownerReferences":
        yield from ((f'k:{{"uid":"{item["uid"]}"}}', item) for item in value)
    elif name == "finalizers":
        yield from ((f'v:"{item}"', item) for item in value)


def _document_of(fields: Fields, old: Document) -> Document:
    """The reverse of `fields_of`; everything else is that of an older document."""
    spec: Document = {}
    metadata: Document = {}
    for path, value in fields.items():
        steps = path.split(_BETWEEN)
        name = steps[1].removeprefix("f:")
        if steps[0] == "f:spec":
            spec[name] = value
        elif name == "generateName":
            metadata[name] = value
        elif len(steps) == 3 and name in ("labels", "annotations"):
            metadata.setdefault(name, {})[steps[2].removeprefix("f:")] = value
        elif len(steps) == 3:
            metadata.setdefault(name, []).append(value)
    rest = {name: value for name, value in old["metadata"].items() if name not in (*_METADATA, "managedFields")}
    return old | {"metadata": rest | metadata, "spec": spec}


def _with_entries(document: Document, entries: tuple[Entry, ...]) -> Document:
    if entries:
        document["metadata"]["managedFields"] = [_written(entry) for entry in entries]
    else:
        document["metadata"].pop("managedFields", None)
    return document


def _entry(document: Mapping[str, Any]) -> Entry:
    time = document.get("time")
    return Entry(
        document.get("manager", ""),
        document.get("operation", UPDATE),
        parse_seconds(time) if time else None,
        frozenset(_members(document.get("fieldsV1") or {}, ())),
        document.get("apiVersion", ""),
        document.get("subresource", ""),
    )


def _written(entry: Entry) -> Document:
    root: Document = {}
    for path in sorted(entry.fields):
        node = root
        for step in path.split(_BETWEEN):
            node = node.setdefault(step, {})
    for path in entry.fields:
        node = root
        for step in path.split(_BETWEEN):
            node = node[step]
        if node:
            node["."] = {}
    time = {} if entry.time is None else {"time": format_time(entry.time)}
    below = {"subresource": entry.subresource} if entry.subresource else {}
    head = {"manager": entry.manager, "operation": entry.operation, "apiVersion": entry.version}
    return head | time | {"fieldsType": "FieldsV1", "fieldsV1": root} | below


def _members(node: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for key, child in node.items():
        if key == ".":
            yield _BETWEEN.join(path)
        elif child:
            yield from _members(child, (*path, key))
        else:
            yield _BETWEEN.join((*path, key))
