"""Claims about a lease that one asked for in another name while it was held, by a log of requests.

Such a log does not show what was stored. That another user asked for it shortly after a renewal, was not refused, and
the holder's next renewal conflicted, is what a theft looks like there; so is that one asked for it by whose own clock
it had expired.
"""

from typing import Final

from webhook.analysis.claims.advice.on_writers import advise_on_writer, describe_revocation
from webhook.analysis.claims.claim import Advice, Claim
from webhook.analysis.claims.evidence.writers.foreign_writes import find_stranger
from webhook.analysis.claims.findings.false_expiry import FalseExpiry, explain_clock_of_taker
from webhook.analysis.claims.findings.lease_claim import list_arguments_of_replacement, make_claim
from webhook.analysis.claims.findings.thefts import describe_own_address, has_no_process
from webhook.analysis.claims.handovers import is_from_one_pod
from webhook.analysis.claims.words import describe_user, describe_writer, format_clock, format_name
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND, format_length

_UNSHOWN: Final = "The log does not show what was stored"


def claim_unshown_theft(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim | None:
    """Return the claim that one asked for a lease that another one held; None if the log does not hint at more."""
    if not after.beginning.is_over_unshown:
        return None
    by_clock = explain_clock_of_taker(history, before, after)
    if by_clock is not None and not is_from_one_pod(after, before):
        return _claim_by_clock(history, before, after, by_clock, now)
    return _claim_with_conflict(history, before, after, now)


def _claim_by_clock(history: LeaseHistory, before: Tenure, after: Tenure, by_clock: FalseExpiry, now: int) -> Claim:
    """Return the claim that one asked for a lease that looked expired to it, by its clock."""
    message = (
        f"at {format_clock(after.since, now)} {format_name(after.holder)} asked for the lease, "
        f"{_describe_time_since_renewal(before, after)}, and was not refused. {by_clock.text}. "
        f"{_UNSHOWN}; {_describe_doubt(history, before, after, now)}"
    )
    return _make_claim(history, before, after, message, by_clock.advice, by_clock.cause)


def _describe_time_since_renewal(before: Tenure, after: Tenure) -> str:
    later = format_length(after.since - before.kept_until)
    return f"{later} after the last renewal by {format_name(before.holder)}"


def _claim_with_conflict(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim | None:
    """Return the claim that another user asked for a lease, and its holder then conflicted; None if it did not."""
    stranger = find_stranger(before, after)
    refused = _find_conflict(history, before, after) if stranger is not None else None
    if stranger is None or refused is None:
        return None
    message = (
        f"at {format_clock(after.since, now)} {describe_writer(stranger)} asked for the lease as "
        f"{format_name(after.holder)}, {_describe_time_since_renewal(before, after)}, and was not "
        f"refused; the next renewal by that one conflicted (409) at {format_clock(refused.at, now)}"
        f"{describe_own_address(history, stranger)}. {_UNSHOWN}; {_describe_doubt(history, before, after, now)}"
    )
    sentence = f"Find out why {describe_user(stranger)} asked for the lease while {format_name(before.holder)} held it."
    sentence += describe_revocation(history, stranger, is_address_told=True)
    advice = advise_on_writer(sentence, history, stranger)
    return _make_claim(history, before, after, message, advice, "stolen")


def _make_claim(
    history: LeaseHistory, before: Tenure, after: Tenure, message: str, advice: Advice, cause: str
) -> Claim:
    return make_claim(
        history,
        "lease-stolen",
        Severity.WARNING,
        message,
        advice,
        cause,
        over_since=after.since,
        arguments=list_arguments_of_replacement(before, after),
    )


def _describe_doubt(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> str:
    """Say what may have followed, if what was asked for was stored: no process need have the name."""
    if has_no_process(history, before, after, now):
        return f"it has no request of a pod named as {format_name(after.holder)}"
    return "if that is what was asked for, two may have led at once"


def _find_conflict(history: LeaseHistory, before: Tenure, after: Tenure) -> Refusal | None:
    """Return the first conflict of a holder's renewal after another holder was asked for; None if there is none."""
    own, end = before.processes.own, after.since + (before.duration or 0) * SECOND
    return next(
        (
            one
            for one in history.requests.refusals
            if after.since < one.received < end
            and one.has_conflicted
            and one.asked_holder == before.holder
            and own is not None
            and own.is_same(one.writer)
        ),
        None,
    )
