"""Facts from a log about the pods of a lease: those of its holders, and of its workload while no one held it."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.pods.deleted_waiters import DeletedWaiter, find_deleted_waiter
from webhook.analysis.claims.evidence.pods.gone_pods import GonePod, describe_end_of_replaced, find_gone_pod
from webhook.analysis.claims.evidence.pods.holder_pods import HolderPodDeletion, find_holder_pod_deletions
from webhook.analysis.claims.evidence.pods.idle_holders import (
    IdleHolder,
    IdleTime,
    find_idle_holder,
    find_idle_times,
    find_last_work,
)
from webhook.analysis.claims.evidence.pods.job_statuses import JobStatus, find_job_status
from webhook.analysis.claims.evidence.pods.pod_statuses import describe_end_of_holder
from webhook.analysis.claims.evidence.pods.pods_while_free import PodEvent, list_pod_events
from webhook.analysis.claims.evidence.pods.work_of_both import WorkAfterRelease, find_work_after_releases
from webhook.analysis.claims.evidence.silent_holders.failing_requests import FailingRun, find_failing_requests
from webhook.analysis.claims.evidence.silent_holders.paused_together import PausedPods, find_paused_together
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import PodAct, PodRequest

NO_ENDS: Final[Mapping[int, str]] = {}


class PodFacts(Struct, frozen=True):
    """Facts from a log about the pods of a lease; none by default."""

    deletions: tuple[HolderPodDeletion, ...] = ()
    """Deletions of the pods of its holders."""
    gone: str = ""
    """A clause about the deletion of the latest holder's pod, if a log shows that it is gone; else ""."""
    end_of_holder: str = ""
    """A clause about the end of a container of the present holder's pod since its last write; "" if none is shown."""
    bound_again: int | None = None
    """The time at which the next pod of the same name got a node, if that pod has not asked for the lease since."""
    ends_of_replaced: Mapping[int, str] = NO_ENDS
    """Clauses about how pods had ended that others replaced under one name, by when those began to renew."""
    events: tuple[PodEvent, ...] = ()
    """Events of the pods of its workload while no one held it."""
    paused: PausedPods | None = None
    """The pods of one node that paused with a holder that another one followed, while the node did not."""
    failing: tuple[FailingRun, ...] = ()
    """Other requests of its holders that failed again and again."""
    idle: IdleHolder | None = None
    """The present holder, if it renews and no longer writes anything else."""
    idle_times: tuple[IdleTime, ...] = ()
    """The times in which former holders renewed and wrote nothing else, though holders otherwise did regularly."""
    work_after_releases: tuple[WorkAfterRelease, ...] = ()
    """Writes of pods that had released the lease, beside those of the next holders' pods."""
    deleted_waiter: DeletedWaiter | None = None
    """The deletion of the last pod that waited for the lease, before its holder let it expire."""
    job: JobStatus | None = None
    """The Job of which the last writer's pod has the name, if its status was written soon after the last write."""
    worked_at: int | None = None
    """The last write of something else by the pod of its holder, shortly before the end of a log."""


NO_POD_FACTS: Final = PodFacts()
"""Shared by all leases without a log, such as those of a list."""


def find_pod_facts(
    histories: ClusterHistory, history: LeaseHistory, refused: Sequence[PodRequest], now: int
) -> PodFacts:
    """Return what a log shows until `now`, in microseconds since 1970; `refused` are pods that were not created."""
    tenure = history.latest_tenure
    gone = find_gone_pod(histories, tenure) if tenure is not None else None
    found = PodFacts(
        deletions=tuple(find_holder_pod_deletions(histories, history, now)),
        gone=gone.describe_with_doubt(now) if gone is not None else "",
        end_of_holder=describe_end_of_holder(histories, tenure, now) if tenure is not None else "",
        bound_again=_find_bound_again(histories, history, gone) if gone is not None else None,
        ends_of_replaced=_find_ends_of_replaced(histories, history) or NO_ENDS,
        events=list_pod_events(histories, history, refused, now),
        paused=find_paused_together(histories, history),
        failing=find_failing_requests(histories, history, now),
        idle=find_idle_holder(histories, history, now),
        idle_times=find_idle_times(histories, history, now),
        work_after_releases=find_work_after_releases(histories, history),
        job=find_job_status(histories, history, now),
        worked_at=find_last_work(histories, history, now),
        deleted_waiter=find_deleted_waiter(histories, history),
    )
    return found if found != NO_POD_FACTS else NO_POD_FACTS


def _find_ends_of_replaced(histories: ClusterHistory, history: LeaseHistory) -> Mapping[int, str]:
    pairs = ((before, after) for before, after in pairwise(history.tenures) if after.began is Handover.REPLACED)
    found = ((after.since, describe_end_of_replaced(histories, before, after.since)) for before, after in pairs)
    return {since: clause for since, clause in found if clause}


def _find_bound_again(histories: ClusterHistory, history: LeaseHistory, gone: GonePod) -> int | None:
    """Return when a pod of the name of one that is gone got a node, if that has not asked for the lease since."""
    pod = gone.ended.name
    about = histories.pod_requests.list_about(gone.ended.namespace, pod)
    bound = [one.at for one in about if one.act is PodAct.BOUND and one.at > gone.ended.at]
    heard = history.requests.heard
    asked = any(one.pod == pod and max(times) > gone.ended.at for one, times in heard.times.items())
    return max(bound) if bound and not asked and not heard.has_forgotten else None
