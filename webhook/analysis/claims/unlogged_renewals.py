"""Whether an audit log would show the renewals of a holder: policies leave out updates, which most events are.

A log that has the creation of a lease and no update by its holder's account shows neither that it was renewed nor that
it was not. That another account's updates are there says nothing of this one: rules of a policy name users, too.
"""

from typing import TYPE_CHECKING

from webhook.analysis.claims.words import describe_user
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import InputKind, Writer

if TYPE_CHECKING:
    from webhook.analysis.claims.account import Account


def may_be_renewed_unlogged(histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None) -> bool:
    """Return whether a lease has expired only by a log that shows no update of any lease by its holder's account."""
    is_expired = status is not None and status.state is LeaseState.EXPIRED
    if not is_expired or history.kind is not InputKind.AUDIT_LOG or histories.is_watched:
        return False
    own = _find_own(history)
    return not histories.updating if own is None else own.user not in histories.updating


def describe_unlogged(account: "Account") -> str:
    """Return a clause that says whose updates a log does not have."""
    own = _find_own(account.history)
    return f"no update of a lease{f' by {describe_user(own)}' if own else ''}"


def _find_own(history: LeaseHistory) -> Writer | None:
    processes = history.tenure.processes if history.tenure else None
    return processes.own if processes and processes.is_sure else None
