"""The writes of a history as requests that can be evaluated: each with the object that it changed."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from webhook.api.objects import Lease, LeaseCandidate
from webhook.api.request import GROUP, AdmissionRequest, Operation
from webhook.inputs.items import Act, InputKind, Observation

_OPERATIONS: Final[Mapping[Act, Operation]] = {
    Act.CREATED: Operation.CREATE,
    Act.UPDATED: Operation.UPDATE,
    Act.DELETED: Operation.DELETE,
}
_CREATED: Final = 201


class Writes(Struct):
    """Follows objects from write to write, in the order in which they were stored.

    `unknown` counts writes whose object, before or after, the input does not show: a log at level Metadata, the first
    write of each lease, or a write after one that another API server logged.
    """

    unknown: int = 0
    _stored: dict[tuple[str, str, str], Observation] = field(default_factory=dict)

    def request(self, item: Observation) -> AdmissionRequest | None:
        """Return what was written; None for what was not stored, and for what cannot be known."""
        operation, key = _OPERATIONS.get(item.act), (item.kind, item.namespace, item.name)
        if not item.is_stored or (operation is None and item.act is not Act.STORED):
            return None
        before = self._stored.pop(key, None)
        if item.act is not Act.DELETED and item.object is not None:
            self._stored[key] = item
        if operation is None:
            # What a list shows was written at some time, by whomever.
            return _request(item, Operation.CREATE, None) if item.input_kind is InputKind.DUMP else None
        if operation is Operation.CREATE or (item.answer and item.verb == "patch" and item.answer.code == _CREATED):
            operation, before = Operation.CREATE, None
        elif before is None or not _follows(item, before):
            self.unknown += 1
            return None
        if item.object is None and operation is not Operation.DELETE:
            self.unknown += 1
            return None
        return _request(item, operation, before.object if before else None)


def _follows(item: Observation, before: Observation) -> bool:
    """Whether nothing was stored in between, as far as the request says which version it replaced."""
    is_same = not item.uid or not before.uid or item.uid == before.uid
    return is_same and item.replaces in {"", before.resource_version}


def _request(item: Observation, operation: Operation, old: Lease | LeaseCandidate | None) -> AdmissionRequest:
    return AdmissionRequest(
        uid=str(item.place),
        operation=operation,
        resource=f"{item.kind.lower()}s",
        kind=item.kind,
        version="v1" if item.kind == "Lease" else "v1beta1",
        group=GROUP,
        namespace=item.namespace,
        name=item.name,
        user=item.user,
        new=None if operation is Operation.DELETE else item.object,
        old=old,
    )
