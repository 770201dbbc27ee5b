"""Which heartbeats of nodes and API servers stopped as a holder did, while others went on: a part of a cluster.

An outage that all share lets every heartbeat miss a renewal before one of them has missed two. What is left is a node,
an API server, or what some of them share, such as a zone or a network.
"""

from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.words import format_clock, format_count, format_leases
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND, format_length

_NAMED: Final = 3


class LostHeartbeats(Struct, frozen=True):
    """The heartbeats that stopped together, by the last renewal of the latest, and how many others did not."""

    leases: tuple[tuple[str, str], ...]
    since: int
    silent_for: int
    """The shortest time for which one of them had no renewal after `since`, in microseconds."""
    gone_on: int
    is_least: bool = False
    """Only a sample of very many heartbeats was looked at, so more may have gone on."""

    def may_concern(self, node: str) -> bool:
        """Return whether the heartbeat of a node is among them, or that of an API server, which any client may use."""
        return (NODE_LEASES, node) in self.leases or any(namespace != NODE_LEASES for namespace, _ in self.leases)

    def describe(self, now: int, *, is_place_unknown: bool) -> str:
        """Say which stopped, for how long, and that others went on; an input may lack renewals.

        `is_place_unknown`: on which node the holder ran is not shown.
        """
        shown = format_leases(self.leases[:_NAMED], len(self.leases))
        others = f"{'at least ' if self.is_least else ''}{format_count(self.gone_on, 'other lease')}"
        is_of_node = any(namespace == NODE_LEASES for namespace, _ in self.leases)
        where = " (whether the holder ran there is not shown)" if is_place_unknown and is_of_node else ""
        return (
            f"no renewal of {shown} is shown for {format_length(self.silent_for)} from "
            f"{format_clock(self.since, now)}{where}, and {others} of nodes and API servers went on"
        )


def find_lost_heartbeats(
    histories: ClusterHistory, history: LeaseHistory, start: int, end: int
) -> LostHeartbeats | None:
    """Return which heartbeats stopped when a lease was last renewed at `start`, if others went on until `end`."""
    heartbeats = histories.index.heartbeats
    gone_on = heartbeats.count_others_that_went_on(history, start, end)
    stops = (
        heartbeats.find_stops(history, start, start + (history.renewals.usual or SECOND) + SECOND) if gone_on else []
    )
    if not stops:
        return None
    since = max(one.start for one in stops)
    return LostHeartbeats(
        leases=tuple(sorted((one.history.namespace, one.history.name) for one in stops)),
        since=since,
        silent_for=min(one.silence.end for one in stops) - since,
        gone_on=gone_on,
        is_least=heartbeats.is_sample,
    )
