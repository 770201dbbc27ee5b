"""Times for which a holder did not renew: it renewed late, or another one took over; and why."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.diagnosis import Blame, Diagnosis
from webhook.analysis.claims.evidence.pods.gone_pods import find_gone_pod
from webhook.analysis.claims.evidence.pods.pod_statuses import (
    find_status_writes_of_restart,
)
from webhook.analysis.claims.evidence.pods.work_of_both import WorkOfBoth, find_work_of_both
from webhook.analysis.claims.evidence.silent_holders.causes import diagnose
from webhook.analysis.claims.words import format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import Silence, estimate_deadline

MAX_OF_A_KIND: Final = 10
"""Findings of one kind: the latest ones."""


class MissedRenewals(Silence, frozen=True, kw_only=True):
    """A time for which `tenure` did not renew; then it did, or another one took over.

    `work_after`: what its pod wrote after another one had taken over.
    """

    tenure: Tenure
    cause: Diagnosis
    work_after: WorkOfBoth | None = None


def find_late_renewals(histories: ClusterHistory, history: LeaseHistory) -> Iterator[MissedRenewals]:
    """Yield the latest renewals that came beyond the deadline of most clients, oldest first."""
    for silence in history.late_silences[-MAX_OF_A_KIND:]:
        tenure = history.find_tenure_of_silence(silence)
        # By clocks that differ, it may have been shorter.
        if tenure is None or silence.length - history.skew < estimate_deadline(silence.duration):
            continue
        step = histories.index.find_server_clock_step(history, silence.start, silence.end)
        if step is not None and silence.length + step.by < estimate_deadline(silence.duration):
            continue
        is_one_clock = not (history.renewals.has_several_clocks or tenure.renewed_by_other or tenure.is_coordinated)
        if silence.is_claimed and (not is_one_clock or _may_be_ended_by_another(history, silence)):
            continue
        if tenure.processes.is_renewed_by_another(silence.start, silence.end):
            continue
        cause = diagnose(histories, history, tenure, silence.start, silence.end)
        yield MissedRenewals(
            silence.start,
            silence.end,
            silence.duration,
            doubt=silence.doubt,
            is_claimed=silence.is_claimed,
            longest_gap=silence.longest_gap,
            tenure=tenure,
            cause=cause,
        )


def _may_be_ended_by_another(history: LeaseHistory, silence: Silence) -> bool:
    """Return whether another wrote meanwhile what no input shows: that may be the renewal that the lease shows."""
    return any(silence.start < at <= silence.end for at, _ in history.requests.accepted)


def find_lost_leaders(histories: ClusterHistory, history: LeaseHistory) -> Iterator[MissedRenewals]:
    """Yield the times for which holders did not renew until the lease expired and another one took it, oldest first."""
    for before, after in pairwise(history.tenures):
        # Two writers' clocks say nothing of the time between their writes.
        is_claimed = after.beginning.write.is_claimed or (
            before.last_renewal_write is not None and before.last_renewal_write.is_claimed
        )
        if (after.began is Handover.EXPIRED or after.beginning.may_have_been_expired) and not is_claimed:
            start, end = before.last_of_identity, after.since
            cause = diagnose(histories, history, before, start, end)
            if after.processes.is_from_pod_of(before.processes):
                cause = _add_change_of_name(cause, after)
            cause = _add_end_and_return_of_pod(cause, histories, before, end)
            work = find_work_of_both(histories, history, before, after)
            yield MissedRenewals(start, end, before.duration, tenure=before, cause=cause, work_after=work)


def _add_end_and_return_of_pod(cause: Diagnosis, histories: ClusterHistory, before: Tenure, end: int) -> Diagnosis:
    """Return the cause of a loss, with what happened later to the pod that lost the lease."""
    gone = find_gone_pod(histories, before)
    written = find_status_writes_of_restart(histories, before)
    clause = gone.describe_with_doubt(end) if gone is not None else ""
    return replace(cause, gone=clause, status_written=written, active_at=_find_activity(histories, before, written))


def _find_activity(histories: ClusterHistory, before: Tenure, written: Sequence[int]) -> int | None:
    """Return when a pod asked for something else after a status of it that a restart might explain; None if not.

    A process that begins asks for its lease first, and a kubelet writes the status of a container that runs again.
    """
    if not written:
        return None
    found = histories.pod_activities.list_between(before.processes.own, *written)
    return found[0].received if found else None


def _add_change_of_name(cause: Diagnosis, after: Tenure) -> Diagnosis:
    """Return the cause of a silence after which the same pod took the lease under another name."""
    pod = after.processes.taken_by.pod if after.processes.taken_by else ""
    if cause.blame is not Blame.CLIENT or not pod:
        return cause
    text = (
        f"both names were written from pod {format_name(pod)}: a process that begins under another name waits "
        "until the lease of its old one expires, as does another process of the pod"
    )
    return replace(cause, evidence=f"{text}; {cause.evidence}")
