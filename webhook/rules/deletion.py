"""Deleting a lease that its holder still keeps alive: leadership rolls at once."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden
from webhook.api.text import quote
from webhook.rules.change import LeaseChange
from webhook.rules.rule import DELETE, LEASES, NOTHING, Finding, Rule

CLEANERS: Final = frozenset(
    {
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
        "system:kube-controller-manager",
    }
)
"""Writers whose work is to delete: a namespace or an owner is going away."""


def live_lease_is_not_deleted(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be deleted, except by the garbage collector and the namespace controller."""
    if change.expiry.expired or change.user.username in CLEANERS:
        return NOTHING
    detail = (
        f"the lease is live, held by {quote(change.old_holder)}; ask the holder to release it, or wait until it expires"
    )
    return (Finding(forbidden("metadata", detail), without_stamps=not change.expiry.from_stamps),)


RULES = (
    Rule(
        id="live-lease-deleted",
        check=live_lease_is_not_deleted,
        resources=LEASES,
        operations=DELETE,
        about_writer=True,
        source="ours: kube-apiserver, konnectivity and medik8s delete their own leases, so only audited by default",
    ),
)
