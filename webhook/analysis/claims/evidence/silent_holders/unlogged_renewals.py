"""Whether an input would show the renewals of a holder: policies leave out updates, which most events are.

A log that has the creation of a lease and no update by its holder's account shows neither that it was renewed nor that
it was not. That another account's updates are there says nothing of this one: rules of a policy name users, too. Nor
does what ended before the lease expired, or what lacks a write that the answer to a read shows.
"""

from msgspec import Struct

from webhook.analysis.claims.words import describe_user, format_clock
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import Writer


class Unlogged(Struct, frozen=True):
    """Why an input does not show whether an expired lease was renewed: what a log has not, or that the input ended.

    `shown` is "" where the headline says it; `doubt` is how far it shows that the lease was not renewed; `advice`
    begins a sentence.
    """

    shown: str
    advice: str
    doubt: str = "as far as the log shows"
    ended: int = 0
    """When the input ended, if it did before the lease could expire, in microseconds since 1970; 0 if not.

    What it shows of that time may be why the renewals stopped after it.
    """


def _lack(what: str, doubt: str = "as far as the log shows") -> Unlogged:
    return Unlogged(
        f"renewals, if the log lacks them: it has {what}", f"The log has {what}, so it may lack all renewals", doubt
    )


def describe_unlogged(
    histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None, now: int
) -> Unlogged | None:
    """Return what an input has not that might be renewals of an expired lease; None if it need not lack any.

    A watch of the lease that has not ended shows its renewals, even if a log lacks them.
    """
    if status is None or status.state is not LeaseState.EXPIRED or status.takeable_at is None or history.is_list_only:
        return None
    ended, expired, until = histories.bounds.logged_until, status.takeable_at, histories.bounds.until
    if histories.bounds.is_over and until is not None and until < expired:
        end = format_clock(until, now)
        return Unlogged(
            "",  # the headline says as much
            f"The input ends at {end}, before the lease could expire, so it does not show whether it was renewed since",
            ended=until,
        )
    if not ended or histories.is_watched_at(history, expired):
        return None
    if ended < expired <= (until or 0):
        return _lack(f"no request after {format_clock(ended, now)}")
    if (read := history.read) is not None:
        read_at = format_clock(read.at, now)
        doubt = f"as far as a read at {read_at} shows"
        is_shown = history.is_read_unchanged_at(expired)
        return None if is_shown else _lack(f"no request for what a read at {read_at} shows", doubt)
    if histories.lacks_shown_requests(history):
        return _lack("no request for some writes that a watch shows")
    own = _find_own(history)
    if own is None:
        return None if histories.updating else _lack("no update of a lease")
    return None if own.user in histories.updating else _lack(f"no update of a lease by {describe_user(own)}")


def _find_own(history: LeaseHistory) -> Writer | None:
    processes = history.latest_tenure.processes if history.latest_tenure else None
    return processes.own if processes and processes.is_process_known else None
