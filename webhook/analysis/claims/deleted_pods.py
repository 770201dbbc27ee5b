"""Whether a holder stopped because its pod was deleted, by the requests that a log shows."""

from typing import Final

from webhook.analysis.claims.silence_evidence import SilenceEvidence
from webhook.analysis.claims.words import by_writer, clock
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.tenure import Tenure
from webhook.analysis.inputs.items import PodDeletion, Writer
from webhook.kubernetes.times import SECOND

GRACE: Final = 60 * SECOND
"""For how long a process may go on after its pod was deleted: by default it is killed after 30 s."""
_INTERVAL: Final = 2 * SECOND
"""How often a holder renews by the default of client-go, where the input does not show it."""


def find_deletion(evidence: SilenceEvidence) -> PodDeletion | None:
    """Return the deletion of a holder's pod after which it renewed no more; None if it is not known to be why.

    Who did not renew for longer than usual had stopped before: its pod may have been deleted because of that.
    """
    tenure = evidence.tenure
    own = _find_own(tenure) if tenure is not None else None
    if tenure is None or own is None:
        return None
    start, interval = evidence.start, min(evidence.history.renewals.usual or _INTERVAL, GRACE)
    found = next(
        (
            one
            for one in evidence.histories.deleted_pods.list_of(own)
            if start - GRACE <= one.at <= start + interval and _is_of_this_pod(one, own, tenure, start)
        ),
        None,
    )
    if found is None or _is_heard_after(evidence.history, tenure, own, max(start, found.at) + 2 * interval):
        return None
    return found


def describe_deletion(one: PodDeletion, now: int) -> str:
    """`deleted at 12:00:02Z by kube-system/replicaset-controller`, with the doubt whether it was."""
    verb = "evicted" if one.is_eviction else "deleted"
    doubt = "" if one.is_sure else " (unless that was a dry run, which the log does not show)"
    return f"{verb} at {clock(one.at, now)}{by_writer(one.writer)}{doubt}"


def _find_own(tenure: Tenure) -> Writer | None:
    """Return the process of a holder if it is known, also as the one that renewed last, and no other one renewed."""
    processes = tenure.processes
    is_known = processes.is_sure and processes.is_last_known and not processes.others
    return processes.own if is_known and not tenure.is_ambiguous else None


def _is_of_this_pod(one: PodDeletion, own: Writer, tenure: Tenure, start: int) -> bool:
    """Return whether the pod of a holder was deleted, and not one before it that had its name.

    Without a uid in the deletion, its pod is the one that held the lease by then. Without one in its requests, which
    pods of a name then look alike, that is so if none renewed after it.
    """
    if one.uid and own.uid:
        return True
    return one.at >= (tenure.since if own.uid else start)


def _is_heard_after(history: LeaseHistory, tenure: Tenure, own: Writer, at: int) -> bool:
    """Return whether a log shows a request of its pod for the lease after an instant, under any name."""
    processes = tenure.processes
    renewed = (one.last_renewal for one in history.tenures if own.is_same(one.processes.own))
    return any(one > at for one in (*processes.requests, *processes.heard_again, *renewed))
