"""A live lease is written by another writer than the one that the API server stamped on it."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import CLEANUP_CONTROLLERS, Condition, Event, LeaseChange
from webhook.admission.rules.expiry import EXPIRY_FIELDS
from webhook.admission.rules.finding import NO_FINDINGS, Finding
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.loss import report_loss
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS, DELETE, LEASES, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.stamps import is_writer
from webhook.admission.rules.texts import DeniedRenewal, Texts
from webhook.text.quoting import quote


def foreign_writer(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may be written only by the writer that the API server stamped on it.

    Evaluated in the namespaces that the policy file lists under `stamps`, on takeovers, renewals, releases, other
    changes of spec, deletions, and changes of owners. Also on a write that sets only `strategy` or `preferredHolder`
    while the feature gate CoordinatedLeaderElection is off: the API server stamps its writer and then drops the fields.
    Anyone may change labels and other annotations, and the writers of a binding may change owners. The garbage
    collector and the namespace controller are exempt.
    """
    stamps = change.stamps
    if stamps is None or (stamp := change.old_stamp) is None or not stamp.writer or not change.old_holder:
        return NO_FINDINGS
    user, after = change.user, change.new_stamp
    # An API server that drops strategy and preferredHolder does so after their sender was stamped.
    is_of_dropped_fields = change.event is Event.UNTOUCHED and after is not None and after.writer != stamp.writer
    if (
        change.event is Event.UNTOUCHED
        and not is_of_dropped_fields
        and (change.new_metadata.owner_references == change.old_metadata.owner_references or change.is_by_listed_writer)
    ):
        return NO_FINDINGS
    # Only the sender can omit the time, so our clock, which may be wrong, must not replace it.
    is_undated = after is not None and after.written is None and bool(change.request.new)
    is_expired = change.expiry.is_expired and not is_undated
    if is_writer(user, stamp, stamps) or user.username in CLEANUP_CONTROLLERS or is_expired:
        return NO_FINDINGS
    if is_of_dropped_fields:
        wait = "without strategy and preferredHolder"
    else:
        wait = "without managedFields" if is_undated else f"in {change.expiry.seconds_left} s"
    detail = (
        f"the lease is held by {quote(change.old_holder)} and was last written by {quote(stamp.writer)}, which this "
        f"writer is not; retry {wait}, or ask the holder to release it"
    )
    fact = change.event if change.event in (Event.STEAL, Event.RELEASE) else ""
    happened = {
        Event.STEAL: "{0} was taken from {1}",
        Event.DELETE: "{0} was deleted, held by {1},",
    }.get(change.event, "{0} was written by a writer other than that of {1}")
    field = "spec" if change.request.new else "metadata"
    return report_loss(change, field, detail=detail, happened=happened, fact=fact)


FOREIGN_WRITER: Final = Rule(
    check=foreign_writer,
    resources=LEASES,
    operations=UPDATE | DELETE,
    events=ALL_EVENTS,
    only_if=Condition.STAMPED,
    about_writer=True,
    standard=Mode.WARN,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: the writer is the pod and the user of an authenticated token, which no client chooses",
        why="The holder is a text that any client may write, so a client that writes in the holder's name looks like "
        "the holder. The stamp does not.",
        who="A new pod of a StatefulSet that resumes its predecessor's identity; replicas that write as one user, "
        "unless `writer: user` is set; people who repair a lease by hand.",
        fix="Wait until the lease has expired, or ask the holder to release it. If the replicas of one user are one "
        "writer, set `writer: user` in the policy, and label the namespace `lease-webhook/stamp-writer=user`.",
        attack="wrote a lease that another writer held",
    ),
    denied_renewal=DeniedRenewal(
        reason="a writer other than the [stamped one](../stamp.md) of a live lease, in the namespaces that your policy "
        "lists under `stamps`"
    ),
    reads=(*EXPIRY_FIELDS, "metadata.annotations"),
    in_cel=RuleInCel(
        lacks="""
        `lease-webhook-stamp-guard` says it, with texts of its own, where the policy file lists `stamps`, from
        Kubernetes 1.36 on.
        """,
    ),
)
