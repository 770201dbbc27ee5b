"""Pods of other workloads under the holder's account that ask for a lease which it holds: as for a lock.

Replicas of the holder's workload ask for it all the time, which needs no word; what runs under another account is said
by others.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.evidence.pods.workload_names import name_workload
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.audit_log.read_runs import MAX_APART
from webhook.kubernetes.times import SECOND

_SHORTEST: Final = 30 * SECOND
"""Who waits for less is served soon."""


class WaitingPod(Struct, frozen=True):
    """A pod that asks for a lease again and again, since an instant in microseconds since 1970."""

    pod: str
    since: int

    def describe(self, now: int) -> str:
        """`pod report-x reads it again and again, at least since 12:00:42Z`."""
        return f"pod {format_name(self.pod)} reads it again and again, at least since {format_clock(self.since, now)}"


def find_waiting_pods(account: Account) -> Iterator[WaitingPod]:
    """Yield who seems to wait for a lease, unless it is said that its holder may wait for that one, too."""
    history, tenure = account.history, account.tenure
    own = tenure.processes.own if tenure is not None and tenure.processes.is_process_known else None
    crossed = account.surroundings.crossed
    if tenure is None or own is None or not own.pod or (crossed is not None and crossed.goes_on):
        return
    held = {name_workload(one.processes.own.pod) for one in history.tenures if one.processes.own is not None}
    for who, run in history.requests.read_runs.runs.items():
        is_other = bool(who.pod) and who.user == own.user and name_workload(who.pod) not in held
        waits = run.last - max(run.first, tenure.since)
        is_still = account.coverage.logged_until - run.last <= MAX_APART and waits >= _SHORTEST
        if is_other and is_still and history.requests.read_runs.find(who) is run:
            yield WaitingPod(who.pod, run.first)
