"""A finding of `why`: beside what went wrong, the cause in a word, and what to do first in a sentence."""

from msgspec import structs

from webhook.audit.finding import Finding
from webhook.history.lease_history import LeaseHistory
from webhook.reports.model import Severity


class Explained(Finding, frozen=True, kw_only=True):
    """`repair` is a command; `advice` is the sentence before it, which ends with a colon; `cause` may be "".

    `is_over` is whether it has ended by the moment of the account; None if that cannot be known.
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
    """The same of something that has ended."""
    return structs.replace(explained(history, check, severity, message, advice, command, cause), is_over=True)


def ongoing(
    history: LeaseHistory, check: str, severity: Severity, message: str, advice: str, command: str, cause: str = ""
) -> Explained:
    """The same of something that goes on."""
    return structs.replace(explained(history, check, severity, message, advice, command, cause), is_over=False)
