"""A lease that was free for a while before, too, and was taken then: as one is that is used only at times."""

from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.words import format_clock
from webhook.analysis.history.holders.tenure import find_latest_pair
from webhook.kubernetes.times import MINUTE


class FreeTime(Struct, frozen=True):
    """From when to when a lease had no holder; microseconds since 1970."""

    since: int
    until: int

    @property
    def length(self) -> int:
        """For how long it had none."""
        return self.until - self.since

    def describe(self, now: int) -> str:
        """`It was free before, too, from 12:00:05Z to 12:03:05Z`."""
        return f"It was free before, too, from {format_clock(self.since, now)} to {format_clock(self.until, now)}"


def find_earlier_free_time(account: Account) -> FreeTime | None:
    """Return for how long a lease was free before its last holder, if for at least half as long as now; else None.

    Where a log shows who asks for it now, and does not get it, that says more.
    """
    latest, is_asked = account.history.latest_tenure, account.askers is not None and bool(account.askers.asking)
    if latest is None or latest.until is None or is_asked or not account.history.is_end_seen:
        return None
    pair = find_latest_pair(account.history.tenures)
    before = pair[0] if pair is not None else None
    since = latest.beginning.free_since if before is None else before.until
    is_known = latest.beginning.is_dated and not latest.beginning.is_unseen
    is_end_known = before is None or (before.is_end_dated and not before.is_deleted)
    if since is None or not (is_known and is_end_known):
        return None
    found = FreeTime(since, latest.since)
    return found if found.length >= max(MINUTE, (account.now - latest.until) // 2) else None


def is_used_at_times(account: Account) -> bool:
    """Return whether a free lease may be of a Job that has ended, or was free for as long before."""
    return account.pods.job is not None or find_earlier_free_time(account) is not None
