"""Writes of a user into a lease that another one held: the advice is not to grant that user rights."""

from msgspec import Struct

from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure, with_previous
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer


class ForeignWrite(Struct, frozen=True):
    """A write by which a user removed a holder, or replaced it; `at` in microseconds since 1970."""

    at: int
    did: str
    """A verb and its object, as `removed the holder`."""


def find_stranger(before: Tenure, after: Tenure) -> Writer | None:
    """Return who took the lease as its own identity, if that is another user than the one that held it."""
    taker = after.processes.taken_by
    if before.processes.own is None or taker is None or not taker.user or taker.user == before.processes.own.user:
        return None
    return taker


def is_taken_by_stranger(before: Tenure, after: Tenure) -> bool:
    """Return whether a holder took a live lease as another user than the one before; without users, another manager."""
    if not after.may_be_stolen:
        return False
    if after.processes.taken_by is not None:
        return find_stranger(before, after) is not None
    manager = after.beginning.manager
    return bool(manager and before.manager) and manager != before.manager


def find_own_address(history: LeaseHistory, who: Writer | None) -> str:
    """Return from where a user that is no pod wrote the lease; "" if that is not known, or if others asked from there.

    Behind the address of a proxy, or of a node, there may be many.
    """
    seen = history.requests.addresses.by_writer.get(who.process) if who is not None else None
    if who is None or who.pod or who.uid or seen is None or len(seen.counts) > 1:
        return ""
    (address,) = seen.counts
    processes = [
        one for source, known in history.requests.sources.items() if get_address(source) == address for one in known
    ]
    return address if all(map(who.is_same, processes)) else ""


def find_foreign_write(history: LeaseHistory, user: str) -> ForeignWrite | None:
    """Return the first write by which a user took the lease from another user's process that still held it.

    None if there is none, and of the user that held the lease first: that one may have taken it back.
    """
    first = next((one.processes.own for one in history.tenures if one.processes.own is not None), None)
    if not user or user == API_SERVER or (first is not None and first.user == user):
        return None
    for before, after in with_previous(history.tenures):
        taker, removal = after.processes.taken_by, after.removal
        if before is not None and taker is not None and taker.user == user and is_taken_by_stranger(before, after):
            return ForeignWrite(after.since, "replaced the holder")
        own, remover = after.processes.own, removal.writer
        is_foreign = removal.is_own is False and own is not None and own.user != user
        if is_foreign and remover is not None and remover.user == user and not after.had_expired:
            return ForeignWrite(after.until or after.last_renewal, "removed the holder")
    return None
