"""The pod that wrote each LeaseCandidate, and its lease: a pod that asks for another lease is never chosen for that.

In: what a log shows of LeaseCandidates. Out: by pod, the latest of those that it created, or renewed.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Act, Observation, Writer
from webhook.kubernetes.objects import LeaseCandidate

MAX_PODS: Final = 1000
_Key = tuple[str, Writer]


class CandidateWriters(Struct):
    """The leases that the candidates of each pod are for, by namespace and pod, then by the name of the candidate."""

    _found: dict[_Key, dict[str, str]] = field(default_factory=dict)
    _pods: dict[tuple[str, str], Writer] = field(default_factory=dict)

    def take(self, seen: Observation) -> None:
        """Take in a stored state of a candidate, if a log shows the pod that wrote it, or its deletion."""
        if seen.act is Act.DELETED:
            self._forget(seen.namespace, seen.name)
            return
        if not isinstance(seen.object, LeaseCandidate) or seen.writer is None or not seen.writer.uid:
            return
        if seen.act is Act.READ or seen.writer.impersonator:
            return
        self._forget(seen.namespace, seen.name)
        key = (seen.namespace, seen.writer.process)
        of_pod = self._found[key] = self._found.pop(key, {})
        of_pod[seen.name] = seen.object.spec.lease_name or ""
        self._pods[seen.namespace, seen.name] = seen.writer.process
        if len(of_pod) > MAX_LISTED:
            self._forget(seen.namespace, next(iter(of_pod)))
        if len(self._found) > MAX_PODS:
            (namespace, _), names = next(iter(self._found.items()))
            for name in list(names):
                self._forget(namespace, name)

    def _forget(self, namespace: str, name: str) -> None:
        """Forget a candidate, and its pod with the last one of that."""
        who = self._pods.pop((namespace, name), None)
        if who is None:
            return
        of_pod = self._found[namespace, who]
        del of_pod[name]
        if not of_pod:
            del self._found[namespace, who]

    def find_pod(self, namespace: str, name: str) -> Writer | None:
        """Return the pod that wrote a candidate; None if no log shows it."""
        return self._pods.get((namespace, name))

    def list_leases(self, namespace: str, who: Writer) -> Mapping[str, str]:
        """Return the lease of each candidate that a pod wrote, by the name of the candidate."""
        return self._found.get((namespace, who), {})
