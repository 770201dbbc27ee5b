"""The silence of a lease's writer before a log ends, by its own rhythm.

In: a lease of which a log does not show the state, or a heartbeat without a holder. Out: since when the log has no
request for it by its writer. Of any other lease its holder and the cause of its silence say that.
"""

from statistics import median_low
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.silent_holders.request_intervals import list_intervals
from webhook.analysis.claims.words import format_clock
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseStatus
from webhook.kubernetes.times import SECOND, format_length

_MISSED: Final = 3
"""A writer is silent once it has missed so many requests."""


class SilentWriter(Struct, frozen=True):
    """The last request of the writer of a lease, and the end of the log, in microseconds since 1970.

    `usual` is the time between two of its requests before that, in microseconds.
    """

    last: int
    until: int
    usual: int

    def describe(self, now: int) -> str:
        """Say since when the log has no request by the writer, and that it ends."""
        since, until = format_clock(self.last, now), format_clock(self.until, now)
        return (
            f"since {since}: the log, which ends at {until}, has no request for it by its writer in these "
            f"{format_length(self.until - self.last)}; before, one came every {format_length(self.usual)}"
        )


def find_silent_writer(
    histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None
) -> SilentWriter | None:
    """Return since when the latest writer of a lease is silent; None if it is not, or the input does not show it."""
    tenure = history.current_tenure
    own = tenure.processes.own if tenure is not None else None
    is_told = status is not None and not (history.is_heartbeat and not status.holder)
    if tenure is None or own is None or is_told or histories.bounds.skew > SECOND:
        return None
    times = history.requests.heard.times.get(own.process, ())
    intervals = list_intervals(times)
    if len(intervals) < 2:
        return None
    # A request is received before its write is stored.
    last, until = max(*times, tenure.last_renewal), histories.bounds.logged_until
    is_silent = until - last >= _MISSED * max(intervals)
    is_shown = histories.shows_all_requests(history, last, until)
    return SilentWriter(last, until, median_low(intervals)) if is_silent and is_shown else None
