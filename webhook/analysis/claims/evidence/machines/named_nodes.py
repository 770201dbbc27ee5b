"""A node whose name a lease has as its holder: another process renews it, which a node that ends takes along.

So it is with locks of storage, whose holder is the node that serves a volume. A text may be chosen, so this only holds
of one that is the whole name of a node with a heartbeat.
"""

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory


def find_named_node(histories: ClusterHistory, history: LeaseHistory, at: int) -> str:
    """Return the node after which the holder of an instant is called; "" of none, and of the lease of a node itself."""
    tenure = history.find_tenure_at(at)
    holder = tenure.holder if tenure is not None and history.namespace != NODE_LEASES else ""
    return holder if (NODE_LEASES, holder) in histories.leases else ""


def find_last_heartbeat(lease: LeaseHistory) -> int | None:
    """Return when a node is known to have renewed its lease last; None if that is not known."""
    tenure = lease.latest_tenure
    return lease.renewals.last or (tenure.last_renewal if tenure is not None and not tenure.is_claimed else None)
