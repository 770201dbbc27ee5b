"""The creation of a lease that the input does not show as such, by its creationTimestamp, which an API server sets."""

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND, parse_stamp


def find_creation_at_first_sight(history: LeaseHistory) -> int | None:
    """Return when a lease was created whose first state in the input was written then, in whole seconds.

    None if it was there before, or another holder has followed. A watch shows what is there when it begins as it shows
    what is created later.
    """
    first, lease = history.latest_tenure, history.lease
    if first is None or lease is None or history.is_list_only or history.renewals.tenure_count != 1:
        return None
    if first.began is not Handover.SEEN or first.beginning.write.is_logged:
        return None  # a log that shows no creation begins after it
    created, renewed = parse_stamp(lease.metadata.creation_timestamp), first.beginning.renew_time
    if created is None or renewed is None:
        return None
    # A client writes renewTime before it sends the request.
    return created if created - MAX_TOLERANCE <= renewed <= created + SECOND else None
