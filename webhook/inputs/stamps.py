"""Leases that the API server stamped, read as if managedFields said when they were written; and by whom."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from webhook.api.managed_fields import Entry, entries_of
from webhook.api.objects import Lease, LeaseSpec
from webhook.api.times import canonical_seconds
from webhook.inputs.items import Act, InputKind, Item, Observation, Writer, number_of
from webhook.rules.stamps import Stamp, Stamps, stamp_in

_OWNED: Final[dict[str, object]] = {"f:spec": {f"f:{name}": {} for name in LeaseSpec.__struct_encode_fields__}}
_OBJECTS: Final = frozenset({InputKind.DUMP, InputKind.WATCH})
"""Inputs that show what is stored and not who wrote it."""


def is_dated(entries: Sequence[Entry]) -> bool:
    """True if these are the entries of a lease that a `StampReader` read, and its stamp has a time."""
    return [(one.manager, one.stamp is None) for one in entries] == [(None, False)]


class StampReader(Struct):
    """Adds to items what the stamps say, in the namespaces where the policy file says that writers are stamped."""

    stamps: Mapping[str, Stamps]
    _specs: dict[tuple[str, str], LeaseSpec] = field(default_factory=dict)

    def read(self, item: Item) -> Item:
        """Return an item whose objects have one entry, dated by the stamp; any other item as it is."""
        here = self.stamps.get(item.namespace) if isinstance(item, Observation) else None
        if here is None or not isinstance(item, Observation) or not isinstance(item.object, Lease):
            return item
        key, spec = (item.namespace, item.name), item.object.spec
        is_spec_written, self._specs[key] = self._specs.get(key) != spec, spec
        stamp = _stamp_of(item.object, here)
        if stamp is None:
            return item
        writer = item.writer
        if writer is None and stamp.writer and item.input_kind in _OBJECTS and item.act is not Act.DELETED:
            # A label leaves the stamp of the write before.
            writer = Writer(stamp.user, uid="" if here.by_user else stamp.pod_uid) if is_spec_written else None
        old = item.old
        before = _stamp_of(old, here) if isinstance(old, Lease) else None
        old = _dated(old, before) if isinstance(old, Lease) and before is not None else old
        # The text, of a list, is that of the object as it was read.
        term = _term_of(stamp, item.object)
        return replace(item, object=_dated(item.object, stamp), old=old, writer=writer, term=term, text=b"")


def _stamp_of(lease: Lease, stamps: Stamps) -> Stamp | None:
    return stamp_in(stamps, lease.metadata.annotations, entries_of(lease.metadata.managed_fields))


def _term_of(stamp: Stamp, lease: Lease) -> int | None:
    """Return the term as a fence knows it: a lease that was not renewed since it was created has no stamp of it."""
    number = number_of(stamp.term or lease.metadata.resource_version)
    return (number if stamp.term else number - 1) if number else None


def _dated(lease: Lease, stamp: Stamp) -> Lease:
    """Return the lease with one entry without a manager: the names of managers are not known where it is stamped."""
    entry: dict[str, object] = {"operation": "Update", "apiVersion": "coordination.k8s.io/v1", "fieldsV1": _OWNED}
    if stamp.written is not None:
        entry["time"] = canonical_seconds(stamp.written)
    return replace(lease, metadata_or_none=replace(lease.metadata, managed_fields=Raw(msgspec.json.encode([entry]))))
