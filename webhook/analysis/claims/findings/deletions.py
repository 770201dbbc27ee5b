"""Claims about leases that were deleted while they were held."""

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.admission.rules.change import GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER
from webhook.analysis.claims.advice.on_writers import (
    advise_after_deletion,
    advise_after_doubtful_deletion,
    advise_on_user_of_electors,
    advise_on_writer,
)
from webhook.analysis.claims.arguments import bound_write
from webhook.analysis.claims.claim import Advice, Claim, WriteAuthor
from webhook.analysis.claims.commands import make_command_for_audit_log
from webhook.analysis.claims.evidence.machines.owner_nodes import find_owner_node
from webhook.analysis.claims.evidence.pods.ended_deleters import EndedDeleter, find_ended_deleter
from webhook.analysis.claims.evidence.pods.gone_pods import describe_confirmed_end, find_gone_owner
from webhook.analysis.claims.evidence.writers.owners import (
    describe_added_owners,
    find_owner_that_held,
    find_owners_added_to,
    name_owners,
)
from webhook.analysis.claims.findings.lease_claim import find_identity, make_claim
from webhook.analysis.claims.handover_clauses import SHORTEST, describe_creation
from webhook.analysis.claims.handovers import find_duration_edit, was_left_to_expire
from webhook.analysis.claims.words import UNLESS_DRY_RUN, describe_writer, format_clock, format_clocks, format_name
from webhook.analysis.heartbeats import is_named_for_heartbeats
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.marks import MarkedLease
from webhook.analysis.history.renewals import estimate_last_work
from webhook.analysis.history.status import has_expired
from webhook.analysis.inputs.items import InputKind, Observation, Writer
from webhook.findings import Severity
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import MINUTE, SECOND, format_length
from webhook.text.commands import make_kubectl_prefix

_MARKED_WITHIN: Final = 10 * MINUTE
"""Programs that prune objects run every few minutes."""


def claim_deletion(
    histories: ClusterHistory, history: LeaseHistory, before: Tenure, after: Tenure | None, *, now: int
) -> Iterator[Claim]:
    """Yield a finding if the lease was held when it was deleted; none if it was free, or may have been.

    A holder that deletes it releases it.
    """
    silence = (before.until or 0) - before.last_renewal
    if (
        not before.is_deleted
        or before.is_deleted_by_itself
        or (before.is_stand_in and silence > 5 * (history.renewals.usual or silence) // 4)
    ):
        return
    end = after.since if after is not None else now
    collection_deletions = (
        [] if before.deletion.by else histories.list_collection_deletions(history.namespace, before.last_renewal, end)
    )
    is_idle = _is_written_in_and_idle(history, before)
    asked_at = before.deletion.marked_at or before.until or now
    pod_end = "" if before.had_expired else describe_confirmed_end(histories, before, asked_at, now)
    message = _describe_deletion(history, before, after, now, is_idle=is_idle or bool(pod_end))
    if is_idle:
        message += f", which did not renew it in the {format_length(silence)} since it was written in"
    ended_deleter = find_ended_deleter(histories, before)
    if ended_deleter is not None and ended_deleter.is_ending:
        message += f" ({ended_deleter.describe(now)})"
    if collection_deletions:
        message += f" ({_describe_collection_deletion(collection_deletions[-1], now)})"
    if (marked := _find_last_mark(history, before)) is not None:
        message += f" ({_describe_mark(marked, now)})"
    if (added := find_owners_added_to(history, before)) is not None:
        message += f" ({describe_added_owners(added, f' at {format_clock(added.at, now)}')})"
    if before.had_expired:
        message += f", which had not renewed it for {format_length(silence)}: it had expired"
    if after is not None:
        message += f"; {_describe_creation(before, after)} {_describe_time_of_creation(before, after, now)}"
    severity, consequence = _find_consequence(histories, history, before, after, now=now, is_idle=is_idle)
    if pod_end and severity is not Severity.INFO:
        severity, consequence = Severity.WARNING, f": {pod_end}"
        advice = _advise_after_end(history, before)
    else:
        node = find_owner_node(histories, before.deletion.owners, before)
        owners = node.describe(now) if node is not None else _describe_owners(history, before)
        advice = _advise(history, before, collection_deletions, ended_deleter, owners=owners)
    message += consequence
    over = None if after is None else after.since
    yield make_claim(
        history,
        "lease-deleted",
        severity,
        message,
        advice,
        "deleted",
        when=_describe_moment(history, before, after, now),
        over_since=over,
        arguments={
            "previous": find_identity(before),
            "identity": find_identity(after) if after else None,
            "by": WriteAuthor(before.deletion.by),
            **bound_write(before.ended, after.beginning.write if after else None),
        },
    )


def _describe_creation(before: Tenure, after: Tenure) -> str:
    """Say who created a lease again, as a clause, and who took it if it was created without a holder."""
    if after.began is Handover.DELETED:
        return describe_creation(after)
    by = before.deletion.created_again_by
    created = f"{describe_writer(by)} created it again" if by is not None and by.user else "it was created again"
    return f"{created} without a holder, and {format_name(after.holder)} took it"


def _find_last_mark(history: LeaseHistory, before: Tenure) -> MarkedLease | None:
    """Return the last label or annotation that someone other than its holder put on a lease shortly before its end.

    What prunes objects goes by such marks.
    """
    end = before.until or before.last_renewal
    near = [one for one in history.marks if before.since <= one.at <= end and end - one.at <= _MARKED_WITHIN]
    return near[-1] if near else None


def _describe_mark(marked: MarkedLease, now: int) -> str:
    """`jane put the label app.kubernetes.io/instance=shop on it at 12:00:40Z`."""
    mark = f"the {marked.mark.kind} {format_name(f'{marked.mark.key}={marked.mark.value}')}"
    at = f"{format_clock(marked.at, now)}{'' if marked.is_dated else ' or later'}"
    if marked.writer is None:
        return f"{mark} was put on it at {at}"
    return f"{describe_writer(marked.writer)} put {mark} on it at {at}"


def _find_consequence(
    histories: ClusterHistory, history: LeaseHistory, before: Tenure, after: Tenure | None, *, now: int, is_idle: bool
) -> tuple[Severity, str]:
    """Return how bad a deletion was, and what it meant for who led, as the end of a sentence."""
    if is_named_for_heartbeats(history.namespace, history.name):
        # No one leads by a heartbeat, and an API server that ends deletes its own.
        return Severity.INFO, ""
    owner = find_owner_that_held(history, before)
    if owner and _is_collected(before):
        # A pod that is gone as an object may run on where its node is cut off: the advice says that.
        gone = find_gone_owner(histories, history.namespace, owner, before.until or now)
        how = f", and was {gone.describe(now)}" if gone is not None else " and was gone"
        return Severity.WARNING, f": the owner of the deleted lease was pod {owner.name}, which held it{how}"
    if is_idle or not _may_lead_on(before, after):
        return Severity.WARNING, ""
    if after is not None and (idle := _describe_idle_creation(history, before, after, now)):
        return Severity.WARNING, idle
    if _is_of_deleted_namespace(history, before):
        said = "; the pods of a deleted namespace are deleted before anything is created there again"
        return Severity.WARNING, said
    if before.deletion.by is None and owner:
        unless = "unless that pod was gone, or deleted the lease itself, two may have led at once"
        return Severity.WARNING, f": the owner of the deleted lease was pod {owner.name}, which held it; {unless}"
    if before.deletion.by is None or _may_be_by_its_holder(before):
        return Severity.WARNING, ": if the holder did not delete it itself, as some do, two may have led at once"
    if _is_collected(before):
        said = f": two may have led at once, unless the owner was the pod of {format_name(before.holder)}"
        return Severity.WARNING, said
    if after is not None and find_duration_edit(history, before, after) is not None:
        return Severity.ERROR, ": two may have led at once"  # its clients need not know the duration that is stored
    goes_on = format_length(estimate_last_work(before.duration))
    return (
        Severity.ERROR,
        f": two may have led at once, as most clients lead for up to {goes_on} after their last renewal",
    )


def _describe_idle_creation(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> str:
    """Say who led next, as the end of a clause, if no one did as the holder that was created; "" if two may have led.

    Whoever took the lease once most clients would have given it up led after the holder before.
    """
    if not _is_created_idle(history, before, after, now):
        return ""
    following = next((one for one in history.tenures if one.since > after.since), None)
    if following is None or following.since - before.last_renewal <= estimate_last_work(before.duration):
        return ""
    silence = following.since - before.last_renewal
    who, previous = format_name(following.holder), format_name(before.holder)
    later = f"at {format_clock(following.since, now)}, {format_length(silence)} after the last"
    if after.is_stand_in or following.is_stand_in:
        return f"; the next write was by {who} {later} one by {previous}"
    return f"; no one renewed it until {who} took it {later} renewal by {previous}"


def _is_created_idle(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> bool:
    """Return whether nothing shows that a process led under the name with which a deleted lease was created again.

    Without objects, who wrote it stands in for its holder: a user without a pod that deleted it and created it, and did
    nothing more, does not lead.
    """
    if after.began is not Handover.DELETED:
        return False
    if after.is_stand_in:
        own, deleter = after.processes.own, before.deletion.by
        is_same = own is not None and not own.pod and deleter is not None and own.is_same(deleter)
        return is_same and not after.processes.renewals and after.last_renewal == after.since
    is_foreign = after.processes.is_never_renewed or after.copied_age is not None
    return is_foreign and was_left_to_expire(history, after, now)


def _is_written_in_and_idle(history: LeaseHistory, before: Tenure) -> bool:
    """Return whether a holder was written in, and did not renew the lease for longer than clients lead without that.

    What is written in may last for any time; how long clients lead is shown by those that renewed. For any time, if who
    deleted the lease had written the holder in, which renewed nothing: that is an edit, and who made it is no elector.
    """
    is_known = before.was_left_as_written and not before.is_chosen and before.renewed_by_other is None
    if not is_known or before.had_expired:
        return False
    if before.inherited is not None and _may_be_by_its_holder(before):
        return True
    known = [one.duration for one in history.tenures if one.processes.renewals and one.duration is not None]
    goes_on = estimate_last_work(max(known, default=before.duration))
    return (before.until or 0) - before.last_renewal > goes_on


def _may_be_by_its_holder(before: Tenure) -> bool:
    """Return whether the user of a holder deleted the lease, and it cannot be known which of its processes did."""
    own, who = before.processes.own, before.deletion.by
    return before.is_deleted_by_itself is None and own is not None and who is not None and own.user == who.user


def _is_collected(before: Tenure) -> bool:
    """Return whether the garbage collector deleted the lease, as no owner of it exists."""
    return before.deletion.by is not None and before.deletion.by.user == GARBAGE_COLLECTOR


def _may_lead_on(before: Tenure, after: Tenure | None) -> bool:
    """Return whether a holder may have led on when another one created the lease.

    Who creates it again once the lease would have expired waited for as long as after any loss.
    """
    if after is None or after.holder == before.holder:
        return False
    return before.duration is None or not has_expired(before.last_renewal, before.duration, after.since)


def _advise(
    history: LeaseHistory,
    before: Tenure,
    collection_deletions: Sequence[Observation],
    ended_deleter: EndedDeleter | None,
    *,
    owners: str,
) -> Advice:
    """Return what to do about a deletion; if the deleter is unknown, a deletion of many leases may have caused it.

    `owners` are sentences about the owners that the lease named.
    """
    who = before.deletion.by
    if _may_be_by_its_holder(before) and UserInfo(who.user if who else "").service_account:
        return advise_on_user_of_electors("Whether its holder deleted it is not known.", history, who or Writer())
    if not before.deletion.is_sure:
        return advise_after_doubtful_deletion(history)
    if who and ended_deleter is not None:
        return ended_deleter.advise()
    if who and who.name:
        return advise_after_deletion(history, before, who)
    if collection_deletions and (suspect := collection_deletions[-1].writer) and suspect.name:
        return advise_on_writer(f"See which leases {format_name(suspect.name)} deleted.", history, suspect)
    sentence = "A watch does not show who deleted it; the audit log does:"
    if history.kind is InputKind.AUDIT_LOG:
        sentence = "The log does not show its deletion. Look for the part of the log that is missing:"
    return Advice(f"{owners} {sentence}".strip(), make_command_for_audit_log(history.namespace, history.name))


def _describe_owners(history: LeaseHistory, before: Tenure) -> str:
    """Say that a lease may have gone with its owners; "" if it named none, or another sentence says that."""
    owners = name_owners(before.deletion.owners)
    if not owners or find_owner_that_held(history, before) is not None:
        return ""
    return f"Kubernetes deletes a lease once none of its owners exists; this one named {owners}."


def _advise_after_end(history: LeaseHistory, before: Tenure) -> Advice:
    """Return what to do about the lease of a pod that had ended: to delete it was no harm, and others waited."""
    length = f" up to {format_length(before.duration * SECOND)}" if before.duration else ""
    sentence = (
        f"{format_name(before.holder)} ended without releasing the lease, and others wait{length} until it expires: "
        "its deletion spared them that. See which pods run now, and their events:"
    )
    return Advice(sentence, f"{make_kubectl_prefix(history.namespace)} get pods,events")


def _describe_collection_deletion(collection_deletion: Observation, now: int) -> str:
    """Say who may have deleted a lease, with others of its namespace."""
    who = describe_writer(collection_deletion.writer or Writer())
    at = format_clock(collection_deletion.at or 0, now)
    return f"maybe by {who}, who deleted leases at {at}: the log does not show which"


def _is_of_deleted_namespace(history: LeaseHistory, tenure: Tenure) -> bool:
    """Return whether the pods of a holder were deleted with the lease, before anything could be created there again."""
    deleter, own = tenure.deletion.by, tenure.processes.own
    place = UserInfo(own.user).service_account if own and own.pod else None
    is_namespace = deleter is not None and deleter.user == NAMESPACE_CONTROLLER
    return is_namespace and place is not None and place[0] == history.namespace


def _describe_deletion(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int, *, is_idle: bool) -> str:
    """Say who deleted a held lease, and when it was gone: with finalizers that is when the last of them is removed."""
    who, last = before.deletion.by, before.deletion.last_finalizer_by
    by = f"{describe_writer(who)} deleted the lease" if who and who.name else "the lease was deleted"
    owners = name_owners(before.deletion.owners)
    by += f", as no owner that it named exists{owners and f' ({owners})'}," if _is_collected(before) else ""
    doubt = "" if before.deletion.is_sure else f" ({UNLESS_DRY_RUN})"
    at = "".join(f" {one}" for one in (_describe_moment(history, before, after, now),) if one) + doubt
    held = "renewed it" if is_named_for_heartbeats(history.namespace, history.name) else "held it"
    if is_idle:
        held = "was named in it"
    if before.is_stand_in:
        held = "wrote it regularly" if before.last_renewal > before.since else "had written it last"
    if not _has_waited(before):
        return f"{by}{at} while {format_name(before.holder)} {held}"
    remover = f", when {describe_writer(last)} removed the last one," if last and last.user else ""
    asked = f"{by} at {format_clock(before.deletion.marked_at, now)}, but it had finalizers"
    return f"{asked}: it was gone{at}{remover} while {format_name(before.holder)} {held}"


def _has_waited(before: Tenure) -> bool:
    """Return whether a lease had finalizers, and was gone only some time after someone had asked for its deletion."""
    return bool(before.deletion.marked_at) and (before.until or 0) - before.deletion.marked_at >= SECOND


def _describe_moment(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int) -> str:
    """Say when a held lease was gone; "" if the input does not date that."""
    is_open = not before.is_end_dated or (history.kind is InputKind.WATCH and not before.deletion.by)
    return "" if before.until is None else _describe_time(before.until, after, now, is_open=is_open)


def _describe_time(until: int, after: Tenure | None, now: int, *, is_open: bool) -> str:
    """Say when a lease was deleted: if `is_open` at `until` or later, and before it was created again."""
    created = after.beginning.created if after is not None else None
    if is_open and created is not None and created // SECOND > until // SECOND:
        return f"between {' and '.join(format_clocks(now, until, created))}"
    return f"at {format_clock(until, now)}{' or later' if is_open else ''}"


def _describe_time_of_creation(before: Tenure, after: Tenure, now: int) -> str:
    """Say how long after a deletion a lease was created again, or when, if the input does not date the deletion."""
    if before.is_end_dated and after.leaderless is not None:
        return f"{format_length(after.leaderless)} later" if after.leaderless >= SHORTEST else "at once"
    ended = before.ended
    if ended is not None and ended.is_exact and after.beginning.write.is_exact and ended.at <= after.beginning.write.at:
        # Without a renewTime, the log alone says for how long it was gone.
        return f"{format_length(after.beginning.write.at - ended.at)} later"
    if after.beginning.created is not None:
        return f"at {format_clock(after.beginning.created, now)}"
    # What first shows its holder need not be the creation.
    at = format_clock(after.since, now)
    return f"by {at}" if after.beginning.is_dated else f"at {at} or later"
