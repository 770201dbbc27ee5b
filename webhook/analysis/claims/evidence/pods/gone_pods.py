"""The pod of a former holder that is gone by now, and its log and status with it, as far as an audit log shows."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.pods.deleted_pods import find_first_request
from webhook.analysis.claims.words import describe_by_writer, format_clock, format_name, name_deletion
from webhook.analysis.history.audit_log.deleted_pods import is_by_force, is_by_kubelet
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.inputs.absences import POD
from webhook.analysis.inputs.items import PodDeletion, Writer
from webhook.kubernetes.objects import OwnerReference
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import MINUTE, SECOND

POD_COLLECTOR: Final = "system:serviceaccount:kube-system:pod-garbage-collector"
"""Deletes pods at once: those whose node is gone, or that do not end on a node that is out of service."""
_SOON: Final = 10 * SECOND
_WITHIN: Final = 10 * MINUTE
"""For how long a pod may take to end after its deletion was asked for."""


class GonePod(Struct, frozen=True):
    """How a pod was deleted: `asked` is who wanted that, None if that is not known; `ended` took away the object.

    A deletion only asks a pod to end; its kubelet, or who deletes it by force, takes it away.
    """

    asked: PodDeletion | None
    ended: PodDeletion

    def describe(self, now: int) -> str:
        """`deleted at 12:00:02Z by alice@example.org`; of a pod that took long to end, also when it was gone."""
        if self.asked is None:
            return f"gone by {format_clock(self.ended.at, now)}"
        by, at = describe_by_writer(self.asked.writer), format_clock(self.asked.at, now)
        is_late = self.ended.at - self.asked.at > _SOON
        late = f", and gone by {format_clock(self.ended.at, now)}" if is_late else ""
        return f"{name_deletion(self.asked)} at {at}{by}{late}"

    def describe_with_doubt(self, now: int) -> str:
        """Say the same, and that its process may run on if nothing but its object is known to be gone."""
        doubt = "" if is_by_kubelet(self.ended) else ", and no kubelet confirmed that it ended"
        return f"{self.describe(now)}{doubt}"


def find_gone_pod(histories: ClusterHistory, tenure: Tenure) -> GonePod | None:
    """Return how the pod of a former holder was deleted after it had last renewed; None if that is not shown.

    It was there when it renewed, so what is taken away first under its name after that is this pod, whatever comes
    under the same name later.
    """
    is_known = tenure.processes.is_process_known and not tenure.is_ambiguous
    return _find_gone(histories, tenure) if is_known else None


def describe_confirmed_end(histories: ClusterHistory, tenure: Tenure, until: int, now: int) -> str:
    """Say that nobody led by a lease any more at an instant, as the pod of its holder had ended, as a clause; else "".

    Its kubelet has confirmed that. What was taken away without its kubelet may run on.
    """
    gone, own = find_gone_pod(histories, tenure), tenure.processes.own
    if gone is None or own is None or not is_by_kubelet(gone.ended) or gone.ended.at > until - histories.bounds.skew:
        return ""
    asked, deleted = gone.asked, ""
    if asked is not None:
        deleted = f"was {name_deletion(asked)} at {format_clock(asked.at, now)}{describe_by_writer(asked.writer)}, and "
    at = format_clock(gone.ended.at, now)
    ended = f"had ended by {at}, as its kubelet confirmed, so no one led by it any more"
    return f"pod {format_name(own.pod)} {deleted}{ended}"


def describe_end_of_replaced(histories: ClusterHistory, tenure: Tenure, since: int) -> str:
    """Say how the pod that renewed in a tenure had ended before another one did under the same name, as a clause.

    Whether it took the lease does not matter. "" if a log does not show that it had ended by `since`.
    """
    gone, own = _find_gone(histories, tenure), tenure.processes.own
    if gone is None or own is None or not _takes_away(gone.ended) or gone.ended.at > since - histories.bounds.skew:
        return ""
    return f"pod {format_name(own.pod)}, which had renewed it, was {gone.describe_with_doubt(since)}"


def _find_gone(histories: ClusterHistory, tenure: Tenure) -> GonePod | None:
    own = tenure.processes.own if not tenure.processes.others else None
    if own is None:
        return None
    since = tenure.last_of_identity - histories.bounds.skew
    known = histories.deleted_pods.list_deletions_by(own)
    ended = next((one for one in known if one.at >= since and _takes_away(one)), None)
    ended = ended or _find_last_before_absence(histories, own, known, since)
    if ended is None or any(at > ended.at for at in tenure.processes.requests_after_loss):
        return None
    first = find_first_request(tenure, own, tenure.last_of_identity)
    before = [
        one
        for one in known
        if not is_by_kubelet(one)
        # By its uid it is this pod, which may renew the lease for the last time after that.
        and (ended.at - _WITHIN if one.uid and own.uid else max(first, ended.at - _WITHIN)) <= one.at <= ended.at
    ]
    return GonePod(next((one for one in before if one.is_surely_not_dry_run), None), ended)


def find_gone_owner(histories: ClusterHistory, namespace: str, pod: OwnerReference, until: int) -> GonePod | None:
    """Return how a pod was deleted that was the owner of an object until an instant; None if that is not shown."""
    known = histories.deleted_pods.list_deletions_of(namespace, pod.name or "", pod.uid or "")
    near = [one for one in known if until - _WITHIN <= one.at <= until + histories.bounds.skew]
    ended = next((one for one in reversed(near) if _takes_away(one)), None)
    asked = next((one for one in near if one.is_surely_not_dry_run and not is_by_kubelet(one)), None)
    last = ended or asked
    return GonePod(asked, last) if last is not None else None


def _find_last_before_absence(
    histories: ClusterHistory, own: Writer, known: Sequence[PodDeletion], since: int
) -> PodDeletion | None:
    """Return the deletion after which the pod was not there any more, though the log does not show what took it away.

    So it is if nobody waits for a kubelet, in a log that hides the options of a deletion.
    """
    account = UserInfo(own.user).service_account
    times = histories.deleted_pods.absences.list_times(POD, account[0] if account else "", own.pod)
    gone = next((at for at in times if at >= since), None)
    asked = [one for one in known if one.is_surely_not_dry_run and gone is not None and since <= one.at <= gone]
    return asked[-1] if asked else None


def _takes_away(deletion: PodDeletion) -> bool:
    """Return whether no pod is left after a deletion: its kubelet confirms that it ended, or nobody waits for that."""
    return (
        is_by_kubelet(deletion)
        or _is_by_collector(deletion)
        or (deletion.is_surely_not_dry_run and is_by_force(deletion))
    )


def _is_by_collector(deletion: PodDeletion) -> bool:
    return deletion.writer.user == POD_COLLECTOR and not deletion.writer.impersonator
