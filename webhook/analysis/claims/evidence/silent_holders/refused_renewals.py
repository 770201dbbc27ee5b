"""The cause of a silence by what an API server answered to the holder: refused, failed, or in conflict."""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.evidence.pods.deleted_pods import (
    TOKEN_GRACE,
    DeletedPod,
    describe_deletion,
    describe_first_request,
    explain_refused_token,
    find_pod_deletion,
)
from webhook.analysis.claims.evidence.silent_holders.other_leases import (
    count_failures_of_others,
    describe_conflicts,
    describe_late,
    describe_punctual,
)
from webhook.analysis.claims.evidence.silent_holders.silence_evidence import (
    REFUSED,
    SilenceEvidence,
)
from webhook.analysis.claims.evidence.silent_holders.waits_for_etcd import add_waits_for_etcd
from webhook.analysis.claims.evidence.writers.failed_writes import (
    describe_stored,
    may_have_stored,
    name_logs,
)
from webhook.analysis.claims.evidence.writers.removed_webhooks import find_removed_webhook
from webhook.analysis.claims.evidence.writers.replaced_accounts import find_replaced_account
from webhook.analysis.claims.words import UNLESS_DRY_RUN, describe_by_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.latency import BY_WEBHOOKS
from webhook.analysis.history.audit_log.refusal import AUTHORIZATION_FAILED, TOO_MANY_REQUESTS, UNAUTHENTICATED, Refusal
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import OtherLeases
from webhook.analysis.inputs.absences import NODE
from webhook.kubernetes.times import SECOND, format_length


def diagnose_refusal(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the API server, or a webhook or policy in it, refused what the holder asked."""
    denied = [one for one in evidence.own_answers if one.is_denied]
    refused = [one for one in denied if not one.is_read] or denied
    if not refused:
        return None
    has_asked = evidence.asked_throughout or evidence.asked_until_end
    is_alone = evidence.kept_trying and has_asked and not evidence.hidden
    beside = () if is_alone else list_possible_causes(evidence.other_leases, evidence.hidden)
    last = refused[-1]
    late = (one for one in evidence.late_answers if evidence.is_own(one))
    reads = [one for one in (*denied, *late) if (one.code, one.by, one.is_read) == (last.code, last.by, True)]
    like_last = (
        one
        for one in evidence.late_answers
        if (one.code, one.by, one.is_read) == (last.code, last.by, last.is_read) and evidence.is_own(one)
    )
    cause = _describe_refusal([*refused, *like_last], beside, evidence.least)
    if reads and not last.is_read:
        # Who may not read the lease does not try to write it, and is not heard otherwise.
        times = [one.at for one in (*refused, *reads)]
        first, until = (format_clock(pick(times), evidence.end) for pick in (min, max))
        who = reads[-1].writer
        by = "" if who.pod or who.uid else describe_by_writer(who)  # several processes may ask as one user
        also = f"{evidence.least}{_count_requests(reads)}{by} likewise, all from {first} until {until}"
        cause = replace(cause, evidence=f"{cause.evidence}; {also}")
    if not evidence.was_refused_before(last):
        return cause
    # So refused, it could renew then: these may be other writes of its pod, which the lease does not need.
    text = f"{cause.evidence}; some were refused alike while it renewed"
    return Diagnosis(Blame.UNKNOWN, text, tuple(dict.fromkeys((*cause.possible_causes, Cause.STOPPED))))


def diagnose_unauthenticated(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if requests from the address and program of a silent holder were refused with 401."""
    sources = evidence.sources
    unauthenticated = [one for one in evidence.unauthenticated if one.source and one.source in sources]
    if not unauthenticated or evidence.request_count:
        return None
    return _describe_unauthenticated(evidence, unauthenticated)


def diagnose_failure(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if the API server was unable to store writes, or answered that there were too many requests."""
    own = evidence.own_answers
    if evidence.kept_trying and own and all(one.is_unserved for one in own):
        text = f"at least {format_count(len(own), 'request')} answered with 404, and not that the lease is not found"
        return _add_stop(Diagnosis(Blame.SERVER, text, (Cause.FAILED,), own[-1]), evidence)
    failed = [one for one in own if one.has_failed]
    if not failed or not evidence.kept_trying:
        return None
    limited = [one for one in failed if one.code == TOO_MANY_REQUESTS]
    others = [one for one in failed if one.code != TOO_MANY_REQUESTS]
    where = f"{name_logs(evidence.history, limited)}{_describe_limited_accounts(evidence, limited)}"
    text = f"at least {format_count(len(limited), 'request')} answered with {TOO_MANY_REQUESTS}{where}"
    if not others:
        return _add_stop(Diagnosis(Blame.THROTTLED, text, (Cause.THROTTLED,), limited[-1]), evidence)
    cause = replace(_diagnose_unstored(evidence, others), may_be_stored=may_have_stored(others))
    cause = add_waits_for_etcd(_add_stop(cause, evidence), evidence)
    if not limited:
        return cause
    return replace(
        cause, evidence=f"{cause.evidence}; and {text}", possible_causes=(*cause.possible_causes, Cause.THROTTLED)
    )


def _describe_limited_accounts(evidence: SilenceEvidence, limited: Sequence[Refusal]) -> str:
    """Say that only requests of one account were too many; "" if another one's were, or that is not known."""
    users = {one.writer.user for one in limited}
    requests = [one.requests for one in evidence.histories.leases.values()]
    answers = (answer for one in requests for answer in one.refusals if evidence.start < answer.at <= evidence.end)
    is_shared = any(one.code == TOO_MANY_REQUESTS and one.writer.user not in users for one in answers)
    is_known = bool(evidence.histories.updating - users) and not any(
        one.has_forgotten_since(evidence.start) for one in requests
    )
    return ", and none for a lease by another account" if limited and is_known and not is_shared else ""


def _add_stop(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a holder's failures; if it did not ask for long, it may have stopped as well."""
    if evidence.asked_throughout or Cause.STOPPED in cause.possible_causes:
        return cause
    return replace(cause, possible_causes=(*cause.possible_causes, Cause.STOPPED))


def diagnose_conflict(evidence: SilenceEvidence) -> Diagnosis | None:
    """Return the cause if its updates conflicted: with those of others, or with its own renewals."""
    history, tenure, start, end = evidence.history, evidence.tenure, evidence.start, evidence.end
    conflicts = sum(1 for one in evidence.own_answers if one.has_conflicted)
    if not conflicts or not evidence.kept_trying:
        return None
    if not evidence.hidden and tenure and _has_no_other_writes(history, tenure, start, end):
        text = f"{conflicts} of its updates conflicted (409), although nothing else was written to the lease"
        return Diagnosis(Blame.CLIENT, text, (Cause.UNANSWERED, Cause.CONFLICT), requests=evidence.request_count or 0)
    text = describe_conflicts(f"{evidence.least}{conflicts}", history, start, end)
    return _add_stop(Diagnosis(Blame.CONFLICT, text, (Cause.CONFLICT,)), evidence)


def _has_no_other_writes(history: LeaseHistory, tenure: Tenure, start: int, end: int) -> bool:
    """Return whether a log that has all writes has none by another between the last renewal of a holder and `end`.

    A write that conflicts then is based on a state before that renewal, of which the answer may not have arrived.
    """
    is_renewed_by_other = tenure.renewed_by_other is not None and start <= tenure.renewed_by_other.at < end
    times = (*(one.at for one in history.idle_writes), *(at for at, _ in history.requests.accepted))
    return not is_renewed_by_other and not any(start <= at < end for at in times)


def list_possible_causes(compared: OtherLeases, hidden: Sequence[Cause]) -> tuple[Cause, ...]:
    """Return the causes that are possible besides what the answers show."""
    return (Cause.STOPPED, Cause.API_SERVER, *(() if compared.on_time else (Cause.NETWORK,)), *hidden)


def _describe_refusal(refused: Sequence[Refusal], beside: Sequence[Cause], least: str) -> Diagnosis:
    # Who cannot renew gives up, and may release the lease then, which is refused as well.
    last = ([one for one in refused if not one.is_release] or refused)[-1]
    said = f"{', the last one' if len(refused) > 1 else ''}{last.refuser}"
    message = f"{said}: {last.shown_message}" if last.message else ""
    by = REFUSED[last.by]
    possible = (by, *(one for one in beside if one != by))
    codes = " and ".join(map(str, sorted({one.code for one in refused})))
    return Diagnosis(Blame.REFUSED, f"{least}{_count_requests(refused)} answered with {codes}{message}", possible, last)


def _count_requests(refused: Sequence[Refusal]) -> str:
    """Return `3 writes`, `3 reads`, or `3 requests` if some are reads and some are not."""
    kinds = {one.is_read for one in refused}
    if len(kinds) > 1:
        return format_count(len(refused), "request")
    return format_count(len(refused), "read" if True in kinds else "write")


def _describe_unauthenticated(evidence: SilenceEvidence, unauthenticated: Sequence[Refusal]) -> Diagnosis | None:
    """Return the cause if requests from the address and program of a silent holder were refused with 401.

    Only who believes to lead writes before it has read; who waits reads, too, from an address that several share.
    """
    is_alone = evidence.history.requests.is_only_source_of(evidence.tenure, unauthenticated[-1].source)
    if not is_alone and all(one.is_read for one in unauthenticated):
        return None
    doubt = "" if is_alone else " (others used both as well)"
    late = [one for one in evidence.late_answers if one.code == UNAUTHENTICATED and one.source in evidence.sources]
    text = (
        f"{evidence.least}{_count_requests([*unauthenticated, *late])} answered with 401 (Unauthorized), "
        f"from its address and program{doubt}, and none by its name for most of that time"
    )
    possible, last, first = (Cause.REFUSED_CREDENTIALS, Cause.STOPPED), unauthenticated[-1], unauthenticated[0].received
    deleted = find_pod_deletion(evidence, TOKEN_GRACE)
    if deleted is not None and deleted.ended_at is not None and deleted.ended_at < first:
        return None  # its containers had ended, so another process asked from there
    if deleted is not None and deleted.asked and deleted.asked[0].at < first + evidence.histories.bounds.skew:
        how = f"{describe_deletion(deleted, evidence.end)}{_describe_renewals_after(deleted, evidence)}"
        causes = (*possible, Cause.POD_DELETED)
        return Diagnosis(
            Blame.REFUSED,
            f"{text}; its pod was {how}, and {explain_refused_token(deleted)}",
            causes,
            last,
            deletion=describe_first_request(deleted, evidence.end),
            is_end_shown=deleted.ended_at is not None,
        )
    # It need not be the holder's.
    if (replaced := find_replaced_account(evidence.histories, evidence.history)) is not None:
        text = f"{text}; {replaced.describe(evidence.end)}"
        return Diagnosis(Blame.REFUSED, text, possible, last, replaced_account=replaced)
    own = evidence.tenure.processes.own if evidence.tenure is not None else None
    node = own.bound_node if own is not None else ""
    # Whoever shares its address may not be heard by name.
    text += _describe_deleted_node(evidence, node, first) if node else ""
    return Diagnosis(Blame.REFUSED, text, possible, last, token_node=node)


def _describe_deleted_node(evidence: SilenceEvidence, node: str, until: int) -> str:
    """Say that the Node to which a token is bound was deleted before it was not accepted, as the end of a clause.

    Source: kubernetes `pkg/serviceaccount/claims.go`, `Validate`: a Node of that name has another uid afterwards.
    """
    of_node = (one for one in evidence.histories.index.related_writes if (one.kind, one.name) == (NODE, node))
    skew = evidence.histories.bounds.skew
    deleted = [one for one in of_node if one.verb == "deleted" and until - TOKEN_GRACE <= one.at <= until + skew]
    if not deleted:
        return ""
    last = max(deleted, key=lambda one: one.at)
    doubt = "" if last.is_surely_not_dry_run else f" ({UNLESS_DRY_RUN})"
    when = f"{format_clock(last.at, evidence.end)}{describe_by_writer(last.writer)}{doubt}"
    return (
        f"; its token is bound to Node {format_name(node)}, which was deleted at {when}, "
        "and is not accepted once that is gone"
    )


def _describe_renewals_after(deleted: DeletedPod, evidence: SilenceEvidence) -> str:
    """Say for how long a holder renewed after its pod was deleted, if it did."""
    went_on = evidence.start - deleted.asked[0].at
    if went_on <= SECOND + evidence.histories.bounds.skew:
        return ""
    return (
        f", after which it renewed until {format_clock(evidence.start, evidence.end)}, {format_length(went_on)} later"
    )


def _diagnose_unstored(evidence: SilenceEvidence, failed: Sequence[Refusal]) -> Diagnosis:
    """Return the cause if the API server was unable to store writes: of this lease only, or also of others."""
    compared = evidence.other_leases
    last, late = failed[-1], describe_late(compared)
    codes = " and ".join(map(str, sorted({one.code for one in failed})))
    text = f"at least {format_count(len(failed), 'request')} answered with {codes}{describe_stored(failed)}"
    if last.has_failed_at_once and last.message:
        text += f"{', the last one' if len(failed) > 1 else ''}: {last.message}"
    if last.slow_part:
        text += f"; of the {format_length(last.took)} of the last one, {last.slow_part} took most, as the log says"
    if all(one.failed_webhook for one in failed):
        removed = find_removed_webhook(evidence.histories.index.related_writes, evidence.history, last)
        return Diagnosis(Blame.SERVER, text, (Cause.FAILED,), last, removed_webhook=removed)
    if late or not compared.on_time:
        text += count_failures_of_others(evidence)
        return Diagnosis(Blame.SERVER, f"{text}; {late}" if late else text, (Cause.FAILED, Cause.API_SERVER), last)
    if last.slow_part in BY_WEBHOOKS:
        return Diagnosis(Blame.SERVER, f"{text}; {describe_punctual(compared)}", (Cause.FAILED,), last)
    read = next((one for one in reversed(failed) if one.is_read), None)
    path = "so not the API server as a whole: perhaps a webhook that it calls, or the one API server in use"
    if last.slow_part or evidence.failed_reads:
        # No admission webhook sees reads.
        path = "so not everywhere: perhaps at one API server only"
    if read is not None:
        path = (
            "so not every API server failed. No admission webhook sees reads: look at the API server in use, and what "
            "it asks, such as etcd and authorizers"
        )
    if all(one.reason == AUTHORIZATION_FAILED for one in failed):
        path = "and the log says that authorization failed: look at the authorizers, such as a webhook"
    evidence_text = f"{text}; {describe_punctual(compared)}, {path}"
    has_failed_reads = bool(evidence.failed_reads)
    return Diagnosis(Blame.SERVER, evidence_text, (Cause.FAILED,), read or last, has_failed_reads=has_failed_reads)
