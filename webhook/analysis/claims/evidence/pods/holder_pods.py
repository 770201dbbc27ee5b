"""Deletions and evictions of the pods of holders, while they held the lease: often why they released it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.claims.evidence.pods.deleted_pods import find_first_request, has_heard_namesake
from webhook.analysis.claims.words import (
    UNLESS_DRY_RUN,
    describe_by_writer,
    describe_grace,
    format_name,
    name_deletion,
)
from webhook.analysis.history.audit_log.deleted_pods import is_by_kubelet
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import PodDeletion, Writer
from webhook.analysis.named_pods import find_named_pod
from webhook.kubernetes.request import NODE_USER, TAINT_EVICTORS
from webhook.kubernetes.times import SECOND, format_length

_LONG: Final = 5 * SECOND
_CONFIRMED_WITHIN: Final = 60 * SECOND
"""A kubelet confirms the deletion of a mirror pod when it syncs its pods next, after a minute at the latest."""


class HolderPodDeletion(Struct, frozen=True):
    """A deletion of the pod of a holder; of several requests for one pod, the first that no kubelet made."""

    tenure: Tenure
    deletion: PodDeletion
    is_order_known: bool = True
    """False if the clocks of API servers differ, so that it may have come after what it seems to precede."""
    is_mirror: bool = False
    """It is what an API server shows of a static pod: of its name, as the token of such a process names no pod."""

    @property
    def text(self) -> str:
        """`pod checkout-1, which held it, was evicted by kube-system/descheduler`."""
        did = "held" if self.tenure.processes.is_process_known else "renewed"
        if self.is_mirror:
            return self._describe_mirror_deletion()
        did = "wrote" if self.tenure.is_stand_in else did
        # Whether it was still named by then is not known.
        is_later = not self.tenure.is_end_dated and self.deletion.at > (self.tenure.until or self.deletion.at)
        pod = f"pod {format_name(self.deletion.name)}, which {'had held' if is_later else did} it"
        if is_by_kubelet(self.deletion):
            return f"{pod}, was deleted, as its kubelet confirmed"
        doubt = "" if self.deletion.is_surely_not_dry_run else f", {UNLESS_DRY_RUN}"
        by = describe_by_writer(self.deletion.writer)
        why = ", as is a pod that does not tolerate a taint of its node" if self.is_by_taint else ""
        how = f"{name_deletion(self.deletion)}{by}{why}{describe_grace(self.deletion)}"
        return f"{pod}, was {how}{doubt}{self._describe_last_work()}"

    def _describe_mirror_deletion(self) -> str:
        """Say who deleted a mirror pod: its kubelet does if the manifest of the static pod is removed."""
        pod = f"pod {format_name(self.deletion.name)}, named for this lease and the node of its holder"
        if is_by_kubelet(self.deletion):
            return f"{pod}, was deleted by the kubelet there, as when the manifest of a static pod is removed"
        doubt = "" if self.deletion.is_surely_not_dry_run else f", {UNLESS_DRY_RUN}"
        by = f"{name_deletion(self.deletion)}{describe_by_writer(self.deletion.writer)}"
        return f"{pod}, was {by}{doubt}: if it is a static pod, its process runs on, and its kubelet shows it again"

    def _describe_last_work(self) -> str:
        """Say for how long its process went on, as the end of a clause: it may, until its time to end is over."""
        went_on = self.tenure.last_renewal - self.deletion.at
        is_known = self.is_order_known and self.deletion.is_surely_not_dry_run and self.tenure.processes.is_last_known
        is_known = is_known and not self.tenure.is_last_unseen
        if went_on < _LONG or not is_known:
            return ""
        verb = "writing" if self.tenure.is_stand_in else "renewing"
        return f", and went on {verb} it for {format_length(went_on)}"

    @property
    def is_by_taint(self) -> bool:
        """Whether Kubernetes deleted it because it does not tolerate a taint of its node."""
        return self.deletion.writer.user in TAINT_EVICTORS and not self.deletion.writer.impersonator


def find_holder_pod_deletions(
    histories: ClusterHistory, history: LeaseHistory, now: int
) -> Iterator[HolderPodDeletion]:
    """Yield the deletions of pods of holders by `now`, in microseconds since 1970, the oldest one first."""
    for tenure, after in pairwise([*history.tenures, None]):
        assert tenure is not None
        yield from _find_mirror_deletion(histories, history, tenure, now)
        is_known = tenure.processes.is_process_known or tenure.processes.is_alone
        own = tenure.processes.own if is_known and not tenure.processes.others else None
        found = histories.deleted_pods.list_deletions_by(own) if own is not None else ()
        until = now if tenure.until is None else min(now, tenure.until)
        if after is not None and not tenure.is_deleted and (tenure.is_stand_in or not tenure.is_end_dated):
            until = min(now, after.since)  # its last write ends it, where a log shows nothing else
        within = [one for one in found if own and tenure.since <= one.at <= until and _is_of(one, own, history, tenure)]
        if len(within) == 1 and after is not None and _is_gone_by(within[0], histories, tenure, after, found):
            within = [replace(within[0], is_surely_not_dry_run=True)]
        is_order_known = histories.bounds.skew <= SECOND
        yield from (HolderPodDeletion(tenure, one, is_order_known) for one in sorted(within, key=is_by_kubelet)[:1])


def _find_mirror_deletion(
    histories: ClusterHistory, history: LeaseHistory, tenure: Tenure, now: int
) -> Iterator[HolderPodDeletion]:
    """Yield the last deletion of the static pod that a holder without a token of a pod most likely is.

    A static pod has the name in its manifest and that of its node, and electors of the control plane name that node.
    A kubelet confirms a deletion by another one, and then no manifest need have been removed.
    """
    own, node = tenure.processes.own, find_named_pod(tenure.holder)
    if own is None or own.pod or own.uid or not node or tenure.is_stand_in:
        return
    until, kubelet = now if tenure.until is None else min(now, tenure.until + SECOND), f"{NODE_USER}{node}"
    found = histories.deleted_pods.list_deletions_of(history.namespace, f"{history.name}-{node}", "")
    within = [one for one in found if tenure.since <= one.at <= until]
    confirmed = next((one for one in reversed(within) if one.writer.user == kubelet), None)
    if confirmed is None:
        return
    asked = [one for one in within if not is_by_kubelet(one) and 0 <= confirmed.at - one.at <= _CONFIRMED_WITHIN]
    yield HolderPodDeletion(tenure, asked[-1] if asked else confirmed, is_mirror=True)


def _is_gone_by(
    deletion: PodDeletion, histories: ClusterHistory, tenure: Tenure, after: Tenure, found: Sequence[PodDeletion]
) -> bool:
    """Return whether the pod of a holder was gone when the next one came, and no other request may have deleted it.

    `found` are those for what may be that pod: one without a uid may be. An expired tenure ends before they all do.
    """
    bounds = histories.bounds
    may_lack = bounds.is_log_leaky or bounds.has_hole(deletion.at, after.since)
    by_then = [one for one in found if one.at <= after.since + bounds.skew]
    return len(by_then) == 1 and not may_lack and _is_followed_by_namesake(tenure, after)


def _is_followed_by_namesake(tenure: Tenure, after: Tenure) -> bool:
    """Return whether another pod of the same name came next: an API server has one of a name at a time."""
    own, follower = tenure.processes.own, after.processes.own
    if own is None or follower is None or not (own.uid and follower.uid and own.pod):
        return False
    return (own.user, own.pod) == (follower.user, follower.pod) and own.uid != follower.uid


def _is_of(deletion: PodDeletion, own: Writer, history: LeaseHistory, tenure: Tenure) -> bool:
    """Return whether a deletion is known to be of the pod of a process, or of one of its name that was heard by then.

    The deletions of other uids are left out before.
    """
    if deletion.uid and own.uid:
        return True
    first = find_first_request(tenure, own, tenure.last_renewal)
    return deletion.at >= first and not has_heard_namesake(history, own, first, deletion.at)


def find_evictor(found: Sequence[HolderPodDeletion], tenures: Sequence[Tenure]) -> Writer | None:
    """Return who asked for the deletion of the pods of all of these tenures before they ended; None if several did."""
    who = {id(one.tenure): one.deletion.writer.process for one in found if not is_by_kubelet(one.deletion)}
    writers = {who.get(id(tenure)) for tenure in tenures}
    return writers.pop() if len(writers) == 1 and tenures else None


def is_gone(found: Sequence[HolderPodDeletion], tenure: Tenure) -> bool:
    """Return whether the pod of a holder was deleted, and it has not renewed for a second or more since."""
    of_tenure = [one.deletion for one in found if one.tenure is tenure]
    return bool(of_tenure) and tenure.last_renewal <= of_tenure[-1].at + SECOND
