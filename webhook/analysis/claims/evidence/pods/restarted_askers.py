"""A pod that asks for a free lease, and that may be restarted before it has waited until it may take that.

In: what kubelets wrote as its status, and when it asked. Out: in how many rounds. An elector takes a lease once it has
seen it unchanged for its duration, and begins anew after each restart: a liveness probe that fails too early, for
example, keeps it from that for good. A log without the bodies of requests does not show what a kubelet wrote.
"""

from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.runs import split_runs
from webhook.analysis.claims.words import format_clock, format_name, join_with_and
from webhook.analysis.history.audit_log.deleted_pods import is_kubelet
from webhook.analysis.history.audit_log.waiting import Asking
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import PodAct, Writer
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND

_MIN_ROUNDS: Final = 2
_MAX_SHOWN: Final = 3
_APART: Final = 5 * SECOND
"""How far a container's end and its next start may lie apart, as the writes of its status do."""
_AT_ONCE: Final = 2 * SECOND
"""How soon a process asks for its lease after its start was written."""


class RestartedAsker(Struct, frozen=True):
    """A pod whose kubelet wrote its status in several `rounds`, each just before it asked, and never far apart.

    Each is the time of the first write of a round, in microseconds since 1970; `duration` is that of the lease, in
    seconds.
    """

    pod: str
    duration: int
    rounds: tuple[int, ...]

    def describe(self, now: int) -> str:
        """Say what its kubelet did, and what that may mean, as a clause."""
        shown = join_with_and([format_clock(at, now) for at in self.rounds[-_MAX_SHOWN:]])
        wrote = f"the kubelet of pod {format_name(self.pod)}, which asks for it, wrote the status of that at {shown}"
        return f"{wrote}, as when it restarts: then it may never have waited for {self.duration} s, and so not take it"


def find_restarted_asker(
    histories: ClusterHistory, who: Writer, asking: Asking, duration: int | None
) -> RestartedAsker | None:
    """Return a pod that asks for a free lease if it may be restarted again and again; None if nothing hints at that."""
    account = UserInfo(who.user).service_account
    if account is None or not who.pod or who.impersonator or not duration:
        return None
    first = min(asking.times)
    about = histories.pod_requests.list_about(account[0], who.pod)
    written = [
        one.at for one in about if one.act is PodAct.STATUS and is_kubelet(one.writer) and one.at > first + _APART
    ]
    rounds = [one for one in split_runs(written, apart=_APART, time=lambda at: at) if _is_asked_after(one[-1], asking)]
    starts = [first, *(one[0] for one in rounds)]
    is_often = all(after - before < duration * SECOND for before, after in pairwise(starts))
    if len(rounds) < _MIN_ROUNDS or not is_often:
        return None
    return RestartedAsker(who.pod, duration, tuple(one[0] for one in rounds))


def _is_asked_after(written: int, asking: Asking) -> bool:
    """Return whether a process asked just after its status was written: answers come before or after that."""
    return any(-_AT_ONCE <= at - written <= _AT_ONCE for at in asking.times)
