"""The renewal that nearly every review brings: the holder moved renewTime on a little, and nothing else happened.

No rule has anything to say about it, and a few comparisons tell. This is a promise about all rules together, so a test
asks every rule about each renewal that is called quiet here; whatever is not quiet goes to the rules.
It costs a third of asking them, and the API server waits for us in line with somebody's write.
"""

from functools import lru_cache
from typing import Annotated, Final, TypeGuard

import msgspec
from msgspec import Meta, Raw, Struct

from webhook.api import formats, micro_time
from webhook.api.objects import ObjectMeta
from webhook.api.request import NO_OPTIONS, Operation
from webhook.rules.change import LeaseChange
from webhook.rules.renew_time import is_ahead

_USUAL_TIME: Final = len("2026-01-31T12:00:00Z")


class _UsualEntry(Struct, frozen=True, gc=False):
    time: Annotated[str, Meta(min_length=_USUAL_TIME, max_length=_USUAL_TIME)]


_usual_entries: Final = msgspec.json.Decoder(Annotated[list[_UsualEntry], Meta(min_length=1)])
"""Takes managedFields whose entries all have a time of the usual length, which no unreadable time has."""


def is_quiet_renewal(change: LeaseChange) -> bool:
    """Whether a write is a renewal about which every rule is silent; False says nothing."""
    new, old = change.new, change.old
    renewed, before = change.new_renew_time, change.old_renew_time
    return (
        isinstance(renewed, int)
        and isinstance(before, int)
        and micro_time.FIRST_READABLE <= before < renewed < micro_time.AFTER_LAST_READABLE
        and new.holder_identity == old.holder_identity
        and new.acquire_time == old.acquire_time
        and new.lease_duration_seconds == old.lease_duration_seconds
        and (new.lease_duration_seconds or 0) > 0
        and new.lease_transitions == old.lease_transitions
        and (new.lease_transitions or 0) >= 0
        and new.strategy is None
        and new.preferred_holder is None
        and change.binding is None
        and change.request.operation is Operation.UPDATE
        and change.request.options is NO_OPTIONS
        and _metadata_is_bare(change.new_metadata, change.old_metadata)
        and (renewed <= change.now or not is_ahead(renewed, change.now, change.limits.renew_time_in_future))
        and _entries_are_usual(change.new_metadata.managed_fields)
    )


def _entries_are_usual(managed_fields: Raw) -> bool:
    try:
        _usual_entries.decode(managed_fields)
    except msgspec.ValidationError:
        return False
    return True


def _metadata_is_bare(new: ObjectMeta, old: ObjectMeta) -> bool:
    """Whether metadata says who and where, as before, and nothing more."""
    return (
        new.name == old.name
        and new.namespace == old.namespace
        and new.uid == old.uid
        and new.creation_timestamp == old.creation_timestamp
        and bool(new.resource_version)
        and new.labels is None
        and new.annotations is None
        and new.owner_references is None
        and new.finalizers is None
        and new.generate_name is None
        and new.generation is None
        and old.generation is None
        and new.deletion_timestamp is None
        and old.deletion_timestamp is None
        and new.deletion_grace_period_seconds is None
        and _is_short(new.name, formats.LONGEST_NAME)
        and _is_short(new.namespace, formats.LONGEST_LABEL)
        and _is_legal(new.name, new.namespace)
    )


def _is_short(text: str | None, longest: int) -> TypeGuard[str]:
    return text is not None and 0 < len(text) <= longest


# Only short texts come here, so the memory is bounded, whoever sends reviews.
@lru_cache(maxsize=4096)
def _is_legal(name: str, namespace: str) -> bool:
    return not (formats.path_segment(name) or formats.dns_label(namespace))
