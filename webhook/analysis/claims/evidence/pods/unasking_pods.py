"""Pods that got nodes while a lease was free and never asked for it: who should have led then, perhaps.

In: the pods of its workload that did not, and the free times of the lease that have ended.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.audit_log.deleted_pods import is_by_kubelet
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import PodAct
from webhook.kubernetes.times import MINUTE, SECOND

_BEFORE: Final = MINUTE // 2
_UNTIL_ASKING: Final = 15 * SECOND
"""How long a pod may take from getting a node until it asks for its lease."""
_MAX_NAMED: Final = 3


class UnaskingPods(Struct, frozen=True):
    """Pods, when the first one got a node, and when they were to be deleted, if a log shows that of each."""

    names: Sequence[str]
    bound: int
    deleted: Sequence[int]

    def describe(self, now: int) -> str:
        """`pods db-1, db-2 got nodes, and the log has no request for the lease from those pods; deleted by 12:00Z`."""
        named = ", ".join(map(format_name, self.names[:_MAX_NAMED]))
        more = f" and {len(self.names) - _MAX_NAMED} more" if len(self.names) > _MAX_NAMED else ""
        got = f"pods {named}{more} got nodes" if len(self.names) > 1 else f"pod {named} got a node"
        gone = f"; deleted by {format_clock(max(self.deleted), now)}" if self.deleted else ""
        whose = "those pods" if len(self.names) > 1 else "that pod"
        return f"{got}, and the log has no request for the lease from {whose}{gone}"


def find_unasking_pods(
    histories: ClusterHistory, silent: Iterable[tuple[str, str]], free: Sequence[tuple[int, int]]
) -> Iterator[UnaskingPods]:
    """Yield which of the `silent` pods, by namespace and name, were there in each time in which a lease was free."""
    known = [_Pod(*_find_life(histories, namespace, name), name) for namespace, name in silent]
    for start, end in free:
        found = sorted(one for one in known if one.may_have_asked(start, end))
        if found:
            deleted = [one.deleted for one in found if one.deleted]
            are_gone = len(deleted) == len(found)
            yield UnaskingPods(tuple(one.name for one in found), found[0].bound, tuple(deleted) if are_gone else ())


class _Pod(Struct, frozen=True, order=True):
    """When a pod got its node, and when it was to be deleted, 0 if that is not known."""

    bound: int
    deleted: int
    name: str

    def may_have_asked(self, start: int, end: int) -> bool:
        """Return whether it was there long enough to ask for a lease that was free from `start` to `end`."""
        until = min(end, self.deleted or end)
        return start - _BEFORE < self.bound < until - _UNTIL_ASKING


def find_bound(histories: ClusterHistory, namespace: str, name: str) -> int | None:
    """Return when a pod got a node, in microseconds since 1970; None if a log does not show it."""
    about = histories.pod_requests.list_about(namespace, name)
    return next((one.at for one in about if one.act is PodAct.BOUND), None)


def _find_life(histories: ClusterHistory, namespace: str, name: str) -> tuple[int, int]:
    bound = find_bound(histories, namespace, name) or 0
    known = histories.deleted_pods.list_deletions_of(namespace, name, "")
    return bound, min((one.at for one in known if one.is_surely_not_dry_run and not is_by_kubelet(one)), default=0)
