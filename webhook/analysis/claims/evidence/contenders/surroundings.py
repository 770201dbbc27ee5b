"""The other leases of a cluster that say something of one: a mistaken name, a successor, a lock the other way round."""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.contenders.alike_leases import AlikeLease, find_alike_lease
from webhook.analysis.claims.evidence.contenders.crossed_locks import CrossedLocks, find_crossed_locks
from webhook.analysis.claims.evidence.contenders.namesakes import Namesake, find_namesake
from webhook.analysis.claims.evidence.contenders.newer_leases import NewerLease, find_newer_lease
from webhook.analysis.claims.evidence.machines.owner_nodes import OwnerNode, find_owner_node
from webhook.analysis.claims.evidence.machines.renamed_nodes import RenamedNode, find_renamed_node
from webhook.analysis.claims.evidence.silent_holders.expiry_doubts import ExpiryDoubt
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.owners import list_owners
from webhook.analysis.history.status import LeaseStatus


class Surroundings(Struct, frozen=True):
    """Facts about a lease from other leases; None by default."""

    crossed: CrossedLocks | None = None
    """Another lease whose holder asked for this one, while the holder of this one asked for that."""
    newer: NewerLease | None = None
    """The lease that may have come in its place, if it has expired and no one is known to want it."""
    renamed_node: RenamedNode | None = None
    """The node that may be this one under another name, if this one does not report any more."""
    namesake: Namesake | None = None
    """A lease of its name in another namespace, if it does not exist."""
    alike: AlikeLease | None = None
    """Another held lease that is named like it, if both were held at the same time."""
    owner_node: OwnerNode | None = None
    """The Node that owned it, if it was deleted and the heartbeat of that Node goes on."""


NO_SURROUNDINGS: Final = Surroundings()
"""Shared by all leases that no other one concerns: nearly all of a long list."""


def find_surroundings(
    histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None, now: int, doubt: ExpiryDoubt
) -> Surroundings:
    """Return what other leases say of one at `now`, in microseconds since 1970."""
    owners = list_owners(history.lease.metadata.owner_references) if history.is_deleted and history.lease else ()
    found = Surroundings(
        crossed=find_crossed_locks(histories, history),
        newer=None if doubt.may_lack_renewals else find_newer_lease(histories, history, status, now),
        renamed_node=find_renamed_node(histories, history, now),
        namesake=find_namesake(histories, history),
        alike=find_alike_lease(histories, history, now),
        owner_node=find_owner_node(histories, owners, history.latest_tenure),
    )
    return found if found != NO_SURROUNDINGS else NO_SURROUNDINGS
