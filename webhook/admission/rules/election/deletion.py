"""A live lease is deleted."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import CLEANUP_CONTROLLERS, Event, LeaseChange
from webhook.admission.rules.expiry import EXPIRY_FIELDS
from webhook.admission.rules.finding import NO_FINDINGS, Finding
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.loss import report_loss
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import DELETE, LEASES, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import ANOTHER_CHANGE, DeniedRenewal, Texts
from webhook.text.quoting import quote


def live_lease_deleted(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be deleted, except by the garbage collector and the namespace controller.

    An UPDATE that removes the last finalizer of a lease which was deleted before deletes it as well. It only warns of
    one that renews the lease or releases it: an elector that writes the whole lease without finalizers removes those of
    others each time. Not evaluated for the [stamped writer](../stamp.md) of the lease.
    """
    if change.expiry.is_expired or change.user.username in CLEANUP_CONTROLLERS or change.is_by_stamped_writer:
        return NO_FINDINGS
    expiry = change.expiry
    detail = (
        f"the lease is held by {quote(change.old_holder)} for another {expiry.seconds_left} s{expiry.whose_clock}; "
        "stop its holder first, and delete the lease once it is released or has expired"
    )
    of_its_elector = change.request.new and change.new_holder in ("", change.old_holder) and change.is_of_an_elector
    tier = Mode.WARN if of_its_elector else Mode.DENY
    return report_loss(change, "metadata", detail=detail, happened="{0} of {1} was deleted", tier=tier)


LIVE_LEASE_DELETED: Final = Rule(
    check=live_lease_deleted,
    resources=LEASES,
    operations=DELETE | UPDATE,
    events=frozenset({Event.DELETE}),
    about_writer=True,
    standard=Mode.AUDIT,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: kube-apiserver, konnectivity and medik8s delete their own leases, so only audited by default",
        why="After a live lease is deleted, another process can create it and lead at the same time as the old leader.",
        who="`helm uninstall` and `kubectl delete` while the program runs; konnectivity and medik8s, which delete "
        "their own leases; a controller that removes its finalizer from a deleted lease that is held again.",
        fix="Stop the holder first, and delete when its lease has expired or was released.",
        attack="deleted a lease that was held",
    ),
    denied_renewal=DeniedRenewal(
        reason=ANOTHER_CHANGE, condition="if `renewTime` stays, and it removes the last finalizer of a deleted lease"
    ),
    reads=(*EXPIRY_FIELDS,),
    in_cel=RuleInCel(
        lacks="""
        A DELETE has no time, and an expression has no clock. With [stamps](stamp.md), a lease that is held is deleted
        by its writer only.
        """,
    ),
)
