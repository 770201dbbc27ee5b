"""The pod that waited for a lease and was deleted, after which no other one waited when the holder was lost.

Source: the recorded incident of an autoscaler that took the only standby away by night: at the next crash no one else
was there to take the lease.
"""

from itertools import pairwise

from msgspec import Struct

from webhook.analysis.claims.words import describe_by_writer, format_name, name_deletion
from webhook.analysis.history.audit_log.deleted_pods import is_by_kubelet
from webhook.analysis.history.audit_log.read_runs import MAX_APART
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import PodDeletion, Writer


class DeletedWaiter(Struct, frozen=True):
    """The deletion of the last pod that waited for a lease."""

    deletion: PodDeletion

    def describe(self) -> str:
        """`pod db-1, which had waited for the lease, was deleted by alice; no other one waited for it then`."""
        how = f"{name_deletion(self.deletion)}{describe_by_writer(self.deletion.writer)}"
        return f"pod {format_name(self.deletion.name)}, which waited for it, was {how}; no other one waited then"


def find_deleted_waiter(histories: ClusterHistory, history: LeaseHistory) -> DeletedWaiter | None:
    """Return the deletion of the only pod that waited for the lease, before its holder last let it expire.

    None if there is none, or if another one waited by then.
    """
    lost = _find_last_loss(history)
    if lost is None:
        return None
    for who in history.requests.read_runs.runs:
        found = _find_deletion(histories, history, who, lost)
        if found is not None and not _has_other_waiter(history, who, found.at, lost):
            return DeletedWaiter(found)
    return None


def _find_last_loss(history: LeaseHistory) -> Tenure | None:
    """Return the latest tenure that ended as the lease expired; None if none did."""
    return next((one for one, after in reversed([*pairwise(history.tenures)]) if after.began is Handover.EXPIRED), None)


def _find_deletion(histories: ClusterHistory, history: LeaseHistory, who: Writer, lost: Tenure) -> PodDeletion | None:
    """Return who asked for the deletion of a pod that waited for a lease while it was held, and stopped by that."""
    if not who.uid or who.is_same(lost.processes.own):
        return None
    asked = [one for one in histories.deleted_pods.list_deletions_by(who) if not is_by_kubelet(one)]
    during = [one for one in asked if one.is_surely_not_dry_run and lost.since <= one.at <= lost.last_renewal]
    run = history.requests.read_runs.find(who) if during else None
    if run is None:
        return None
    first = during[0]
    # Its container has some time to end.
    return first if run.first < first.at and abs(run.last - first.at) <= 2 * MAX_APART else None


def _has_other_waiter(history: LeaseHistory, who: Writer, since: int, lost: Tenure) -> bool:
    """Return whether another process than the holder waited after an instant until it was lost, or may have."""
    runs, until = history.requests.read_runs.runs, lost.last_renewal + MAX_APART
    others = (run for one, run in runs.items() if not (one.is_same(who) or one.is_same(lost.processes.own)))
    return len(runs) == MAX_LISTED or any(run.first <= until and run.last > since for run in others)
