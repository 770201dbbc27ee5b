"""Writes that remove or forge the API server's stamps, the first step of a two-step steal."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden
from webhook.api.managed_fields import stamp_of
from webhook.api.objects import ObjectMeta
from webhook.rules.change import LeaseChange
from webhook.rules.expiry import BOUND
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.rule import LEASES, WRITES, Rule
from webhook.rules.statement import Statement, literal
from webhook.rules.tampering import Lists, tampering_of_create, tampering_of_update
from webhook.rules.times import instant

_FIELD: Final = "metadata.managedFields"
LONGEST_VERSION: Final = 19
"""Digits of a resourceVersion, which is a revision of etcd: a positive signed number of 64 bits."""
_LEAVE: Final = (
    "leave managedFields out of the request; this comes from sending back an object with edited "
    "metadata.managedFields; delete that field from your file"
)


def managed_fields_are_not_tampered_with(change: LeaseChange) -> Iterable[Finding]:
    """A write may not bring managedFields that no API server would make of it.

    They hold the time of the last renewal, which a write may neither remove nor move. What an earlier write stored is
    never held against a later one. Renaming and merging entries is legal. `kubectl` moving a manifest with renewTime
    from client-side to server-side apply is refused as well, and kubectl itself calls that refusal non-fatal.
    """
    problem = _of_create(change) if change.is_create else _of_update(change)
    if problem is None:
        return NOTHING
    happened = Statement(f"this write {literal(problem)}")
    return (Finding(forbidden(_FIELD, f"this write {problem}; {_LEAVE}"), happened=happened),)


def _of_update(change: LeaseChange) -> str | None:
    renewed = change.new_spec.renew_time is not None and change.new_spec.renew_time != change.old_spec.renew_time
    if not renewed and change.new_metadata.managed_fields == change.old_metadata.managed_fields:
        return None
    return tampering_of_update(
        Lists(
            new=change.new_entries,
            old=change.old_entries,
            was_set=change.was_set,
            renewed=renewed,
            has_renew_time=change.new_spec.renew_time is not None,
            renew_time=instant(change.new_renew_time),
            now=change.now,
        )
    )


def _of_create(change: LeaseChange) -> str | None:
    if _was_stored(change.new_metadata):
        return None  # it is checked as if it were created
    if change.new_entries:
        return tampering_of_create(change.new_entries, change.was_set)
    return _created_without_entries(change)


def _was_stored(metadata: ObjectMeta) -> bool:
    """Whether the resourceVersion is one of a stored object, with which no API server creates another one.

    It does create one with 0 and, by a POST, with text that does not parse as a number (Create in
    `pkg/storage/etcd3/store.go` of apiserver).
    """
    version = metadata.resource_version or ""
    return version.isascii() and version.isdigit() and len(version) <= LONGEST_VERSION and int(version) > 0


def _created_without_entries(change: LeaseChange) -> str | None:
    """A manifest has no entries either, but what an API server sends has just been given a uid and a time."""
    metadata = change.new_metadata
    created = stamp_of(metadata.creation_timestamp)
    if not change.was_set or not metadata.uid or created is None or abs(change.now - created) > BOUND:
        return None
    return "creates the object without managedFields"


RULES = (
    Rule(
        id="renewal-stamp-tampered",
        check=managed_fields_are_not_tampered_with,
        resources=LEASES,
        operations=WRITES,
        source="ours: a client may send any managedFields, and apimachinery's field manager keeps invented entries",
    ),
)
