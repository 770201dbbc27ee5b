"""The fast path of a renewal: the holder moved renewTime ahead a little, and nothing else changed.

No rule finds anything in such a write, and a few comparisons show it. This is a promise about all rules together, so a
test evaluates every rule on each renewal that takes the fast path; any other write goes to the rules.

The shipped webhook configuration sends it hardly anything, because a match condition drops plain renewals in the API
server. The components `observe` and `bindings` replace it by `true`, so they send every renewal, and so does
a configuration that has no such condition. A renewal of a lease that the policy binds always goes to the rules.
"""

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

_UPDATE: Final = Operation.UPDATE
_USUAL_TIME: Final = len("2026-01-31T12:00:00Z")
_TIME: Final = b'"time":"'
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


def is_fast_renewal(request: AdmissionRequest, now: int, limits: Limits, binding: Binding | None) -> bool:
    """Whether a write is a renewal on which no rule can have a finding; False means that the rules must be evaluated.

    Arguments are those of `change_made_by`; the change itself is not made, because no rule will look at it.
    """
    new, old = request.new, request.old
    return (
        isinstance(new, Lease)
        and isinstance(old, Lease)
        and binding is None
        and request.operation is _UPDATE
        and request.options is NO_OPTIONS
        and (spec := new.spec_or_none) is not None
        and (spec_before := old.spec_or_none) is not None
        and (metadata := new.metadata_or_none) is not None
        and (metadata_before := old.metadata_or_none) is not None
        and _only_renew_time_moved_on(spec, spec_before, now, limits)
        and _metadata_is_bare(metadata, metadata_before)
        and _only_the_renewals_stamp_moved(metadata, bytes(metadata_before.managed_fields))
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


def _metadata_is_bare(new: ObjectMeta, old: ObjectMeta) -> bool:
    """Whether metadata has no more than names, times of the write and of creation, as before, and at most a node."""
    return (
        new.uid == old.uid
        and new.name == old.name
        and new.namespace == old.namespace
        and new.creation_timestamp == old.creation_timestamp
        and new.resource_version not in _NO_VERSION
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
    )


_NO_VERSION: Final = (None, "")


def _is_one_usual_owner(owners: list[OwnerReference | None]) -> bool:
    """As the lease of a node has, which makes heartbeats most of the writes of a large cluster."""
    if len(owners) != 1 or (owner := owners[0]) is None:
        return False
    return owner.api_version == "v1" and owner.kind == "Node" and bool(owner.name) and bool(owner.uid)


class _Sound(Struct, frozen=True, gc=False):
    """What stays the same from one renewal of a lease to the next, and is sound.

    `head` and `tail` are what stands in managedFields around the time of the one entry that owns spec.renewTime.
    """

    name: str | None
    namespace: str | None
    head: bytes
    tail: bytes
    size: int


_known: Final[dict[str | None, _Sound]] = {}
"""What was valid at the last renewal, by uid. Only equal texts count, so it does not matter who sends which uid."""


def _only_the_renewals_stamp_moved(new: ObjectMeta, before: bytes) -> bool:
    """Whether the lease is named soundly and both lists are equal but for the stamp of the renewal."""
    after = bytes(new.managed_fields)
    sound = _known.get(new.uid)
    if (
        sound is None
        or len(after) != sound.size
        or not after.startswith(sound.head)
        or not after.endswith(sound.tail)
        or new.name != sound.name
        or new.namespace != sound.namespace
    ):
        sound = _examined(new, after, after.find(_TIME)) or _examined(new, after, after.rfind(_TIME))
        if sound is None:
            return False
    begin = len(sound.head)
    end = begin + _USUAL_TIME
    return (
        len(before) == sound.size
        and before.startswith(sound.head)
        and before.endswith(sound.tail)
        and _stamps[after[begin:end]]
        and _stamps[before[begin:end]]
    )


def _examined(new: ObjectMeta, entries: bytes, place: int) -> _Sound | None:
    """What is sound about a lease, if the time at `place` in its managedFields is that of the renewal.

    The caller tries the first and the last time of a list; with the renewal's entry in another place the rules decide.
    """
    begin = place + len(_TIME)
    head, tail = entries[:begin], entries[begin + _USUAL_TIME :]
    if place < 0 or not (_is_legal(new) and _is_of_the_renewal(head, tail)):
        return None
    sound = _Sound(new.name, new.namespace, head, tail, len(entries))
    _remember(new.uid, sound)
    return sound


def _is_legal(metadata: ObjectMeta) -> bool:
    name, namespace = metadata.name or "", metadata.namespace or ""
    return (
        0 < len(name) <= formats.LONGEST_NAME
        and 0 < len(namespace) <= formats.LONGEST_LABEL
        and not formats.path_segment(name)
        and not formats.dns_label(namespace)
    )


def _is_of_the_renewal(head: bytes, tail: bytes) -> bool:
    """Whether the time between both texts is that of the one entry that owns spec.renewTime."""
    try:
        entries = _usual_entries.decode(head + _SAMPLE.encode() + tail)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    owners = [entry for entry in entries if entry.renew_time is not _ABSENT]
    if len(owners) != 1:
        return False
    owner = owners[0]
    return owner.time == _SAMPLE and bytes(owner.renew_time) == _OWNED and owner.manager != ANCIENT_CHANGES


def _remember(uid: str | None, sound: _Sound) -> None:
    """Keep short texts only, and few: clients choose them."""
    if len(uid or "") + sound.size <= _LONGEST_REMEMBERED:
        if len(_known) >= _MOST_REMEMBERED:
            _known.clear()
        _known[uid] = sound


class _Stamps(dict[bytes, bool]):
    """Whether a text of the usual length is a stamp; most were asked for before."""

    def __missing__(self, time: bytes) -> bool:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[time] = is_stamp = time.isascii() and stamp_of(time.decode()) is not None
        return is_stamp


_stamps: Final = _Stamps()
