"""Two leases whose holders ask for each other's: as locks that were taken in opposite order, which no timeout ends.

Replicas of one workload that lead for one lease each ask for the other one's as well, and wait for nothing: only pods
of different workloads count.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_log_of_pod, make_pod_of_writer
from webhook.analysis.claims.evidence.pods.workload_names import name_workload
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.audit_log.read_runs import MAX_APART, ReadRun
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND

_SHORTEST: Final = 30 * SECOND
"""Who takes two locks one after the other, and waits for less, may have waited for what another one did."""


class CrossedLocks(Struct, frozen=True):
    """The `holder` of a lease, and the `other` of another one, that asked for each other's lease.

    `since` and `until` are in microseconds since 1970. `is_renewed`: the other lease was renewed since `since`.
    """

    holder: Writer
    other: Writer
    namespace: str
    lease: str
    since: int
    until: int
    goes_on: bool
    is_renewed: bool

    def describe(self, now: int) -> str:
        """Return it as a sentence without its end."""
        lease = f"{format_name(self.namespace)}/{format_name(self.lease)}"
        other, holder = format_name(self.other.pod), format_name(self.holder.pod)
        if self.goes_on:
            asks = f"pod {other}, which holds {lease}, asks for this lease again and again"
            return f"{asks}, and pod {holder}, which holds this one, for that: each may wait for the other"
        until = format_clock(self.until, now)
        asked = f"pod {other}, which held {lease}, asked for this lease again and again until {until}"
        return f"{asked}, and pod {holder}, which held this one, for that: each may have waited for the other"

    def advise(self) -> Advice | None:
        """Return what to do about it; None if it is over."""
        if not self.goes_on:
            return None
        lease = f"{format_name(self.namespace)}/{format_name(self.lease)}"
        also = f"as is {lease}" if self.is_renewed else f"and {lease} is held"
        sentence = (
            f"It is held and renewed, {also}. If their holders wait for each other, neither goes on until one "
            "of them gives up or ends; their logs may say so:"
        )
        holder, other = (make_pod_of_writer("", one) for one in (self.holder, self.other))
        commands = map(make_command_for_log_of_pod, (holder, other))
        return Advice(sentence, "; ".join(commands), (*holder.names, *other.names))


def find_crossed_locks(histories: ClusterHistory, history: LeaseHistory) -> CrossedLocks | None:
    """Return the latest time in which a holder of a lease and that of another one asked for each other's."""
    found = (
        crossed
        for who, run in history.requests.read_runs.runs.items()
        if who.pod and history.requests.read_runs.find(who) is run
        for other, tenure in histories.index.find_tenures_of_process(who)
        if other is not history and tenure.processes.is_process_known
        if tenure.until is not None or _is_live(other, histories.bounds.logged_until)
        for crossed in _compare(histories, history, run, other, tenure)
    )
    return max(found, key=lambda one: one.until, default=None)


def _is_live(history: LeaseHistory, at: int) -> bool:
    status = history.find_status(at)
    return status is not None and status.state is LeaseState.LIVE


def _compare(
    histories: ClusterHistory, history: LeaseHistory, asked: ReadRun, other: LeaseHistory, theirs: Tenure
) -> Iterator[CrossedLocks]:
    """Yield when the holder of another lease asked for this one, and a holder of this one for that."""
    asker, logged_until = theirs.processes.own, histories.bounds.logged_until
    for tenure in history.tenures:
        own = tenure.processes.own if tenure.processes.is_process_known else None
        if own is None or asker is None or not own.pod or name_workload(own.pod) == name_workload(asker.pod):
            continue
        back = other.requests.read_runs.find(own)
        if back is None:
            continue
        ends = [one.until for one in (tenure, theirs) if one.until is not None]
        since, until = max(asked.first, back.first, tenure.since, theirs.since), min(asked.last, back.last, *ends)
        if until - since >= _SHORTEST:
            goes_on, is_renewed = not ends and logged_until - until <= MAX_APART, theirs.last_renewal > since
            yield CrossedLocks(own, asker, other.namespace, other.name, since, until, goes_on, is_renewed)
