"""The renewal that nearly every review brings: the holder moved renewTime on a little, and nothing else happened.

No rule has anything to say about it, and a few comparisons tell. This is a promise about all rules together, so a test
asks every rule about each renewal that is called quiet here; whatever is not quiet goes to the rules.
It costs a third of asking them, and the API server waits for us in line with somebody's write.
"""

from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from webhook.api import formats, micro_time
from webhook.api.managed_fields import ANCIENT_CHANGES, stamp_of
from webhook.api.objects import Lease, LeaseSpec, ObjectMeta, OwnerReference
from webhook.api.request import NO_OPTIONS, AdmissionRequest, Operation
from webhook.rules.binding import Binding
from webhook.rules.limits import Limits
from webhook.rules.time_ahead import is_ahead
from webhook.rules.times import normalized

_USUAL_TIME: Final = len("2026-01-31T12:00:00Z")
_TIME: Final = b'"time":"'
_TIME_LENGTH: Final = len(_TIME)
_SAMPLE: Final = "1999-12-31T23:59:58Z"
_LONGEST_REMEMBERED: Final = 2048
_MOST_REMEMBERED: Final = 1024
_OWNED: Final = b"{}"
_ABSENT: Final = Raw(b"")


class _UsualSpec(Struct, frozen=True, gc=False):
    renew_time: Raw = field(default=_ABSENT, name="f:renewTime")


class _UsualFields(Struct, frozen=True, gc=False):
    spec: _UsualSpec | None = field(default=None, name="f:spec")


class _UsualEntry(Struct, frozen=True, gc=False):
    manager: str
    time: Annotated[str, Meta(min_length=_USUAL_TIME, max_length=_USUAL_TIME)]
    fields: _UsualFields = field(name="fieldsV1")

    @property
    def renew_time(self) -> Raw:
        """What the entry has at spec.renewTime."""
        return self.fields.spec.renew_time if self.fields.spec is not None else _ABSENT


_usual_entries: Final = msgspec.json.Decoder(Annotated[list[_UsualEntry], Meta(min_length=1)])
"""Takes managedFields whose entries all have a time of the usual length, which no unreadable time has."""


def is_quiet_renewal(request: AdmissionRequest, now: int, limits: Limits, binding: Binding | None) -> bool:
    """Whether a write is a renewal about which every rule is silent; False says nothing.

    Arguments are those of `change_made_by`; the change itself is not made, because no rule will look at it.
    """
    new, old = request.new, request.old
    return (
        isinstance(new, Lease)
        and isinstance(old, Lease)
        and binding is None
        and request.operation is Operation.UPDATE
        and request.options is NO_OPTIONS
        and _only_renew_time_moved_on(new.spec, old.spec, now, limits)
        and _metadata_is_bare(new.metadata, old.metadata)
    )


def _only_renew_time_moved_on(new: LeaseSpec, old: LeaseSpec, now: int, limits: Limits) -> bool:
    renewed, before = normalized(new.renew_time), normalized(old.renew_time)
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
        and (renewed <= now or not is_ahead(renewed, now, limits.renew_time_in_future))
    )


def _only_the_renewals_stamp_moved(new: Raw, old: Raw) -> bool:
    """Whether both lists are equal but for the time of the one entry that owns spec.renewTime.

    That entry is the first in the list that has a time or the last; from any other place the rules decide.
    """
    after, before = bytes(new), bytes(old)
    return _moved_behind(after.find(_TIME), after, before) or _moved_behind(after.rfind(_TIME), after, before)


def _moved_behind(place: int, after: bytes, before: bytes) -> bool:
    begin = place + _TIME_LENGTH
    end = begin + _USUAL_TIME
    head, tail = after[:begin], after[end:]
    if head != before[:begin] or tail != before[end:]:
        return False
    if _known_tails.get(head) != tail:
        if place < 0 or not _is_of_the_renewal(head, tail):
            return False
        _remember(head, tail)
    return _stamps[after[begin:end]] and _stamps[before[begin:end]]


def _is_of_the_renewal(head: bytes, tail: bytes) -> bool:
    """Whether the time between both texts is that of the one entry that owns spec.renewTime."""
    try:
        entries = _usual_entries.decode(head + _SAMPLE.encode() + tail)
    except (msgspec.DecodeError, RecursionError):
        return False
    owners = [entry for entry in entries if entry.renew_time is not _ABSENT]
    if len(owners) != 1:
        return False
    owner = owners[0]
    return owner.time == _SAMPLE and bytes(owner.renew_time) == _OWNED and owner.manager != ANCIENT_CHANGES


_known_tails: Final[dict[bytes, bytes]] = {}
"""What stands behind the time of a renewal, by what stands before it: the same at every renewal of a lease."""


def _remember(head: bytes, tail: bytes) -> None:
    """Keep short texts only, and few: whoever sends reviews chooses them."""
    if len(head) + len(tail) <= _LONGEST_REMEMBERED:
        if len(_known_tails) >= _MOST_REMEMBERED:
            _known_tails.clear()
        _known_tails[head] = tail


class _Stamps(dict[bytes, bool]):
    """Whether a text of the usual length is a stamp; most were asked for before."""

    def __missing__(self, time: bytes) -> bool:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[time] = is_stamp = time.isascii() and stamp_of(time.decode()) is not None
        return is_stamp


_stamps: Final = _Stamps()


def _metadata_is_bare(new: ObjectMeta, old: ObjectMeta) -> bool:
    """Whether metadata says who, where and when written, as before, at most which node it belongs to, and no more."""
    return (
        new.name == old.name
        and new.namespace == old.namespace
        and new.uid == old.uid
        and new.creation_timestamp == old.creation_timestamp
        and bool(new.resource_version)
        and new.labels is None
        and old.labels is None
        and new.annotations is None
        and new.owner_references == old.owner_references
        and (new.owner_references is None or _is_one_usual_owner(new.owner_references))
        and new.finalizers is None
        and new.generate_name is None
        and new.generation is None
        and old.generation is None
        and new.deletion_timestamp is None
        and old.deletion_timestamp is None
        and new.deletion_grace_period_seconds is None
        and (name := new.name) is not None
        and (namespace := new.namespace) is not None
        and 0 < len(name) <= formats.LONGEST_NAME
        and 0 < len(namespace) <= formats.LONGEST_LABEL
        and _is_legal(name, namespace)
        and _only_the_renewals_stamp_moved(new.managed_fields, old.managed_fields)
    )


def _is_one_usual_owner(owners: list[OwnerReference | None]) -> bool:
    """As the lease of a node has, which makes heartbeats most of the writes of a large cluster."""
    if len(owners) != 1 or (owner := owners[0]) is None:
        return False
    return owner.api_version == "v1" and owner.kind == "Node" and bool(owner.name) and bool(owner.uid)


# Only short texts come here, so the memory is bounded, whoever sends reviews.
@lru_cache(maxsize=4096)
def _is_legal(name: str, namespace: str) -> bool:
    return not (formats.path_segment(name) or formats.dns_label(namespace))
