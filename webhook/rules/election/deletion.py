"""Deleting a live lease: another process can become the leader at once."""

from collections.abc import Iterable

from webhook.api.field import forbidden
from webhook.api.text import quote
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import DELETE, LEASES, UPDATE, Rule
from webhook.rules.statement import Statement
from webhook.rules.well_known import CLEANUP_CONTROLLERS


def live_lease_is_not_deleted(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be deleted, except by the garbage collector and the namespace controller.

    An UPDATE that removes the last finalizer of a lease which was deleted before deletes it as well.
    """
    if change.expiry.expired or change.user.username in CLEANUP_CONTROLLERS:
        return NOTHING
    expiry = change.expiry
    clock = change.expiry.whose_clock
    detail = (
        f"the lease is held by {quote(change.old_holder)} for another {expiry.seconds_left} s{clock}; "
        "stop its holder first, or delete the lease after that"
    )
    lease = f"{change.request.namespace}/{change.request.name}"
    happened = Statement(
        f"lease {{0}} of {{1}} was deleted {expiry.seconds_left} s before expiry{clock}: there may be two leaders",
        (lease, change.old_holder),
    )
    return (Finding(forbidden("metadata", detail), without_stamps=not expiry.from_stamps, happened=happened),)


RULES = (
    Rule(
        id="live-lease-deleted",
        check=live_lease_is_not_deleted,
        resources=LEASES,
        operations=DELETE | UPDATE,
        events=frozenset({Event.DELETE}),
        about_writer=True,
        standard=Mode.AUDIT,
        source="ours: kube-apiserver, konnectivity and medik8s delete their own leases, so only audited by default",
    ),
)
