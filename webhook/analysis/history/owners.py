"""The owners that a write added to a lease: Kubernetes deletes what names only owners that do not exist."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.holders.transition import NextState
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Observation, Writer
from webhook.kubernetes.managed_fields import HOLDER, Entry
from webhook.kubernetes.objects import Lease, OwnerReference
from webhook.kubernetes.times import SECOND

_OWNERS: Final = "f:ownerReferences"


class AddedOwners(Struct, frozen=True):
    """A write that added owners, by kind and name, at `at`, while `tenure` was the latest holder.

    `manager` is the field manager that wrote them, "" if that is not known, or renews the lease as well. `is_dated` and
    `is_claimed` are those of a `LeaseEvent`.
    """

    at: int
    owners: tuple[tuple[str, str], ...]
    tenure: Tenure | None
    writer: Writer | None
    manager: str
    is_dated: bool
    is_claimed: bool


def find_patched_owners(seen: Observation, lease: Lease, tenure: Tenure | None) -> AddedOwners | None:
    """Return the owners that a patch added to the state before, which a log shows without what was stored."""
    known = {one.uid for one in list_owners(lease.metadata.owner_references)}
    added = tuple((one.kind or "", one.name or "") for one in seen.patched_owners if one.uid not in known)
    if not added or seen.at is None:
        return None
    return AddedOwners(seen.at, added, tenure, seen.writer, manager="", is_dated=True, is_claimed=False)


def find_added_owners(
    state: NextState, tenure: Tenure | None, write: Write, write_before: Write, patched: Collection[str | None]
) -> AddedOwners | None:
    """Return the owners that `write` added to the state before; None if it added none, or none was known.

    Those `patched` before are not its own. It came after `write_before`, and after the tenure began, though a stamp of
    the same second has no fraction.
    """
    if state.before is None or state.before.metadata.owner_references == state.lease.metadata.owner_references:
        return None
    known = {one.uid for one in list_owners(state.before.metadata.owner_references)}
    now = list_owners(state.lease.metadata.owner_references)
    added = tuple((one.kind or "", one.name or "") for one in now if one.uid not in known and one.uid not in patched)
    if not added:
        return None
    before = max(write_before.at, tenure.since if tenure is not None else 0)
    return AddedOwners(
        at=max(state.at, before) if before // SECOND == state.at // SECOND else state.at,
        owners=added,
        tenure=tenure,
        writer=state.writer,
        manager=_find_other_manager(state.known, state.entries),
        is_dated=write.is_dated,
        is_claimed=write.is_claimed,
    )


def list_owners(references: Sequence[OwnerReference | None] | None) -> Sequence[OwnerReference]:
    """Return the owners that an object names."""
    return [one for one in references or () if one is not None]


def may_be_owned_by_choice_of_holder(entries: Sequence[Entry]) -> bool:
    """Return whether the field manager that wrote the holder wrote the owners, too, or managedFields are not shown."""
    return not entries or any(_OWNERS in one.owned.in_metadata and HOLDER in one.owned.spec for one in entries)


def _find_other_manager(known: Iterable[Entry], entries: Iterable[Entry]) -> str:
    """Return the field manager of a write of owners, "" if it is not known, or renews the lease as well."""
    found = [one for one in entries if _OWNERS in one.owned.in_metadata and one not in known]
    return found[0].manager or "" if len(found) == 1 and not found[0].owns_renew_time else ""
