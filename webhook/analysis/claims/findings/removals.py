"""Claims about holders that were removed from a lease, or asked to leave it, by another one."""

from collections.abc import Iterator

from webhook.analysis.claims.advice.on_writers import advise_on_writer, describe_revocation, describe_strict
from webhook.analysis.claims.arguments import bound_write
from webhook.analysis.claims.claim import Advice, Claim, WriteAuthor
from webhook.analysis.claims.commands import make_command_for_audit_log
from webhook.analysis.claims.evidence.pods.gone_pods import describe_confirmed_end
from webhook.analysis.claims.findings.lease_claim import find_identity, make_claim
from webhook.analysis.claims.handover_clauses import describe_address_of_end
from webhook.analysis.claims.words import describe_user, describe_writer, format_bound, format_clock, format_name
from webhook.analysis.history.audit_log.addresses import Elsewhere
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure, with_previous
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import was_live
from webhook.analysis.inputs.items import Writer
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.commands import quote_for_shell


def was_removed_while_leading(tenure: Tenure, now: int) -> bool:
    """Return whether another one removed the holder, or the lease was live and the holder need not have done it."""
    is_live = was_live(tenure.last_renewal, tenure.duration, tenure.until or now)
    return tenure.removal.is_own is False or (tenure.removal.may_be_by_another and is_live)


def claim_removal(
    histories: ClusterHistory, history: LeaseHistory, before: Tenure, after: Tenure | None, *, now: int
) -> Claim:
    """Return the claim that a holder was removed: by another one, or by someone unknown."""
    if before.removal.is_own is False:
        end = "" if before.had_expired else describe_confirmed_end(histories, before, before.until or now, now)
        return _claim_foreign_release(history, before, after, now, end=end)
    return _claim_removed_holder(history, before, after, now)


def _claim_foreign_release(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int, *, end: str) -> Claim:
    who = before.removal.writer or Writer()
    by, at = describe_writer(who), before.until or now
    silent, longest = at - before.last_renewal, history.renewals.longest_usual
    # Who renewed shortly before need not lead: its process may have ended, and another one released the lease for it.
    led, severity = f", which had renewed the lease {format_length(silent)} before", Severity.ERROR
    has_stopped = longest is not None and silent > longest and not before.has_unseen_renewals
    if not was_live(before.last_renewal, before.duration, at):
        led = ", which may still have led"
    if before.had_expired:
        severity = Severity.WARNING
        led = f", which had not renewed the lease for {format_length(silent)}: it had expired"
    elif has_stopped:
        severity = Severity.WARNING
        led = f", which had not renewed the lease for {format_length(silent)}, and may still have led"
    place = describe_address_of_end(before)
    if end:
        severity, led = Severity.WARNING, f": {end}"
    message = f"at {format_clock(at, now)} {by} removed {format_name(before.holder)} as the holder{place}{led}"
    if end and after is not None:
        message += f"; {format_name(after.holder)} took it at {format_clock(after.since, now)}"
    elif after is not None and (before.had_expired or (has_stopped and after.holder != before.holder)):
        message += f"; {format_name(after.holder)} took it at {format_clock(after.since, now)}"
        message += "" if before.had_expired else ": two may have led at once, unless the old one had ended"
    elif after is not None and after.holder != before.holder:
        later = max(0, after.since - (before.until or 0))
        is_exact = after.is_exact and before.ended is not None and before.ended.is_exact
        # Stamps have whole seconds.
        bound = format_length(later) if is_exact else format_bound(later + SECOND)
        message += (
            f"; {format_name(after.holder)} took the lease {bound} later: "
            "two may have led at once, until the old one noticed"
        )
    return make_claim(
        history,
        "foreign-release",
        severity,
        message,
        _advise_on_release(history, before, who),
        "foreign-release",
        over_since=at,
        arguments={
            "previous": find_identity(before),
            "by": WriteAuthor(who),
            **bound_write(before.ended),
        },
    )


def _advise_on_release(history: LeaseHistory, tenure: Tenure, who: Writer) -> Advice:
    """Return what to do about a process that released the lease of another one."""
    if tenure.removal.elsewhere is not None:
        return _advise_on_token(who, tenure.removal.elsewhere)
    by, strict = describe_writer(who), describe_strict(who)
    if tenure.removal.is_blind or not _is_holder_before(history, tenure, who):
        blind = ", by a patch without a precondition, which removes whoever is there" if tenure.removal.is_blind else ""
        sentence = f"Find out why {by} removed the holder{blind}{strict}.{describe_revocation(history, who)}"
        return advise_on_writer(sentence, history, who)
    # LeaderElector.release reads the new record, and decides by the one that it observed before.
    sentence = (
        f"Find out whether {by}, which had lost the lease, was paused: client-go with ReleaseOnCancel may then "
        f"release it for its next holder{strict}."
    )
    return advise_on_writer(sentence, history, who)


def _is_holder_before(history: LeaseHistory, tenure: Tenure, who: Writer) -> bool:
    """Return whether a process is surely the one that held the lease right before a tenure."""
    previous = next((before for before, one in with_previous(history.tenures) if one is tenure), None)
    own = previous.processes.own if previous is not None and previous.processes.is_process_known else None
    return own is not None and bool(who.pod) and own.is_same(who)


def _advise_on_token(who: Writer, elsewhere: Elsewhere) -> Advice:
    """Return what to do about a token that was used from another address than that of its pod."""
    address = format_name(elsewhere.address)
    sentence = (
        f"Find out who used the token of pod {format_name(who.pod)} from {address}: unless the pod did, through "
        "a proxy or NAT, someone else has it, and deleting the pod revokes it. To see which pod has that address:"
    )
    selector = quote_for_shell(f"status.podIP={elsewhere.address}")
    return Advice(sentence, f"kubectl get pods -A -o wide --field-selector {selector}")


def _claim_removed_holder(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int) -> Claim:
    at = before.until or now
    is_dated = before.ended is not None and before.ended.is_dated
    is_surely_live = is_dated and not before.is_last_unseen
    live = "while the lease was live" if is_surely_live else "while the lease may have been live"
    who = before.removal.writer
    did = f"{format_name(before.holder)} was removed as the holder"
    if who is not None and who.user:
        did = f"{describe_writer(who)} removed {format_name(before.holder)} as the holder"
    risk = ": if the holder did not do that itself, two may have led at once"
    if after is not None and after.holder == before.holder:
        risk = f"; the next one was {format_name(after.holder)} again, from {format_clock(after.since, now)} on"
    message = f"at {format_clock(at, now)}{'' if is_dated else ' or later'} {did} {live}{risk}"
    if before.removal.is_under_other_manager:
        # A client chooses its field manager, and one process may write by several clients.
        message += f". The field manager was {format_name(before.removal.manager)}, and not that of its renewals"
    command = make_command_for_audit_log(history.namespace, history.name)
    advice = Advice("The audit log shows who removed the holder:", command)
    if who is not None and who.user:
        advice = advise_on_writer(f"Find out which program of {describe_user(who)} removed it.", history, who)
    within, renewal = {**bound_write(before.ended)}, before.last_renewal_write or before.beginning.write
    if "earliest" in within and not renewal.is_claimed:
        within["earliest"] = max(within["earliest"], renewal.earliest)  # which came before the removal
    arguments = {"previous": find_identity(before), "how": None if is_surely_live else "unknown", **within}
    return make_claim(history, "holder-removed", Severity.WARNING, message, advice, over_since=at, arguments=arguments)


def find_preferred_holders(history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for the latest write by which someone other than an API server asked a holder to step down."""
    foreign = [
        one
        for one in history.edits
        if "preferredHolder" in one.text and one.writer and one.writer.user not in {"", API_SERVER} and one.tenure
    ]
    for edit in foreign[-1:]:
        assert edit.writer is not None
        who = f"at {format_clock(edit.at, now)} {describe_writer(edit.writer)} changed preferredHolder"
        message = f"{who}, as only an API server should ({edit.text})"
        advice = advise_on_writer(f"Find out why {format_name(edit.writer.name)} writes it.", history, edit.writer)
        asked = edit.tenure.step_down if edit.tenure else None
        arguments = {
            "identity": asked.successor if asked and asked.writer == edit.writer else None,
            "by": WriteAuthor(edit.writer),
        }
        yield make_claim(
            history,
            "preferred-holder-foreign",
            Severity.WARNING,
            message,
            advice,
            over_since=edit.at,
            arguments=arguments,
        )
