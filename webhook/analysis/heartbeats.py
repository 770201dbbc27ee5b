"""Heartbeats, kept apart from elections by the shape of the Lease, wherever it is.

A heartbeat shows that one process is alive; no one else would ever take such a lease, so it never has "no leader".
"""

from typing import Final

from webhook.admission.rules.change import IDENTITY_LABEL, KUBE_SYSTEM, NODE_LEASES
from webhook.kubernetes.objects import Lease

FIELDS_OF_ELECTIONS: Final = ("acquire_time", "lease_transitions", "strategy", "preferred_holder")
"""Fields that only an election writes.

Source: component-helpers `apimachinery/lease/controller.go`, which writes holder, duration and renewTime; client-go
`tools/leaderelection/resourcelock/leaselock.go` writes the first two with each write.
"""


def is_heartbeat(lease: Lease, namespace: str) -> bool:
    """Return whether a stored Lease is a heartbeat: of a node, of an API server, or by its shape.

    A lease without renewTime has no shape yet, so it counts as an election. The holder of a lease may write whatever
    it likes, so this decides how a lease is described, and never what is denied.
    """
    spec, labels = lease.spec, lease.metadata.labels or {}
    if namespace == NODE_LEASES or (namespace == KUBE_SYSTEM and IDENTITY_LABEL in labels):
        return True
    return bool(spec.holder_identity and spec.renew_time) and all(
        getattr(spec, name) is None for name in FIELDS_OF_ELECTIONS
    )


def is_named_for_heartbeats(namespace: str, name: str) -> bool:
    """Return whether a lease of this name is a heartbeat of a node or an API server; what it holds does not matter.

    Source: pkg/controlplane/apiserver/server.go names the identity lease of an API server
    """
    return namespace == NODE_LEASES or is_of_api_server(namespace, name)


def is_of_api_server(namespace: str, name: str) -> bool:
    """Return whether a lease of this name is the heartbeat of an API server."""
    return namespace == KUBE_SYSTEM and name.startswith("apiserver-")


def find_owner(lease: Lease) -> str:
    """Return `Node worker-1`, the first owner of a lease; "" without one."""
    for owner in lease.metadata.owner_references or ():
        if owner is not None and owner.kind and owner.name:
            return f"{owner.kind} {owner.name}"
    return ""
