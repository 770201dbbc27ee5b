"""The pods that an audit log shows as deleted, the latest: a process that led may have ended with its pod."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.audit_log.absences import Absences
from webhook.analysis.inputs.absences import POD
from webhook.analysis.inputs.items import PodDeletion, Writer
from webhook.kubernetes.request import NODE_USER, UserInfo
from webhook.kubernetes.times import MINUTE

MAX_PODS: Final = 5000
"""Namespaces and names of pods whose deletions are remembered."""
_WITHIN: Final = 10 * MINUTE
"""For how long a pod may take to end."""
MAX_DELETIONS: Final = 16
"""Deletions of one name: pods of a StatefulSet come again under theirs."""


class DeletedPods(Struct):
    """The latest deletions, by namespace and name of the pod; that which was deleted last comes last."""

    absences: Absences = field(default_factory=Absences)
    """When pods, and other objects, were known to be gone."""
    skew: int = 0
    """The least difference between the clocks of the API servers, in microseconds, as far as is known."""
    _found: dict[tuple[str, str], list[PodDeletion]] = field(default_factory=dict)

    def add(self, deletion: PodDeletion) -> None:
        """Remember a deletion, and forget the name that was deleted longest ago if there are too many."""
        key = (deletion.namespace, deletion.name)
        found = self._found.pop(key, [])
        # Logs overlap where they were rotated or copied, and one of them may show more of a request than another.
        alike = next((one for one in found if _is_same_request(one, deletion)), None)
        if alike is not None:
            found.remove(alike)
            is_surely_not_dry_run = deletion.is_surely_not_dry_run or alike.is_surely_not_dry_run
            grace = alike.grace if deletion.grace is None else deletion.grace
            deletion = replace(
                deletion, uid=deletion.uid or alike.uid, is_surely_not_dry_run=is_surely_not_dry_run, grace=grace
            )
        self._found[key] = [*found, deletion][-MAX_DELETIONS:]
        if len(self._found) > MAX_PODS:
            del self._found[next(iter(self._found))]

    def list_deletions_by(self, process: Writer) -> Sequence[PodDeletion]:
        """Return the deletions of what may be the pod of a process, by its namespace and name, in order of time.

        One of a pod with another uid is left out. Who acts as another user may name any pod.
        """
        account = UserInfo(process.user).service_account
        if account is None or not process.pod or process.impersonator:
            return []
        return self.list_deletions_of(account[0], process.pod, process.uid)

    def list_deletions_of(self, namespace: str, name: str, uid: str) -> Sequence[PodDeletion]:
        """Return the deletions of what may be a pod, in order of time; one of a pod with another uid is left out."""
        found = self._found.get((namespace, name), ())
        own = sorted((one for one in found if not (one.uid and uid and one.uid != uid)), key=lambda one: one.at)
        gone = self.absences.list_times(POD, namespace, name)
        return [
            replace(one, is_surely_not_dry_run=one.is_surely_not_dry_run or _is_confirmed(one, own, gone, self.skew))
            for one in own
        ]


def _is_same_request(deletion: PodDeletion, other: PodDeletion) -> bool:
    """Return whether two deletions of one name are records of one request: none is answered twice at a moment."""
    is_like = (deletion.at, deletion.writer, deletion.is_eviction) == (other.at, other.writer, other.is_eviction)
    return is_like and (deletion.uid == other.uid or not (deletion.uid and other.uid))


def is_by_kubelet(deletion: PodDeletion) -> bool:
    """Return whether a deletion is that by which a kubelet confirms that the containers of a pod have ended."""
    return is_kubelet(deletion.writer)


def is_by_force(deletion: PodDeletion) -> bool:
    """Return whether a deletion took a pod away at once, without its kubelet: its process may run on."""
    return deletion.grace == 0 and not deletion.is_eviction and not is_by_kubelet(deletion)


def is_kubelet(writer: Writer) -> bool:
    """Return whether a writer is a kubelet, and not someone who impersonates one."""
    return writer.user.startswith(NODE_USER) and not writer.impersonator


def _is_confirmed(deletion: PodDeletion, known: Sequence[PodDeletion], absent: Sequence[int], skew: int) -> bool:
    """Return whether a deletion took the pod away, as nobody else had asked for one: then it was no dry run.

    A kubelet confirms that its containers have ended, or the pod is `absent` at a later time.
    """
    kubelet = [other.at for other in known if is_by_kubelet(other)]
    ends = [*(at for at in kubelet if at >= deletion.at), *(at for at in absent if at >= deletion.at + skew)]
    if not ends:
        return False
    confirmed = min(ends)
    earlier = [at for at in (*kubelet, *absent) if at < deletion.at]
    since = max([confirmed - _WITHIN, *earlier])
    asked = [other for other in known if not is_by_kubelet(other) and since <= other.at <= confirmed]
    return asked == [deletion]
