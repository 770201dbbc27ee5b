"""What a write that was seen does to managedFields that no API server does."""

from collections.abc import Sequence
from typing import Final

from webhook.admission.rules.change import make_change_between
from webhook.admission.rules.tampering import (
    date_dropped_fields,
    find_tampering_in_create,
    find_tampering_in_update,
    is_stamped,
)
from webhook.analysis.inputs.items import Act, InputKind, Observation, has_managed_fields
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import NO_LEASE_SPEC, Lease, LeaseSpec

_KNOWN_FIELDS: Final = frozenset(f"f:{name}" for name in LeaseSpec.__struct_encode_fields__)


def find_forged_stamps(
    seen: Observation, old: Lease | None, old_entries: Sequence[Entry], at: int, *, is_dated: bool = True
) -> str:
    """Return what a write does to managedFields that no API server does, as a clause; "" if nothing, or not shown.

    `old` is the state just before the write of a Lease at `at`, None if it was created, with its `old_entries`. If it
    is not `is_dated`, it may be later: where the API server dropped all that it set, when its entry says.
    """
    new = seen.object
    assert isinstance(new, Lease)
    if seen.term is not None:
        return ""  # where stamps are believed, the entries are made of them
    if seen.input_kind is InputKind.AUDIT_LOG and not (seen.resource_version or seen.has_managed_fields):
        return ""  # what was sent, which need not have them
    if old is None:
        if seen.act is not Act.CREATED or not seen.entries or not _has_only_known_fields(seen.entries):
            return ""
        change = make_change_between(None, new, at)
        return "" if is_stamped(change) else find_tampering_in_create(change) or ""
    if not has_managed_fields(old) or new.metadata.managed_fields == old.metadata.managed_fields:
        return ""
    if not seen.entries and new.spec == NO_LEASE_SPEC:
        return ""  # fields that are gone have no owner
    renew_time = new.spec.renew_time
    renewed = renew_time is not None and renew_time != old.spec.renew_time
    if (renewed and is_renewal_dated_again(seen.entries, old_entries)) or not _has_only_known_fields(seen.entries):
        return ""
    change = make_change_between(old, new, at)
    if not is_dated:
        change = make_change_between(old, new, max(at, date_dropped_fields(change) or at))
    return "" if is_stamped(change) else find_tampering_in_update(change) or ""


def is_renewal_dated_again(new: Sequence[Entry], old: Sequence[Entry]) -> bool:
    """True if a renewal only dates the one owner of renewTime again, as nearly all do: then nothing is forged."""
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


def _has_only_known_fields(entries: Sequence[Entry]) -> bool:
    # A newer API server may have fields that cannot be compared here.
    return all(name in _KNOWN_FIELDS for entry in entries for name in entry.owned.spec)
