"""Which heartbeats of nodes and API servers stopped as a holder did, while others went on: a part of a cluster.

An outage that all share lets every heartbeat miss a renewal before one of them has missed two. What is left is a node,
an API server, or what some of them share, such as a zone or a network.
"""

from itertools import chain
from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.evidence.api_servers import is_identity_lease
from webhook.analysis.claims.words import format_clock, format_count, format_leases
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import Silence
from webhook.kubernetes.times import SECOND, format_length

_MISSED: Final = 3
"""A heartbeat has stopped that was not renewed for so many of its usual intervals."""
_MIN_USUAL: Final = 4 * SECOND
"""What is renewed more often may miss two renewals in an outage in which another one misses none."""
_NAMED: Final = 3


class LostHeartbeats(Struct, frozen=True):
    """The heartbeats that stopped together, by the last renewal of the latest, and how many of others went on."""

    leases: tuple[tuple[str, str], ...]
    since: int
    silent_for: int
    """The shortest time for which one of them had no renewal after `since`, in microseconds."""
    gone_on: int

    def describe(self, now: int) -> str:
        """Say which stopped, for how long, and that others went on; an input may lack renewals."""
        shown = format_leases(self.leases[:_NAMED], len(self.leases))
        others = format_count(self.gone_on, "other lease")
        return (
            f"no renewal of {shown} is shown for {format_length(self.silent_for)} from "
            f"{format_clock(self.since, now)}, and {others} of nodes and API servers went on"
        )


def find_lost_heartbeats(
    histories: ClusterHistory, history: LeaseHistory, start: int, end: int
) -> LostHeartbeats | None:
    """Return which heartbeats stopped when a lease was last renewed at `start`, if others went on until `end`."""
    due = start + (history.renewals.usual or SECOND) + SECOND
    until = histories.bounds.until or end
    others = [one for one in histories.leases.values() if one is not history and _is_compared(one)]
    stopped = [(one, silence) for one in others if (silence := _find_stop(one, start, due, until)) is not None]
    gone_on = [one for one in others if one.renewals.spans(start, end) and not _has_missed(one, start, end)]
    if not stopped or not gone_on:
        return None
    since = max(silence.start for _, silence in stopped)
    return LostHeartbeats(
        leases=tuple(sorted((one.namespace, one.name) for one, _ in stopped)),
        since=since,
        silent_for=min(silence.end for _, silence in stopped) - since,
        gone_on=len(gone_on),
    )


def _is_compared(history: LeaseHistory) -> bool:
    """Return whether a lease is the heartbeat of a node or an API server, held, and of a known rhythm."""
    is_heartbeat = history.namespace == NODE_LEASES or is_identity_lease(history)
    return is_heartbeat and history.current_tenure is not None and (history.renewals.usual or 0) >= _MIN_USUAL


def _find_stop(history: LeaseHistory, start: int, due: int, until: int) -> Silence | None:
    """Return the long time without a renewal that began as a holder stopped: between two of its own renewals."""
    renewals = history.renewals
    usual, last = renewals.usual or 0, renewals.last or until
    for one in chain(renewals.silences, (Silence(last, until),)):
        is_unseen = any(hole.start < one.end and one.start < hole.end for hole in renewals.unseen)
        if start - usual - SECOND <= one.start <= due and one.length >= _MISSED * usual and not is_unseen:
            return one
    return None


def _has_missed(history: LeaseHistory, start: int, end: int) -> bool:
    """Return whether a lease may have missed a renewal in that time."""
    unseen = any(one.start < end and start < one.end for one in history.renewals.unseen)
    return unseen or history.renewals.find_longest_silence(start, end) > 0
