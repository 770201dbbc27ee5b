"""Whether a write that was seen put managedFields there that no API server makes."""

from collections.abc import Sequence
from typing import Final

from webhook.api.managed_fields import Entry
from webhook.api.objects import Lease, LeaseSpec
from webhook.inputs.items import Act, Observation, entries_of_object, has_managed_fields
from webhook.rules.change import change_between
from webhook.rules.election.renewal_stamp import tampering_of_create, tampering_of_update

_KNOWN: Final = frozenset(f"f:{name}" for name in LeaseSpec.__struct_encode_fields__)


def forged_stamps(seen: Observation, old: Lease | None, old_entries: Sequence[Entry] | None, at: int) -> str:
    """What a write does to managedFields that no API server does, as a clause; "" if nothing, or if that is not shown.

    Args:
        seen: the write, whose object is a Lease.
        old: the state before it, which must be the one just before; None if it created the lease.
        old_entries: the managedFields of that state; None if they are not decoded yet.
        at: when it was made, in microseconds since 1970.

    """
    new = seen.object
    assert isinstance(new, Lease)
    if old is None:
        if seen.act is not Act.CREATED or not seen.entries or not _only_known(seen.entries):
            return ""
        return tampering_of_create(change_between(None, new, at)) or ""
    if not has_managed_fields(old) or new.metadata.managed_fields == old.metadata.managed_fields:
        return ""
    known = entries_of_object(old) if old_entries is None else old_entries
    renew_time = new.spec.renew_time
    renewed = renew_time is not None and renew_time != old.spec.renew_time
    if (renewed and is_plain_renewal(seen.entries, known)) or not _only_known(seen.entries):
        return ""
    return tampering_of_update(change_between(old, new, at)) or ""


def is_plain_renewal(new: Sequence[Entry], old: Sequence[Entry]) -> bool:
    """Whether a renewal only dates the one owner of renewTime again, as nearly all do: then nothing is forged."""
    if len(new) != len(old):
        return False
    changed = [(after, before) for after, before in zip(new, old, strict=True) if after != before]
    if len(changed) != 1:
        return False
    ((after, before),) = changed
    return (
        after.owns_renew_time
        and after.key == before.key
        and after.owned == before.owned
        and after.stamp is not None
        and before.stamp is not None
        and after.stamp >= before.stamp
        and not after.is_fold
        and sum(entry.owns_renew_time for entry in new) == 1
    )


def _only_known(entries: Sequence[Entry]) -> bool:
    """Whether every field of spec is one that can be compared here; a newer API server may have more."""
    return all(name in _KNOWN for entry in entries for name in entry.owned.spec)
