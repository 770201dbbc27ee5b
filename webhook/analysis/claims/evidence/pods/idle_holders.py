"""A holder that renews, and no longer writes anything else, though it did so regularly: it may work no more.

So may one before that wrote nothing else while it held the lease, or not until its end, though others did regularly.
Each may as well have had nothing to do, so it is said with that doubt. Only a log that seems whole shows it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import Pod, find_pod_of_writer, make_command_for_log_of_pod
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.analysis.inputs.items import Writer
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
    writes = _list_writes(histories, own, tenure.since, until)
    if not _have_ended(writes, tenure.since, until):
        return None
    # What is forgotten may have been a time without a write.
    activities = histories.pod_activities
    if activities.has_forgotten_since(own, tenure.since) or activities.has_written_as_other_since(own, writes[0]):
        return None
    last, longest = writes[-1], _find_longest_gap(writes)
    if not histories.shows_all_requests(history, last, until):
        return None
    return IdleHolder(account[0], find_pod_of_writer(own), last, longest, last - writes[0])


class IdleTime(Struct, frozen=True):
    """A time in which the pod of a former holder wrote nothing else, until its last renewal of the lease.

    Both instants are in microseconds since 1970. `longest` is the longest time between two writes of a holder that
    wrote regularly.
    """

    pod: str
    start: int
    end: int
    longest: int

    def describe(self) -> str:
        """Say for how long it wrote nothing else, and how often holders did otherwise."""
        silent, longest = format_length(self.end - self.start), format_length(max(self.longest, SECOND // 10))
        wrote = f"pod {format_name(self.pod)} renewed it and, in the log, wrote only leases and Events"
        return f"for {silent} {wrote} (otherwise holders wrote at least every {longest}): it may not have worked"


def find_idle_times(histories: ClusterHistory, history: LeaseHistory, now: int) -> tuple[IdleTime, ...]:
    """Return when the pods of former holders wrote nothing else, if holders of the lease otherwise did regularly."""
    until = min(now, histories.bounds.logged_until)
    known = [
        (tenure, _list_writes(histories, tenure.processes.own, tenure.since, tenure.until or until))
        for tenure in history.tenures
        if _has_own_pod(tenure)
    ]
    paces = [pace for _, writes in known if (pace := _find_pace(writes)) is not None]
    return tuple(_find_idle_times(histories, history, known, min(paces))) if paces else ()


def _find_idle_times(
    histories: ClusterHistory, history: LeaseHistory, known: Sequence[tuple[Tenure, Sequence[int]]], pace: int
) -> Iterator[IdleTime]:
    activities = histories.pod_activities
    for tenure, writes in known:
        own, start, end = tenure.processes.own, max(writes, default=tenure.since), tenure.last_renewal
        if own is None or tenure.until is None or (not writes and activities.may_have_forgotten_pods):
            continue
        longest = _find_pace(writes) or pace
        is_silent = end - start >= max(_SHORTEST, _TIMES * longest)
        has_other_writes = activities.has_forgotten_since(own, start) or activities.has_written_as_other_since(
            own, start
        )
        if is_silent and not has_other_writes and histories.shows_all_requests(history, start, end):
            yield IdleTime(own.pod, start, end, longest)


def _has_own_pod(tenure: Tenure) -> bool:
    """Return whether a log shows the pod of a holder, whose other requests are known by its uid."""
    own = tenure.processes.own if tenure.processes.is_process_known else None
    return own is not None and bool(own.pod and own.uid) and not own.impersonator


def _list_writes(histories: ClusterHistory, own: Writer | None, since: int, until: int) -> Sequence[int]:
    """Return when the pod of a holder wrote other objects, or may have, while that held the lease."""
    found = histories.pod_activities.list_between(own, since, until)
    return sorted(one.at for one in found if one.is_write or one.may_be_write)


def _find_pace(writes: Sequence[int]) -> int | None:
    """Return the longest time between two writes of a holder that wrote regularly for some time; None of another."""
    if len(writes) < _MIN_WRITES or writes[-1] - writes[0] < _SHORTEST:
        return None
    return _find_longest_gap(writes)


def _find_longest_gap(writes: Sequence[int]) -> int:
    return max(after - one for one, after in pairwise(writes))


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
