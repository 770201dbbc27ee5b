"""What an audit log shows of pods besides their deletion, the latest: who was refused, has a status, or got a node."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.audit_log.deleted_pods import MAX_PODS
from webhook.analysis.inputs.items import PodAct, PodRequest

MAX_REQUESTS: Final = 64
"""Requests about one pod, and creations that were refused in a namespace for one writer, that are remembered."""
_Kept = dict[tuple[str, str], deque[PodRequest]]


class PodRequests(Struct):
    """The latest requests by namespace: creations that were refused by who asked for them, the rest by pod or Job."""

    _refused: _Kept = field(default_factory=dict)
    _others: _Kept = field(default_factory=dict)
    _of_jobs: _Kept = field(default_factory=dict)

    def add(self, request: PodRequest) -> None:
        """Remember a request, and forget the pod, or the writer, of which nothing was heard for longest."""
        is_refused = request.act is PodAct.REFUSED
        others = self._of_jobs if request.act is PodAct.JOB_STATUS else self._others
        kept, key = (self._refused, request.writer.user) if is_refused else (others, request.name)
        found = kept.pop((request.namespace, key), None) or deque[PodRequest](maxlen=MAX_REQUESTS)
        if request not in found:  # logs overlap where they were rotated or copied
            found.append(request)
        kept[request.namespace, key] = found
        if len(kept) > MAX_PODS:
            del kept[next(iter(kept))]

    def list_refused(self, namespaces: Collection[str]) -> Sequence[PodRequest]:
        """Return the creations of pods of some namespaces that were refused, in order of time."""
        found = (one for key, kept in self._refused.items() if key[0] in namespaces for one in kept)
        return sorted(found, key=lambda one: one.at)

    def list_about(self, namespace: str, pod: str) -> Sequence[PodRequest]:
        """Return the requests about a pod of a name, in order of time."""
        return sorted(self._others.get((namespace, pod), ()), key=lambda one: one.at)

    def list_about_job(self, namespace: str, job: str) -> Sequence[PodRequest]:
        """Return the writes of the status of a Job of a name, in order of time."""
        return sorted(self._of_jobs.get((namespace, job), ()), key=lambda one: one.at)

    def list_names(self, namespace: str) -> Sequence[str]:
        """Return the names of the pods of a namespace of which something is remembered."""
        return [name for one, name in self._others if one == namespace]
