"""The field manager of apimachinery (`pkg/util/managedfields`) as far as a Lease and its attackers go.

The list is the client's: what it sends is where the API server starts. Invented entries, times and paths are kept; a
field that a write sets is taken from every entry and given to the writer's. A path below a scalar is not a field, so it
is never taken away. Entries of an apiVersion that is not served vanish, one that does not parse empties the list (since
Kubernetes 1.37: leaves the stored one), and of Update entries ten are kept. All instants are microseconds since 1970,
entry times whole seconds of the server's clock.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.kubernetes.times import format_time

SECOND: Final = 1_000_000
UPDATE: Final = "Update"
APPLY: Final = "Apply"
VERSION: Final = "coordination.k8s.io/v1"
SERVED: Final = frozenset({VERSION, "coordination.k8s.io/v1beta1"})
MAX_UPDATE_MANAGERS: Final = 10
BEFORE_FIRST_APPLY: Final = "before-first-apply"
ANCIENT_CHANGES: Final = "ancient-changes"

WIRE_NAMES: Final = {
    "holder": "holderIdentity",
    "duration": "leaseDurationSeconds",
    "acquired": "acquireTime",
    "renewed": "renewTime",
    "transitions": "leaseTransitions",
    "strategy": "strategy",
    "preferred": "preferredHolder",
}
LABELS: Final = "labels"
"""The map of labels itself, which its first writer owns beside its own label."""
OWNERS: Final = "owners"
"""The list of ownerReferences itself; an item is `owners.<uid>`."""
FINALIZERS: Final = "finalizers"
"""The set of finalizers itself; a member is `finalizers.<value>`."""

Path = tuple[str, ...]
_PLACES: Final[Mapping[Path, str]] = {
    ("f:metadata", "f:labels"): LABELS,
    ("f:metadata", "f:ownerReferences"): OWNERS,
    ("f:metadata", "f:finalizers"): FINALIZERS,
    **{("f:spec", f"f:{wire}"): name for name, wire in WIRE_NAMES.items()},
}
_PATHS: Final = {name: path for path, name in _PLACES.items()}
_BETWEEN: Final = " > "
_DEEP: Final = re.compile(r"<deep (\d+)>")
_UID: Final = re.compile(r'k:\{"uid":"(.*)"\}')
_VALUE: Final = re.compile(r'v:"(.*)"')

Key = tuple[str, str, str, str]


class Entry(Struct, frozen=True):
    """One entry of managedFields.

    `fields` are names of `Spec`, LABELS, `labels.<key>`, OWNERS, `owners.<uid>`; any other path is written out with its
    steps, `f:spec > f:renewTime > f:x`, and its last step may be `<deep 5000>`.
    """

    manager: str
    operation: str
    time: int | None
    fields: frozenset[str]
    version: str = VERSION
    subresource: str = ""

    @property
    def key(self) -> Key:
        """What the API server knows an entry by; an apply is the same one in every version."""
        return self.manager, self.operation, "" if self.operation == APPLY else self.version, self.subresource


def whole(clock: int) -> int:
    """An entry time: whole seconds, the rest cut off."""
    return clock // SECOND * SECOND


# ---- what a write leaves --------------------------------------------------------------------------------------------


def fails(sent: Iterable[Entry]) -> bool:
    """Return whether the field manager cannot use a list: the apiVersion of an entry does not parse."""
    return any(entry.version.count("/") > 1 for entry in sent)


def after_update(
    sent: Iterable[Entry], manager: str, set_now: frozenset[str], removed: frozenset[str], clock: int
) -> tuple[Entry, ...]:
    """The list after an update or create that set and removed fields; `sent` is the list that it starts from."""
    by_key = {entry.key: entry for entry in sent}
    if fails(by_key.values()):
        return ()
    lost = set_now | removed
    own_key = (manager, UPDATE, VERSION, "")
    own = by_key.pop(own_key, Entry(manager, UPDATE, None, frozenset()))
    kept = [replace(entry, fields=entry.fields - lost) for entry in by_key.values() if entry.version in SERVED]
    time = whole(clock) if set_now else own.time
    kept.append(replace(own, fields=(own.fields - lost) | set_now, time=time))
    return in_order(_capped([entry for entry in kept if entry.fields]))


def in_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """As the API server prints them."""
    return tuple(
        sorted(
            entries,
            key=lambda entry: (entry.operation, entry.time or 0, entry.manager, entry.version, entry.subresource),
        )
    )


def differs_in_times_only(some: Iterable[Entry], others: Iterable[Entry]) -> bool:
    """Return whether the API server takes two lists for the same and keeps the stored one."""
    return {entry.key: entry.fields for entry in some} == {entry.key: entry.fields for entry in others}


def _capped(entries: list[Entry]) -> list[Entry]:
    """`capManagers`, step by step: the oldest Update entries of a version are folded into one, by the time of the last.

    A bucket that is not the oldest is folded into itself and removed, with all that it owned.
    """
    updates = sorted(
        (entry for entry in entries if entry.operation == UPDATE),
        key=lambda entry: (entry.time or 0, f'{entry.manager}"', entry.version, entry.subresource),
    )
    managed = {entry.key: entry for entry in updates}
    surplus = len(updates) - MAX_UPDATE_MANAGERS
    first_of: dict[str, Key] = {}
    for entry in updates:
        if surplus <= 0:
            break
        bucket = (ANCIENT_CHANGES, UPDATE, entry.version, "")
        first = first_of.setdefault(entry.version, entry.key)
        if first == entry.key:
            continue
        if bucket not in managed:
            oldest = managed.pop(first)
            managed[bucket] = replace(oldest, manager=ANCIENT_CHANGES, subresource="")
        fields = entry.fields | managed[bucket].fields
        managed[bucket] = replace(managed[bucket], fields=fields, time=entry.time)
        del managed[entry.key]
        surplus -= 1
    return [*(entry for entry in entries if entry.operation != UPDATE), *managed.values()]


# ---- as JSON --------------------------------------------------------------------------------------------------------


def entry_document(entry: Entry) -> dict[str, Any]:
    """An entry as the API server prints it, deep places as one text."""
    time = {} if entry.time is None else {"time": format_time(entry.time)}
    subresource = {"subresource": entry.subresource} if entry.subresource else {}
    return {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.version,
        **time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields_document(sorted(map(_path_of, entry.fields))),
        **subresource,
    }


def fields_of(document: Mapping[str, Any]) -> frozenset[str]:
    """The members of a set: whatever is `{}`, or has the key `.`."""
    return frozenset(map(_name_of, _members(document, ())))


def _fields_document(paths: list[Path]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path in paths:
        node = root
        for step in path:
            deep = _DEEP.fullmatch(step)
            if deep:
                node["f:a"] = f"<deep {int(deep[1]) - 1}>"
            else:
                node = node.setdefault(step, {})
    for path in paths:
        node = root
        for step in path:
            node = node.get(step, {})
        if node:
            node["."] = {}
    return root


def _members(node: Mapping[str, Any], path: Path) -> Iterator[Path]:
    for key, child in node.items():
        if key == ".":
            yield path
        elif isinstance(child, str):
            deep = _DEEP.fullmatch(child)
            levels = int(deep[1]) if deep else 0
            yield (*path, f"<deep {levels + 1}>") if key == "f:a" else (*path, key, child)
        elif child:
            yield from _members(child, (*path, key))
        else:
            yield (*path, key)


def _name_of(path: Path) -> str:
    if path in _PLACES:
        return _PLACES[path]
    place = _PLACES.get(path[:-1])
    uid = _UID.fullmatch(path[-1])
    value = _VALUE.fullmatch(path[-1])
    if place == LABELS and path[-1].startswith("f:"):
        return f"{LABELS}.{path[-1][2:]}"
    if place == OWNERS and uid:
        return f"{OWNERS}.{uid[1]}"
    if place == FINALIZERS and value:
        return f"{FINALIZERS}.{value[1]}"
    return _BETWEEN.join(path)


def _path_of(name: str) -> Path:
    if name in _PATHS:
        return _PATHS[name]
    if name.startswith("f:"):
        return tuple(name.split(_BETWEEN))
    place, _, rest = name.partition(".")
    steps = {LABELS: f"f:{rest}", OWNERS: f'k:{{"uid":"{rest}"}}', FINALIZERS: f'v:"{rest}"'}
    return (*_PATHS[place], steps[place])
