"""A holder that renews, and no longer writes anything else, though it did so regularly: it may work no more.

It may as well have nothing to do, so it is said with that doubt. Only a log that seems whole shows it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import Pod, find_pod_of_writer, make_command_for_log_of_pod
from webhook.analysis.claims.words import format_clock
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import MINUTE, SECOND, format_length

_MIN_WRITES: Final = 5
_SHORTEST: Final = 30 * SECOND
"""For so long it wrote regularly, lest a process that starts is meant, and then did not."""
_TIMES: Final = 5
"""It has not written for so many times the longest time between two of its writes before."""
_MIN_EVEN: Final = 4
_UNEVEN: Final = 2
_TIMES_OF_ALL: Final = 10
_IDLE: Final = 2 * MINUTE
"""Writes may have gone on for less if they came evenly, unlike those of a start, and if the silence is much longer."""


class IdleHolder(Struct, frozen=True):
    """A holder's pod: when it last wrote anything but leases and Events, and how often at least it did before.

    All are in microseconds, `since` since 1970; `span` is from the first write that is known to the last.
    """

    namespace: str
    pod: str
    since: int
    longest: int
    span: int

    def advise(self, now: int) -> Advice:
        """Return what is known of it, and where to look."""
        before = format_length(max(self.longest, SECOND // 10))
        sentence = (
            "It is held and renewed, but the log shows no write by its pod, other than of leases and Events, since "
            f"{format_clock(self.since, now)}, and one at least every {before} in the {format_length(self.span)} "
            "before that. It may have nothing to do, or no longer work; its log may say which:"
        )
        pod = Pod(self.namespace, self.pod, is_logged=True)
        return Advice(sentence, make_command_for_log_of_pod(pod), pod.names)


def find_idle_holder(histories: ClusterHistory, history: LeaseHistory, now: int) -> IdleHolder | None:
    """Return the present holder if it no longer writes anything else; None if it does, or need not have stopped."""
    tenure, status = history.current_tenure, history.find_status(now)
    own = tenure.processes.own if tenure is not None and tenure.processes.is_process_known else None
    account = UserInfo(own.user).service_account if own is not None else None
    if tenure is None or own is None or account is None or status is None or status.state is not LeaseState.LIVE:
        return None
    until = min(now, histories.bounds.logged_until)
    found = histories.pod_activities.list_between(own, tenure.since, until)
    writes = sorted(one.at for one in found if one.is_write or one.may_be_write)
    if not _have_ended(writes, tenure.since, until):
        return None
    # What is forgotten may have been a time without a write.
    activities = histories.pod_activities
    if activities.has_forgotten_since(own, tenure.since) or activities.has_written_as_other_since(own, writes[0]):
        return None
    last, longest = writes[-1], max(after - one for one, after in pairwise(writes))
    if not histories.shows_all_requests(history, last, until):
        return None
    return IdleHolder(account[0], find_pod_of_writer(own), last, longest, last - writes[0])


def find_last_work(histories: ClusterHistory, history: LeaseHistory, now: int) -> int | None:
    """Return when the pod of the present holder last wrote anything but leases and Events; None if it need not work.

    That was shortly before the end of the log.
    """
    tenure, until = history.current_tenure, min(now, histories.bounds.logged_until)
    own = tenure.processes.own if tenure is not None and tenure.processes.is_process_known else None
    if tenure is None or own is None:
        return None
    found = histories.pod_activities.list_between(own, max(tenure.since, until - _SHORTEST), until)
    return max((one.at for one in found if one.is_write), default=None)


def _have_ended(writes: Sequence[int], since: int, until: int) -> bool:
    """Return whether writes that came regularly have not come for much longer than before.

    Who has held a lease for long without a write, and then wrote, may rest again.
    """
    if len(writes) < _MIN_EVEN:
        return False
    before = writes[0] - since
    span, silence, waits = writes[-1] - writes[0], until - writes[-1], [b - a for a, b in pairwise(writes)]
    is_long = len(writes) >= _MIN_WRITES and span >= max(_SHORTEST, before)
    is_even = min(waits) >= SECOND and max(waits) <= _UNEVEN * min(waits)
    if is_long and silence >= max(_SHORTEST, _TIMES * max(waits)):
        return True
    return is_even and silence >= max(_IDLE, _TIMES_OF_ALL * span, _TIMES * before)
