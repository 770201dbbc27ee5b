"""The creation of a lease by its creationTimestamp, which an API server sets.

In: a lease whose creation the input does not show as such, or that no one has held. Out: when it was created, and by
whom as far as the input shows.
"""

from msgspec import Struct

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.claims.words import describe_by_writer, format_name
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
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


class UnheldCreation(Struct, frozen=True):
    """The creation of a lease that no one has held; `manager` is "" if the input shows the writer, or neither."""

    at: int
    """The time of it in microseconds since 1970, in whole seconds if the input does not show the writer."""
    by: Writer | None = None
    manager: str = ""

    def describe(self) -> str:
        """`the lease was created by jane`."""
        manager = f" under the field manager {format_name(self.manager)}, which its writer chose"
        return f"the lease was created{describe_by_writer(self.by) or (manager if self.manager else '')}"


def find_creation_of_unheld(history: LeaseHistory) -> UnheldCreation | None:
    """Return how a lease was created that no one has held; None if someone has, or if only a list shows it."""
    lease, known = history.lease, history.existence
    if lease is None or history.tenures or history.is_list_only:
        return None
    if known.created_by is not None:
        return UnheldCreation(known.created_at, known.created_by)  # a log of requests has what the client sent
    created = parse_stamp(lease.metadata.creation_timestamp)
    managers = {one.manager or "" for one in history.entries if one.stamp == created}
    return None if created is None else UnheldCreation(created, None, managers.pop() if len(managers) == 1 else "")
