"""The writes of a history: as requests that can be evaluated, and what they do that no API server does."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from webhook.admission.rules.change import change_between
from webhook.admission.rules.tampering import find_tampering_in_create, find_tampering_in_update, is_stamped
from webhook.analysis.inputs.items import Act, InputKind, Observation, has_managed_fields
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import Lease, LeaseCandidate, LeaseSpec
from webhook.kubernetes.request import GROUP, AdmissionRequest, Operation

_WRITTEN: Final = frozenset({Act.STORED, Act.CREATED, Act.UPDATED, Act.DELETED})
_KNOWN_FIELDS: Final = frozenset(f"f:{name}" for name in LeaseSpec.__struct_encode_fields__)


class Writes(Struct):
    """Follows objects from write to write, in the order in which they were stored.

    `unknown` counts writes of which the input does not show what they changed, so that a verdict could be wrong: those
    of a log below level RequestResponse or without managedFields, the first of each lease, and one after a write that
    another API server logged. A patch and a deletion in a log do not say what they replaced: that is known only from a
    watch beside the log, or if the log is whole (`is_whole`).
    """

    is_whole: bool = False
    unknown: int = 0
    _stored: dict[tuple[str, str, str], Observation] = field(default_factory=dict)
    _watches: set[str] = field(default_factory=set)

    def request(self, item: Observation) -> AdmissionRequest | None:
        """Return what was written; None for what was not stored, and for what cannot be known."""
        if not item.is_stored or item.act not in _WRITTEN:
            return None
        if item.input_kind is InputKind.WATCH:
            self._watches.add(item.place.path)
        key = (item.kind, item.namespace, item.name)
        before = self._stored.pop(key, None)
        # Without managedFields, which a log or kubectl may leave out, it is not what was stored.
        is_shown = item.has_managed_fields
        if is_shown and item.act is not Act.DELETED:
            self._stored[key] = item
        if item.act is Act.STORED or item.stretch:
            # A list shows states written at some time, by whomever; many renewals in one are no write.
            return _request(item, None) if item.input_kind is InputKind.DUMP and item.object is not None else None
        if item.act is Act.DELETED:
            # A watch does not say when, and so not whether it was held.
            is_shown = item.at is not None
        if item.act is Act.CREATED or (item.answer is not None and item.answer.code == 201):
            before = None
        elif before is None or not self._is_next(item, before):
            is_shown = False
        if not is_shown:
            self.unknown += 1
            return None
        return _request(item, before.object if before else None)

    def _is_next(self, item: Observation, before: Observation) -> bool:
        """Return whether it is known that nothing was stored in between."""
        if item.uid and before.uid and item.uid != before.uid:
            return False
        if item.replaces:
            return item.replaces == before.resource_version
        is_watched = item.place.path == before.place.path and item.place.path in self._watches
        return is_watched or (self.is_whole and item.input_kind is before.input_kind is InputKind.AUDIT_LOG)


def _request(item: Observation, old: Lease | LeaseCandidate | None) -> AdmissionRequest:
    return AdmissionRequest(
        uid=str(item.place),
        operation=_operation_of(item, old),
        resource=f"{item.kind.lower()}s",
        kind=item.kind,
        version="v1" if item.kind == "Lease" else "v1beta1",
        group=GROUP,
        namespace=item.namespace,
        name=item.name,
        user=item.user,
        new=None if item.act is Act.DELETED else item.object,
        old=old,
    )


def _operation_of(item: Observation, old: Lease | LeaseCandidate | None) -> Operation:
    if item.act is Act.DELETED:
        return Operation.DELETE
    return Operation.UPDATE if old else Operation.CREATE


def find_forged_stamps(seen: Observation, old: Lease | None, old_entries: Sequence[Entry], at: int) -> str:
    """Return what a write does to managedFields that no API server does, as a clause; "" if nothing, or not shown.

    `old` is the state just before the write of a Lease at `at`, None if it was created, with its `old_entries`.
    """
    new = seen.object
    assert isinstance(new, Lease)
    if old is None:
        if seen.act is not Act.CREATED or not seen.entries or not _only_known(seen.entries):
            return ""
        change = change_between(None, new, at)
        return "" if is_stamped(change) else find_tampering_in_create(change) or ""
    if not has_managed_fields(old) or new.metadata.managed_fields == old.metadata.managed_fields:
        return ""
    renew_time = new.spec.renew_time
    renewed = renew_time is not None and renew_time != old.spec.renew_time
    if (renewed and dates_renewal_again(seen.entries, old_entries)) or not _only_known(seen.entries):
        return ""
    change = change_between(old, new, at)
    return "" if is_stamped(change) else find_tampering_in_update(change) or ""


def dates_renewal_again(new: Sequence[Entry], old: Sequence[Entry]) -> bool:
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


def _only_known(entries: Sequence[Entry]) -> bool:
    # A newer API server may have fields that cannot be compared here.
    return all(name in _KNOWN_FIELDS for entry in entries for name in entry.owned.spec)
