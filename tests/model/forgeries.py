"""Lists of managedFields as an attacker sends them: entries redated, disowned, dropped, renamed and invented."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tests.model.api_server import Labels, Lease, Write
from tests.model.managed_fields import ANCIENT_CHANGES, APPLY, SECOND, UPDATE, VERSION, Entry

MANAGER: Final = "kubectl-edit"
OLD: Final = 1_577_836_800 * SECOND
"""2020-01-01T00:00:00Z."""
MINUTE: Final = 60 * SECOND

Send = Callable[[Lease, int], Write | None]
Invented = Callable[[int], tuple[Entry, ...]]
"""Entries that are added, by the true time."""


def nothing(now: int) -> tuple[Entry, ...]:
    return ()


def planted(
    *fields: str, time: int | None = OLD, manager: str = "bogus", operation: str = UPDATE, version: str = VERSION
) -> Invented:
    """One entry that was not there, at a fixed time."""
    entry = Entry(manager, operation, time, frozenset(fields), version)
    return lambda _now: (entry,)


def ahead_of_now(by: int, count: int) -> Invented:
    """Entries of the future, each of which owns a label of its own."""
    return lambda now: tuple(
        Entry(f"m{number}", UPDATE, now // SECOND * SECOND + by, frozenset({f"labels.x{number}"}))
        for number in range(count)
    )


BELOW: Final = ("f:spec > f:renewTime > f:x", "f:spec > f:holderIdentity > f:x")
"""Members below scalars, which the API server never takes away."""
DEEP: Final = "f:metadata > <deep 1200>"


def with_more(*fields: str) -> Callable[[Entry, int], Entry]:
    """The entry that owns renewTime owns more."""

    def more(entry: Entry, now: int) -> Entry:
        return replace(entry, fields=entry.fields | set(fields)) if "renewed" in entry.fields else entry

    return more


def renamed(by: int) -> Callable[[Entry, int], Entry]:
    """The entry that owns renewTime becomes ancient-changes, of another time."""

    def changed(entry: Entry, now: int) -> Entry:
        if "renewed" not in entry.fields:
            return entry
        return replace(entry, manager=ANCIENT_CHANGES, time=now // SECOND * SECOND + by)

    return changed


def as_apply(entry: Entry, now: int) -> Entry:
    """Every entry becomes one of an apply."""
    return replace(entry, operation=APPLY)


def labeled(lease: Lease) -> Labels:
    labels = dict(lease.labels)
    return tuple(sorted({**labels, "touched": "no" if labels.get("touched") == "yes" else "yes"}.items()))


def unlabelled(lease: Lease) -> Labels:
    return lease.labels[:-1]


def forge(
    change: Callable[[Entry, int], Entry | None],
    labels: Callable[[Lease], Labels] = labeled,
    add: Invented = nothing,
    manager: str = MANAGER,
    change_of_spec: Callable[[Lease, int], Write | None] | None = None,
    **spec: object,
) -> Send:
    """Every entry changed (None drops it), some added, carried by labels, by a change of spec, or by a whole write."""

    def send(lease: Lease, now: int) -> Write | None:
        changed = (change(entry, now) for entry in lease.entries)
        entries = (*(entry for entry in changed if entry is not None), *add(now))
        if change_of_spec is not None:
            write = change_of_spec(lease, now)
            return write and replace(write, manager=manager, entries=entries)
        return Write(manager, replace(lease.spec, **spec), labels(lease), entries=entries)

    return send


def as_it_is(lease: Lease) -> Labels:
    return lease.labels


def same(entry: Entry, now: int) -> Entry:
    return entry


def dated(to: int) -> Callable[[Entry, int], Entry]:
    def dated(entry: Entry, now: int) -> Entry:
        return replace(entry, time=to)

    return dated


def ahead(by: int) -> Callable[[Entry, int], Entry]:
    def ahead(entry: Entry, now: int) -> Entry:
        return replace(entry, time=now // SECOND * SECOND + by)

    return ahead


def earlier(by: int) -> Callable[[Entry, int], Entry]:
    def earlier(entry: Entry, now: int) -> Entry:
        return replace(entry, time=None if entry.time is None else entry.time - by)

    return earlier


def disowned(entry: Entry, now: int) -> Entry | None:
    fields = entry.fields - {"renewed"}
    return replace(entry, fields=fields) if fields else None


def dropped(entry: Entry, now: int) -> None:
    return None


def undated(entry: Entry, now: int) -> Entry:
    return replace(entry, time=None)
