"""The writes that an input shows, as admission requests that can be evaluated."""

from typing import Final

from msgspec import Struct, field

from webhook.analysis.inputs.items import Act, InputKind, Observation
from webhook.kubernetes.objects import Lease, LeaseCandidate
from webhook.kubernetes.request import GROUP, AdmissionRequest, Operation

_WRITTEN: Final = frozenset({Act.STORED, Act.CREATED, Act.UPDATED, Act.DELETED})


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

    def make_request(self, item: Observation) -> AdmissionRequest | None:
        """Return what was written; None for what was not stored, and for what cannot be known."""
        if not item.is_stored or item.act not in _WRITTEN or item.read_at is not None:
            return None
        if item.input_kind is InputKind.WATCH:
            self._watches.add(item.place.path)
        key = (item.kind, item.namespace, item.name)
        before = self._stored.pop(key, None)
        # Without managedFields, which a log or kubectl may leave out, it is not what was stored.
        is_shown = item.has_managed_fields
        if is_shown and item.act is not Act.DELETED:
            self._stored[key] = item
        if item.act is Act.STORED or item.counted_renewals:
            # A list shows states written at some time, by whomever; many renewals in one are not a write.
            return _make_request(item, None) if item.input_kind is InputKind.DUMP and item.object is not None else None
        if item.act is Act.DELETED:
            # A watch does not say when, and so not whether it was held.
            is_shown = item.at is not None
        if item.act is Act.CREATED:
            before = None
        elif before is None or not self._is_next(item, before):
            is_shown = False
        if not is_shown:
            self.unknown += 1
            return None
        return _make_request(item, before.object if before else None)

    def _is_next(self, item: Observation, before: Observation) -> bool:
        """Return whether it is known that nothing was stored in between."""
        if item.uid and before.uid and item.uid != before.uid:
            return False
        if item.replaces:
            return item.replaces == before.resource_version
        is_watched = item.place.path == before.place.path and item.place.path in self._watches
        return is_watched or (self.is_whole and item.input_kind is before.input_kind is InputKind.AUDIT_LOG)


def _make_request(item: Observation, old: Lease | LeaseCandidate | None) -> AdmissionRequest:
    return AdmissionRequest(
        uid=str(item.place),
        operation=_find_operation(item, old),
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


def _find_operation(item: Observation, old: Lease | LeaseCandidate | None) -> Operation:
    if item.act is Act.DELETED:
        return Operation.DELETE
    return Operation.UPDATE if old else Operation.CREATE
