"""Which stamp of the API server dates a state, in a cluster that stamps leases."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from webhook.admission.rules.stamps import Stamp, Stamps, find_stamp
from webhook.analysis.inputs.items import _NEAR, _SPEC_FIELDS, Act, InputKind, Item, Observation, Writer, parse_number
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import format_time, get_readable_instant, normalize


class StampReader(Struct):
    """Adds to items what the stamps of the API server say: when a lease was written, and by whom.

    It does so in the namespaces where the policy file says that writers are stamped.
    """

    stamps: Mapping[str, Stamps]
    _specs: dict[tuple[str, str], LeaseSpec] = field(default_factory=dict)
    _last: dict[tuple[str, str], Stamp] = field(default_factory=dict)
    """The last stamp that was seen of each lease."""

    def date(self, seen: Observation) -> int | None:
        """Return when a lease was written, by its stamp; None where no stamp is believed, or none is there."""
        here = self.stamps.get(seen.namespace)
        stamp = _find_stamp(seen.object, here) if here is not None and isinstance(seen.object, Lease) else None
        return stamp.written if stamp is not None else None

    def read(self, item: Item) -> Item:
        """Return an item whose objects have one entry, dated by the stamp; any other item as it is."""
        if not isinstance(item, Observation) or not isinstance(item.object, Lease) or item.namespace not in self.stamps:
            return item
        here = self.stamps[item.namespace]
        key, spec = (item.namespace, item.name), item.object.spec
        spec_before, self._specs[key] = self._specs.get(key), spec
        is_spec_written = spec_before != spec
        stamp = _find_stamp(item.object, here)
        if stamp is None:
            return item
        if item.act is Act.STORED and _is_chosen_since(stamp, spec):
            return replace(item, object=_date_lease(item.object, None), is_stamp_old=True, text=b"")
        old, writer = item.old, item.writer
        before, self._last[key] = self._last.get(key), stamp
        # Administrators, the API server and controllers leave the stamp of the write before.
        is_old = item.act is not Act.STORED and is_spec_written and before is not None and stamp == before
        is_seen = stamp != before if before is not None else item.act is Act.CREATED or _is_of_renewal(stamp, spec)
        # A watch does not show who wrote. A client can leave the constant entry alone if its write sets nothing, so a
        # spec that changed beside it was stamped by the API server. One state, as of a list, does not show that.
        is_watched = item.input_kind is InputKind.WATCH and item.act is not Act.DELETED
        is_proven = is_spec_written and (spec_before is not None or item.act is Act.CREATED)
        if writer is None and stamp.writer and is_watched and is_proven and is_seen:
            writer = Writer(stamp.user, uid="" if here.by_user else stamp.pod_uid)
        if isinstance(old, Lease) and (stamp_before := _find_stamp(old, here)) is not None:
            old = _date_lease(old, stamp_before.written)
        # The text, of a list, is that of the object as it was read.
        term = _find_term(stamp, item.object)
        shown = _date_lease(item.object, stamp.written)
        return replace(item, object=shown, old=old, writer=writer, term=term, is_stamp_old=is_old, text=b"")


def _is_of_renewal(stamp: Stamp, spec: LeaseSpec) -> bool:
    """True if a stamp is of the write that set renewTime, unless the clock of that writer is off."""
    claimed = get_readable_instant(normalize(spec.renew_time))
    return stamp.written is not None and claimed is not None and abs(claimed - stamp.written) <= _NEAR


def _is_chosen_since(stamp: Stamp, spec: LeaseSpec) -> bool:
    """True if an API server seems to have chosen the holder after the last stamp, which it leaves as it was.

    It dates its choice by renewTime, and sets no acquireTime: who was chosen does, once it leads.
    """
    if not spec.strategy or spec.acquire_time is not None:
        return False
    chosen = get_readable_instant(normalize(spec.renew_time))
    return stamp.written is not None and chosen is not None and chosen > stamp.written + _NEAR


def _find_stamp(lease: Lease, stamps: Stamps) -> Stamp | None:
    return find_stamp(stamps, lease.metadata.annotations, list_entries(lease.metadata.managed_fields))


def _find_term(stamp: Stamp, lease: Lease) -> int | None:
    """Return the term as a fence knows it: a lease that was not renewed since it was created has no stamp of it."""
    number = parse_number(stamp.term or lease.metadata.resource_version)
    if not number:
        return None
    return number if stamp.term else number - 1


def _date_lease(lease: Lease, written: int | None) -> Lease:
    """Return the lease with one entry without a manager: the names of managers are not known where it is stamped.

    Without a time, in microseconds since 1970, it has no date.
    """
    entry: dict[str, object] = {"operation": "Update", "apiVersion": "coordination.k8s.io/v1", "fieldsV1": _SPEC_FIELDS}
    if written is not None:
        entry["time"] = format_time(written)
    return replace(lease, metadata=replace(lease.metadata, managed_fields=Raw(msgspec.json.encode([entry]))))
