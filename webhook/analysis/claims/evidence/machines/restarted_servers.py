"""An API server that went and came again while a holder was silent: it creates its own lease anew as it starts.

Each process of it has another identity. Which API server a holder used, only logs of several of them show.
"""

from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import KUBE_SYSTEM, NODE_LEASES
from webhook.analysis.claims.words import format_clock, format_count, format_name
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import MINUTE, SECOND

_MIN_SKIPPED: Final = 2
"""Nodes that missed a renewal at the same time: one alone may have had a reason of its own."""
_LATER: Final = MINUTE
"""An API server that was gone may start so long after the takeover that it caused."""


class RestartedServer(Struct, frozen=True):
    """The lease of an API server that another process of it created anew at an instant, in microseconds since 1970.

    `last` is when it had been renewed before. `skipped` nodes missed a renewal while the holder was silent.
    `is_by_server`: a log shows that an API server created it. `is_least`: of very many nodes a sample was looked at.
    """

    name: str
    last: int
    at: int
    skipped: int
    is_by_server: bool
    is_least: bool = False

    def describe_creation(self, now: int) -> str:
        """Say that it was created anew, as a relative clause."""
        by = "an API server" if self.is_by_server else "someone"
        return f"which {by} created anew under another identity at {format_clock(self.at, now)}"

    def describe(self, now: int) -> str:
        """Say what shows that an API server was away, and how surely."""
        probably = "perhaps"
        skipped = ""
        if self.skipped >= _MIN_SKIPPED:
            probably = "probably"
            least = "at least " if self.is_least else ""
            skipped = f", and the leases of {least}{format_count(self.skipped, 'node')} missed a renewal at that time"
        return (
            f"the lease of an API server, {KUBE_SYSTEM}/{format_name(self.name)}, was last renewed at "
            f"{format_clock(self.last, now)} and created anew under another identity at "
            f"{format_clock(self.at, now)}{skipped}: that API server had {probably} gone, and the holder may have used "
            "it"
        )


def find_restarted_server(
    histories: ClusterHistory, history: LeaseHistory, start: int, end: int
) -> RestartedServer | None:
    """Return the API server that went while a lease was silent, and came again; None of several, or by other clocks."""
    if histories.bounds.skew > SECOND:
        return None
    leases = histories.index.list_of_namespace(KUBE_SYSTEM)
    servers = [one for one in leases if one is not history and is_identity_of_api_server(one.namespace, one.name)]
    found = [
        (one, before, after)
        for one in servers
        for before, after in pairwise(one.tenures)
        if _has_gone_meanwhile(one, before, after, start, end)
    ]
    if len(found) != 1:
        return None
    ((server, before, after),) = found
    maker = after.processes.own or after.processes.taken_by
    is_by_server = after.beginning.write.is_logged and maker is not None and maker.user == API_SERVER
    nodes = (one for one in histories.index.heartbeats.compared if one.namespace == NODE_LEASES and one is not history)
    skipped = sum(1 for one in nodes if one.renewals.find_longest_silence(start, end))
    is_least = histories.index.heartbeats.is_sample
    return RestartedServer(server.name, before.last_renewal, after.since, skipped, is_by_server, is_least)


def _has_gone_meanwhile(server: LeaseHistory, before: Tenure, after: Tenure, start: int, end: int) -> bool:
    """Return whether one process of an API server ended at about the time of a silence, and another one began later."""
    usual = server.renewals.usual or 0
    is_anew = after.began in {Handover.DELETED, Handover.CREATED} and before.holder != after.holder
    has_ended_then = start - 2 * usual - SECOND < before.last_renewal < end
    # Who deletes the lease of a server that runs on makes it create another one at once, within a usual interval.
    has_missed = after.since - before.last_renewal > 2 * usual > 0
    return is_anew and has_ended_then and has_missed and start < after.since <= end + _LATER
