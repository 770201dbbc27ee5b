"""All that went wrong in the history of a lease: what `why` and `audit` report alike."""

from collections.abc import Iterator

from webhook.analysis.claims.causes import Diagnosis
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.findings import find_incidents
from webhook.analysis.claims.rewritten import find_rewritten_fields
from webhook.analysis.claims.takers import find_late_takers
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import InputKind


def find_all_incidents(
    histories: ClusterHistory, history: LeaseHistory, now: int, ongoing: Diagnosis | None
) -> Iterator[Claim]:
    """Yield all that went wrong by `now`, in microseconds since 1970; `ongoing` is why the holder does not renew."""
    yield from find_incidents(histories, history, now, ongoing)
    yield from find_rewritten_fields(history, now)
    yield from find_late_takers(histories, history, now)


def is_log_leaky(histories: ClusterHistory, history: LeaseHistory) -> bool:
    """Return whether the latest state is by a log that is known to lack requests, if only those of other leases."""
    return histories.bounds.is_log_leaky and history.kind is InputKind.AUDIT_LOG
