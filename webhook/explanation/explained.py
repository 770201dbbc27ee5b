"""A finding of `why`: what went wrong, the cause in one word, and in a sentence what to do first."""

from msgspec import structs

from webhook.audit.finding import Finding
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
    history: LeaseHistory, check: str, severity: Severity, message: str, advice: str, command: str, cause: str = ""
) -> Explained:
    """A finding about a lease."""
    return Explained(
        kind="Lease",
        namespace=history.namespace,
        name=history.name,
        check=check,
        severity=severity,
        message=message,
        repair=command,
        advice=advice,
        cause=cause,
    )


def over(
    history: LeaseHistory, check: str, severity: Severity, message: str, advice: str, command: str, cause: str = ""
) -> Explained:
    """A finding about something that has ended."""
    return structs.replace(explained(history, check, severity, message, advice, command, cause), is_over=True)


def ongoing(
    history: LeaseHistory, check: str, severity: Severity, message: str, advice: str, command: str, cause: str = ""
) -> Explained:
    """A finding about something that is ongoing."""
    return structs.replace(explained(history, check, severity, message, advice, command, cause), is_over=False)
