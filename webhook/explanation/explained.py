"""A finding of `why`: what went wrong, the cause in one word, and in a sentence what to do first."""

from webhook.audit.finding import Finding
from webhook.explanation.next_step import Advice
from webhook.history.lease_history import LeaseHistory
from webhook.reports.model import Severity


class Explained(Finding, frozen=True, kw_only=True):
    """`repair` is a command; `advice` is the sentence before it, which ends with a colon; `cause` may be "".

    `is_over` is whether it had ended at the moment of the account; None if that is not known.
    """

    advice: str
    cause: str = ""
    is_over: bool | None = None


def explained(
    history: LeaseHistory,
    check: str,
    severity: Severity,
    message: str,
    advice: Advice,
    cause: str = "",
    *,
    is_over: bool | None = None,
) -> Explained:
    """A finding about a lease."""
    return Explained(
        kind="Lease",
        namespace=history.namespace,
        name=history.name,
        check=check,
        severity=severity,
        message=message,
        repair=advice.command,
        advice=advice.sentence,
        cause=cause,
        is_over=is_over,
    )
