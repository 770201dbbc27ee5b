"""Whether anyone asks for a lease that is free: an audit log shows who reads it again and again, and who does not."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.claims.evidence.pods.restarted_askers import RestartedAsker, find_restarted_asker
from webhook.analysis.claims.words import describe_writer, format_count, format_name, join_with_and
from webhook.analysis.history.audit_log.refusal import ANONYMOUS
from webhook.analysis.history.audit_log.waiting import Asking
from webhook.analysis.history.elections.refused_candidates import RefusedCandidate
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize

SHORTEST: Final = 10 * SECOND
"""Followers of client-go read every 2 to 4.4 s; who restarts takes a few seconds."""

_MAX_NAMED: Final = 4
_AGAIN: Final = 4
"""Reads since a lease has expired by which its reader waits for it."""


class Askers(Struct, frozen=True):
    """Who asked for a free lease between two moments, in microseconds since 1970, the last one first."""

    since: int
    until: int
    asking: tuple[tuple[Writer, Asking], ...]
    shows_reads: bool
    """The log has reads of the lease: without, it shows only who tried to write it."""
    restarted: RestartedAsker | None = None
    """The last one that asked, if it may be restarted before it has waited long enough."""
    is_log_sparse: bool = False
    """A part of this time looked like a hole in the log: another API server may have answered who asked."""

    @property
    def mere_readers(self) -> Sequence[Writer]:
        """Those that were answered again and again, and did not try to write the lease; () if any other one asks."""
        is_idle = all(one.code < 400 and (one.wrote_at or 0) < self.since for _, one in self.asking)
        is_again = all(sum(at > self.since for at in one.times) >= _AGAIN for _, one in self.asking)
        is_named = all(who.pod for who, _ in self.asking)
        return [who for who, _ in self.asking] if is_idle and is_again and is_named and not self.is_log_sparse else ()


def find_askers(histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None) -> Askers | None:
    """Return who asked for a lease since it is free; None if it is not, or the input does not show that."""
    bounds, waiting = histories.bounds, history.requests.waiting
    if status is None or not waiting.since or history.requests.is_watched or history.is_partial:
        return None
    if histories.lacks_requests(history):
        return None
    if status.state is LeaseState.EXPIRED and status.takeable_at is not None:
        since, own = max(waiting.since, status.takeable_at), _find_own(history)
    elif status.state is LeaseState.RELEASED:
        since, own = waiting.since, None
    else:
        return None
    until = bounds.logged_until
    if until - since < SHORTEST or not waiting.is_whole or bounds.has_hole(since, until):
        return None
    others = waiting.find_others(own, since)
    asking = [(who, one) for who, one in others if may_take(history, who)]
    # Who only looks, as a person or a monitor does, need not be one of those that wait for it.
    if others and not asking:
        return None
    is_sparse = history.continuity.sparse_since is None and bounds.was_sparse(since, until)
    last = asking[0] if asking else None
    return Askers(
        since,
        until,
        tuple(asking),
        history.has_reads_of_holders,
        restarted=find_restarted_asker(histories, *last, status.duration) if last is not None else None,
        is_log_sparse=is_sparse,
    )


def may_take(history: LeaseHistory, who: Writer) -> bool:
    """Return whether who asks for a lease may want it: it has an account that held it, tried to write it, or none."""
    holders = {one.processes.own.user for one in history.tenures if one.processes.own is not None}
    tried = (one.writer for one in history.requests.refusals if not one.is_read)
    return not holders or who.user in {"", ANONYMOUS} or who.user in holders or any(map(who.is_same, tried))


def find_patient_reader(histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None) -> Writer | None:
    """Return a process of the holder's account that reads an expired lease until the end, and does not take it.

    It would have had the time, unless it restarts again and again: so the holder may renew the lease through an API
    server whose log is missing. None if there is none, or if a watch, or the answer to a read, shows what every API
    server stored.
    """
    own, at = _find_own(history), status.takeable_at if status else None
    if status is None or status.state is not LeaseState.EXPIRED or at is None or own is None:
        return None
    is_shown = histories.is_watched_at(history, at) or history.is_read_unchanged_at(at)
    if is_shown or _has_reason_to_wait(histories, history, status):
        return None
    lasts, until = (status.duration or 0) * SECOND, histories.bounds.logged_until
    tried = [one.writer for one in history.requests.refusals if one.received >= at and not one.is_read]
    for who, asking in history.requests.waiting.find_others(own, at + lasts):
        is_of_account = who.user == own.user and asking.code < 400
        goes_on = until - asking.last <= lasts and sum(1 for one in asking.times if one >= at) >= _AGAIN
        is_restarted = find_restarted_asker(histories, who, asking, status.duration) is not None
        if is_of_account and goes_on and not is_restarted and not any(map(who.is_same, tried)):
            return who
    return None


def _has_reason_to_wait(histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus) -> bool:
    """Return whether who reads an expired lease may wait: for an API server to choose, or until renewTime is past."""
    assert history.lease is not None  # it has a status
    # Where nothing dates what a holder wrote, its renewTime may still lie in the future for who believes it.
    written = get_readable_instant(normalize(history.lease.spec.renew_time))
    ahead = max(status.ahead or 0, (written or 0) - (status.last_renewal or 0))
    return histories.find_strategy(history) is not None or ahead > MAX_TOLERANCE


def _find_own(history: LeaseHistory) -> Writer | None:
    return history.latest_tenure.processes.own if history.latest_tenure else None


def describe_process(who: Writer) -> str:
    """Return a process that asks for a lease as part of a sentence: by its pod, if it has one."""
    if not who.user:
        return "one without accepted credentials"
    if who.user == ANONYMOUS and not who.impersonator:
        return "at least one process without credentials"
    return f"pod {format_name(who.pod)}" if who.pod else format_name(who.name)


def name_refused(found: Sequence[RefusedCandidate]) -> str:
    """Name the processes, by their pods if they have some."""
    writers = dict.fromkeys(one.writer for one in found)
    return join_names([f"pod {format_name(one.pod)}" if one.pod else describe_writer(one) for one in writers])


def join_names(names: Sequence[str]) -> str:
    """Return the latest names as one text, and how many others there are."""
    named, others = list(names[-_MAX_NAMED:]), len(names) - _MAX_NAMED
    named += [format_count(others, "other")] if others > 0 else []
    return join_with_and(named)
