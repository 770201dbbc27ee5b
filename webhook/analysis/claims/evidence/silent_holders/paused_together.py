"""Pods of one node that made no request for their leases at one time, while the kubelet of that node went on.

In: a holder that another one followed, and that asked for its lease again. Out: which pods paused with it. So it is if
pods are cut off from the API server and their node is not, as when the address of a Service leads nowhere there.
"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median_low
from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.evidence.silent_holders.request_intervals import list_intervals
from webhook.analysis.claims.words import format_clock, format_name, join_with_and
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure, find_latest_pair
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND

_ROUND: Final = 4 * SECOND
"""How far apart pods begin and end to be silent that are cut off, and connected again, together: they ask in turn."""
_MISSED: Final = 3
"""So many times the usual interval between the requests of a pod are a pause."""
_MAX_NAMED: Final = 3


class PausedPods(Struct, frozen=True):
    """A pod of a node, the others that paused with it, and from when to when, in microseconds since 1970."""

    pod: str
    others: tuple[str, ...]
    node: str
    start: int
    end: int

    def describe(self, now: int) -> str:
        """Say which pods paused, and that their node did not."""
        named = [f"pod {format_name(one)}" for one in self.others[:_MAX_NAMED]]
        named += [f"{len(self.others) - _MAX_NAMED} more"] if len(self.others) > _MAX_NAMED else []
        until = format_clock(self.end, now)
        return (
            f"the log has no request for its lease by pod {format_name(self.pod)} until {until}, nor by "
            f"{join_with_and(named)} for another, all on node {format_name(self.node)}, whose own lease was renewed: "
            "they may have been cut off from the API server, or paused"
        )


def find_paused_together(histories: ClusterHistory, history: LeaseHistory) -> PausedPods | None:
    """Return which pods paused with the latest holder that another one followed; None if none did, or its node too."""
    latest = find_latest_pair(history.tenures)
    if latest is None:
        return None
    previous, _ = latest
    if not previous.processes.requests_after_loss or not previous.processes.node:
        return None
    node, own = previous.processes.node, previous.processes.own
    end = previous.processes.requests_after_loss[0]
    start = max((at for at in previous.processes.requests if at < end), default=None)
    kubelet = histories.leases.get((NODE_LEASES, node))
    if start is None or own is None or not own.pod or kubelet is None or histories.bounds.skew > SECOND:
        return None
    if not _is_pause(histories, previous, start, end):
        return None
    goes_on = kubelet.renewals.has_renewals_around(start, end) and not kubelet.renewals.find_longest_silence(start, end)
    if end - start <= 2 * _ROUND or not goes_on or not histories.shows_all_requests(history, start, end):
        return None
    others = sorted(set(_list_paused(histories, history, node, start, end)))
    return PausedPods(own.pod, tuple(others), node, start, end) if others else None


def _list_paused(histories: ClusterHistory, history: LeaseHistory, node: str, start: int, end: int) -> Iterator[str]:
    """Yield the pods of the node that held other leases and paused from about the one time to the other."""
    for other in histories.leases.values():
        for tenure in other.tenures if other is not history else ():
            own = tenure.processes.own
            if tenure.processes.node == node and own is not None and own.pod:
                requests = sorted((*tenure.processes.requests, *tenure.processes.requests_after_loss))
                about = ((last, first) for last, first in pairwise(requests) if _is_about(last, start, first, end))
                if any(_is_pause(histories, tenure, last, first) for last, first in about):
                    yield own.pod


def _is_about(last: int, start: int, first: int, end: int) -> bool:
    return abs(last - start) <= _ROUND and abs(first - end) <= _ROUND


def _is_pause(histories: ClusterHistory, tenure: Tenure, last: int, first: int) -> bool:
    """Return whether the pod of a holder that usually asks more often made no other request between two for its lease.

    What it asked for within its usual interval after the one, or before the other, is of the time before or after.
    """
    intervals = list_intervals(one for one in tenure.processes.requests if one <= last)
    usual = median_low(intervals) if intervals else first - last
    others = histories.pod_activities.list_between(tenure.processes.own, last + usual, first - usual)
    return first - last >= _MISSED * usual and not others
