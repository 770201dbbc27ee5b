"""Whether an audit log would show the renewals of a holder: policies leave out updates, which most events are.

A log that has the creation of a lease and no update by its holder's account shows neither that it was renewed nor that
it was not. That another account's updates are there says nothing of this one: rules of a policy name users, too.
"""

from webhook.analysis.claims.words import describe_user, format_clock
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import Writer


def describe_unlogged(histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None, now: int) -> str:
    """Return what a log has not that might be renewals of an expired lease, as a clause; "" if it need not lack any.

    A watch of the lease that goes on shows its renewals, whatever a log lacks.
    """
    if status is None or status.state is not LeaseState.EXPIRED or status.takeable_at is None or history.is_list_only:
        return ""
    ended, expired = histories.bounds.logged_until, status.takeable_at
    if not ended or histories.is_watched_at(history, expired):
        return ""
    if ended < expired <= (histories.bounds.until or 0):
        return f"no request after {format_clock(ended, now)}"
    if histories.lacks_shown_requests(history):
        return "no request for some writes that a watch shows"
    own = _find_own(history)
    if own is None:
        return "" if histories.updating else "no update of a lease"
    return "" if own.user in histories.updating else f"no update of a lease by {describe_user(own)}"


def _find_own(history: LeaseHistory) -> Writer | None:
    processes = history.latest_tenure.processes if history.latest_tenure else None
    return processes.own if processes and processes.is_sure else None
