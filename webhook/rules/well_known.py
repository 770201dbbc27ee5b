"""Kubernetes' names of namespaces, groups, users and versions that several rules use."""

from typing import Final

NODE_LEASES: Final = "kube-node-lease"
"""The namespace in which each kubelet renews a lease that is named after its node."""

KUBE_SYSTEM: Final = "kube-system"
"""The namespace of the control plane."""

IDENTITY_LABEL: Final = "apiserver.kubernetes.io/identity"
"""A label of the leases in kube-system by which API servers show that they run."""

NODES: Final = "system:nodes"
"""The group of all kubelets."""

CLEANUP_CONTROLLERS: Final = frozenset(
    {
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
        "system:kube-controller-manager",
    }
)
"""Users that delete objects because their namespace or owner is deleted."""

FIRST_CANDIDATE_VERSION: Final = "v1alpha1"
"""The only LeaseCandidate version with a list of strategies in order of preference (Kubernetes 1.31).

In it binaryVersion is optional.
"""
