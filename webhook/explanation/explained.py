"""A finding of `why`: beside what went wrong, the cause in a word, and what to do first in a sentence."""

from webhook.audit.finding import Finding
from webhook.history.lease_history import LeaseHistory
from webhook.reports.model import Severity


class Explained(Finding, frozen=True, kw_only=True):
    """`repair` is a command; `advice` is the sentence before it, which ends with a colon; `cause` may be ""."""

    advice: str
    cause: str = ""


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
