"""The time at which a holder last renewed its lease: from a log, else from the lease itself."""

from collections.abc import Sequence

from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseStatus
from webhook.analysis.inputs.items import RecordingGap
from webhook.kubernetes.times import SECOND


def find_last_renewal(
    history: LeaseHistory,
    status: LeaseStatus | None,
    tenure: Tenure | None,
    now: int,
    unrecorded: Sequence[RecordingGap],
) -> int | None:
    """Return when the holder last renewed its lease, in microseconds since 1970; None if that is not known.

    `tenure` is that of the present holder, if it was seen. `unrecorded` are the times for which nothing was recorded.
    """
    if history.hidden_since is not None:
        return None
    if tenure is not None and tenure.is_last_by_other:
        # Another one renewed it last: if renewals were not seen, nothing shows when its holder did.
        return tenure.last_of_identity if tenure.is_last_of_identity_known else None
    if tenure is not None and tenure.last_renewal_write is not None and tenure.last_renewal_write.is_dated_by_a_server:
        return tenure.last_of_identity
    shown = status.last_renewal if status is not None else None
    if status is None or shown is None:
        return _find_last_seen(history, now, unrecorded)
    if tenure is None and not status.holder:
        return _find_last_before_removal(history, shown)
    seen, is_unseen = history.renewals.last, tenure is not None and tenure.has_unseen_renewals
    # Stamps have whole seconds.
    is_same = seen is not None and not is_unseen and abs(seen - shown) < 2 * SECOND
    return seen if is_same else shown


def _find_last_before_removal(history: LeaseHistory, shown: int) -> int | None:
    """Return when a lease without a holder was last renewed: `shown` is what its state says.

    Most releases set renewTime, too. One that leaves it as it was renews nothing, and moves the stamp all the same.
    """
    latest, is_removed = history.latest_tenure, history.vacancy.how is Handover.RELEASED
    if latest is None or not is_removed or latest.removal.is_renewal or history.nameless is not None:
        return shown
    return None if latest.is_last_unseen else latest.kept_until


def _find_last_seen(history: LeaseHistory, now: int, unrecorded: Sequence[RecordingGap]) -> int | None:
    """Return when it was last seen renewed, where its state does not say that; None if it may have been later.

    Also if a writer's clock alone dates that: no state is left whose renewTime it would be.
    """
    seen, latest = history.renewals.last, history.latest_tenure
    if seen is None or history.is_list_only or history.renewals.is_last_claimed:
        return None
    if latest is not None and latest.is_last_unseen:
        return None  # a later write was seen, which need not have renewed it
    ends = (*(one.end for one in history.renewals.unseen), *(one.end for one in unrecorded))
    if any(end > seen for end in ends):
        return None  # it was taken, and whether it was renewed is not known
    return seen if seen <= now else None  # a clock that is ahead may have dated it
