"""Heartbeats, kept apart from elections by the shape of the Lease, wherever it is.

A heartbeat shows that one process is alive; no one else would ever take such a lease, so it never has "no leader".
"""

import re
from typing import Final

from webhook.admission.rules.change import IDENTITY_LABEL, KUBE_SYSTEM, NODE_LEASES
from webhook.kubernetes.objects import Lease, LeaseSpec

FIELDS_OF_ELECTIONS: Final = ("acquire_time", "lease_transitions", "strategy", "preferred_holder")
"""Fields that only an election writes.

Source: component-helpers `apimachinery/lease/controller.go`, which writes holder, duration and renewTime; client-go
`tools/leaderelection/resourcelock/leaselock.go` writes the first two with each write.
"""

_IDENTITY: Final = re.compile(r"apiserver-[a-z2-7]{26}")
"""Source: kubernetes `pkg/controlplane/apiserver/server.go`: 16 bytes of a hash, in base32."""


def is_heartbeat(lease: Lease, namespace: str) -> bool:
    """Return whether a stored Lease is a heartbeat: of a node, of an API server, or by its shape.

    A lease without renewTime has no shape yet, so it counts as an election. The holder of a lease may write whatever
    it likes, so this decides how a lease is described, and never what is denied.
    """
    spec, labels = lease.spec, lease.metadata.labels or {}
    if namespace == NODE_LEASES or (namespace == KUBE_SYSTEM and IDENTITY_LABEL in labels):
        return True
    is_named = bool(spec.holder_identity and spec.renew_time) and _lacks_fields_of_elections(spec)
    return is_named or is_nameless_heartbeat(spec)


def is_nameless_heartbeat(spec: LeaseSpec) -> bool:
    """Return whether a spec has renewTime and a duration, and neither a holder nor what an election writes.

    So registration agents of Open Cluster Management renew `managed-cluster-lease`. An elector that releases a lease
    leaves what it had written when it took it; one that never writes that, and removes the holder, leaves this shape:
    only a history shows that a holder was there.
    """
    has_both = bool(spec.renew_time) and spec.lease_duration_seconds is not None
    return spec.holder_identity is None and has_both and _lacks_fields_of_elections(spec)


def _lacks_fields_of_elections(spec: LeaseSpec) -> bool:
    return all(getattr(spec, name) is None for name in FIELDS_OF_ELECTIONS)


def is_named_for_heartbeats(namespace: str, name: str) -> bool:
    """Return whether a lease of this name is a heartbeat of a node or an API server; what it holds does not matter.

    Source: pkg/controlplane/apiserver/server.go names the identity lease of an API server
    """
    return namespace == NODE_LEASES or is_of_api_server(namespace, name)


def is_of_api_server(namespace: str, name: str) -> bool:
    """Return whether a lease of this name is the heartbeat of an API server."""
    return namespace == KUBE_SYSTEM and name.startswith("apiserver-")


def is_identity_of_api_server(namespace: str, name: str) -> bool:
    """Return whether a lease is named as that of an API server; another one of kube-system may begin like that."""
    return is_of_api_server(namespace, name) and _IDENTITY.fullmatch(name) is not None


def find_owner(lease: Lease) -> str:
    """Return `Node worker-1`, the first owner of a lease; "" without one."""
    for owner in lease.metadata.owner_references or ():
        if owner is not None and owner.kind and owner.name:
            return f"{owner.kind} {owner.name}"
    return ""
