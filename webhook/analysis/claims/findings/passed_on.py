"""Claims about leases that the pod of their holder passed on: to another holder, or to its own next name."""

from typing import Final

from webhook.analysis.claims.advice.on_mutation import advise_on_mutation
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.commands import advise_on_log_of_writer
from webhook.analysis.claims.findings.false_expiry import explain_false_expiry
from webhook.analysis.claims.findings.lease_claim import list_arguments_of_replacement, make_claim
from webhook.analysis.claims.handovers import is_handed_over, is_next_name
from webhook.analysis.claims.words import describe_writer, format_clock, format_name
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY
from webhook.findings import Severity

ONE_POD: Final = (
    "both were written with the token of one pod: unless two processes have it, or its container restarted, "
    "one process led throughout and its identity changed"
)


def is_passed_on(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> bool:
    """Return whether the pod of a holder wrote the next one in, or its own next name: nobody took the lease from it."""
    is_own = is_handed_over(after, before) or is_next_name(history.tenures, after, before)
    return is_own and explain_false_expiry(history, before, after, now) is None


def claim_passing_on(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    """Return the claim that the pod of a holder passed its lease on."""
    claim = _claim_hand_over if is_handed_over(after, before) else _claim_next_name
    return claim(history, before, after, now)


def _claim_hand_over(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    other = after.processes.taken_by or Writer()
    message = (
        f"at {format_clock(after.since, now)} {format_name(before.holder)} "
        f"handed the lease over to {format_name(after.holder)}: "
        f"{describe_writer(other)} wrote it in, without a release"
    )
    sentence = "If that was intended, no action is needed. To see what it logged:"
    advice = advise_on_log_of_writer(sentence, history.namespace, other, before.holder)
    return make_claim(
        history,
        "handed-over",
        Severity.INFO,
        message,
        advice,
        over_since=after.since,
        arguments=list_arguments_of_replacement(before, after),
    )


def _claim_next_name(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Claim:
    """Return the claim that one pod wrote another name in place of the one that it had written before."""
    pod = after.processes.taken_by or Writer()
    message = (
        f"at {format_clock(after.since, now)} {format_name(after.holder)} followed {format_name(before.holder)}: "
        f"{ONE_POD}"
    )
    rewritten = history.requests.rewritten.found.get(HOLDER_IDENTITY)
    sentence = "If its program changes its name, no action is needed. To see what it logged:"
    advice = advise_on_log_of_writer(sentence, history.namespace, pod, before.holder)
    return make_claim(
        history,
        "handed-over",
        Severity.INFO,
        message,
        advise_on_mutation(rewritten) if rewritten else advice,
        over_since=after.since,
        arguments=list_arguments_of_replacement(before, after),
    )
