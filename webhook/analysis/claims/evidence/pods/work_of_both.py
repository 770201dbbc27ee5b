"""What the pod of a former holder wrote after another one had taken the lease: the work of two leaders, perhaps."""

from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import format_clock, format_count, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer, name_program
from webhook.kubernetes.times import SECOND, format_length

_MIN_WRITES: Final = 3
_SHORTEST: Final = 5 * SECOND
"""A pod that ends writes what is left to write for less."""


class WorkOfBoth(Struct, frozen=True):
    """Writes to other objects: of the former holder's pod, and of the next holder's until the last of those.

    `last` is when the last one of the former holder was answered, in microseconds since 1970.
    """

    own: int
    last: int
    other: int
    programs: tuple[str, ...] = ()
    """Other programs than the electors that wrote all of it, by their user agents; none if it is work of leaders."""


def find_work_of_both(
    histories: ClusterHistory, history: LeaseHistory, before: Tenure, after: Tenure
) -> WorkOfBoth | None:
    """Return what the pods of two holders wrote at the same time; None if the former one wrote nothing then.

    Once it asks for the lease again, its elector has noticed, or its process has restarted. Several containers of a pod
    have one token: what another program wrote, by its user agent, is no work of who lost this lease. Nor need that be
    which is written by who holds another lease.
    """
    own, other = before.processes.own, after.processes.own
    if own is None or not before.processes.is_process_known or own.is_pod_of(other) or before.processes.others:
        return None
    released_at = before.until if after.began is Handover.RELEASED else None
    heard = before.processes.list_requests_after(before.last_of_identity if released_at is None else released_at)
    if released_at is not None:
        heard = [at for at in heard if at > released_at + SECOND]  # the release itself is no new request for the lease
    ends = [at for at in (*heard[:1], after.until, histories.bounds.until) if at is not None]
    start, end = after.since + histories.bounds.skew, min(ends, default=after.since)
    until = histories.bounds.until or end
    seen = histories.pod_activities.list_between(own, start, until)
    writes = [one for one in seen if one.is_write and one.received <= end]
    if not writes:
        return None
    electors = {name_program(one.partition(" ")[2]) for one in history.requests.find_sources(before)} - {""}
    own_writes = [one for one in writes if not electors or one.program in {"", *electors}]
    programs = tuple(sorted({one.program for one in writes})) if not own_writes else ()
    if own_writes and _held_another(histories, history, own, (start, end)):
        return None
    writes = own_writes or writes
    last = max(one.at for one in writes)
    others = [one for one in histories.pod_activities.list_between(other, start, last) if one.is_write]
    return WorkOfBoth(len(writes), last, len(others), programs)


def _held_another(histories: ClusterHistory, history: LeaseHistory, own: Writer, time: tuple[int, int]) -> bool:
    """Return whether a pod held another lease at a time between two instants."""
    start, end = time
    found = (held for other, held in histories.index.find_tenures_of_process(own) if other is not history)
    return any(held.since <= end and (held.until is None or start <= held.until) for held in found)


class WorkAfterRelease(Struct, frozen=True):
    """A pod that released a lease and wrote other objects on, beside the pod of the next holder, since `at`."""

    pod: str
    next_holder: str
    at: int
    work: WorkOfBoth

    def describe(self, now: int) -> str:
        """Say how long it wrote on, and how often the next holder did meanwhile."""
        on = f"wrote other objects {format_count(self.work.own, 'time')} until {format_clock(self.work.last, now)}"
        other = f"that of {format_name(self.next_holder)} {format_count(self.work.other, 'time')} meanwhile"
        long = format_length(self.work.last - self.at)
        return f"pod {format_name(self.pod)} {on}, {long} after its release, and {other}: two may have worked at once"


def find_work_after_releases(histories: ClusterHistory, history: LeaseHistory) -> tuple[WorkAfterRelease, ...]:
    """Return which pods wrote other objects on after they had released the lease, beside the next holder's pod."""
    found = []
    for before, after in pairwise(history.tenures):
        work = find_work_of_both(histories, history, before, after) if after.began is Handover.RELEASED else None
        own, until = before.processes.own, before.until
        if work is None or work.programs or own is None or until is None or before.removal.is_own is not True:
            continue
        if work.own >= _MIN_WRITES and work.other and work.last - after.since >= _SHORTEST:
            found.append(WorkAfterRelease(own.pod, after.holder, until, work))
    return tuple(found)
