"""The Node that owns a deleted lease, where its heartbeat goes on: then Kubernetes did not delete the lease with it.

Whoever writes a lease names its owners. The lease of a node is written by that node alone, and Kubernetes deletes it,
too, once the Node is gone.
"""

from collections.abc import Sequence

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.owners import list_owners
from webhook.kubernetes.objects import OwnerReference


class OwnerNode(Struct, frozen=True):
    """The Node `name`, whose heartbeat was last renewed at an instant, in microseconds since 1970."""

    name: str
    renewed_at: int

    def describe(self, now: int) -> str:
        """Say that it goes on, as a sentence."""
        at = format_clock(self.renewed_at, now)
        return (
            f"Its owner, Node {format_name(self.name)}, renewed its heartbeat at {at}, so the Node is most likely not "
            "gone; a holder may delete such a lease once it is done."
        )


def find_owner_node(
    histories: ClusterHistory, owners: Sequence[OwnerReference], deleted: Tenure | None
) -> OwnerNode | None:
    """Return the Node among the owners of a lease whose heartbeat went on after its deletion, which ended a tenure.

    None if that is not known: for a Node that was registered again, another heartbeat is created.
    """
    if deleted is None or deleted.until is None:
        return None
    for owner in owners:
        renewed_at = _find_renewal_after(histories, owner, deleted.until) if owner.kind == "Node" else None
        if renewed_at is not None:
            return OwnerNode(owner.name or "", renewed_at)
    return None


def _find_renewal_after(histories: ClusterHistory, owner: OwnerReference, deleted_at: int) -> int | None:
    """Return when the heartbeat of a Node was last renewed, if it was there before an instant, and was renewed since.

    A writer's own clock does not say so.
    """
    heartbeat = histories.leases.get((NODE_LEASES, owner.name or ""))
    if heartbeat is None or heartbeat.lease is None or heartbeat.is_mixed or heartbeat.renewals.is_last_claimed:
        return None
    beat, renewed_at = heartbeat.current_tenure, heartbeat.renewals.last
    if beat is None or renewed_at is None or not beat.since < deleted_at < renewed_at:
        return None
    uids = {one.uid for one in list_owners(heartbeat.lease.metadata.owner_references) if one.kind == "Node"}
    return renewed_at if not uids or owner.uid in uids else None
