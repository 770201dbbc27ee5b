"""What pods asked for again and again beside leases that failed, as an audit log shows it: the latest of each kind."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, field

from webhook.analysis.inputs.items import Failure, PodActivity, Writer

MAX_KINDS: Final = 200
"""What pods asked for in vain that is remembered, each pod and thing by itself."""
MAX_REQUESTS: Final = 1000
"""Requests of each kind that are remembered, the latest."""


class FailingRequests(Struct):
    """When requests failed, by the user and the uid of their pod, and by what they were to do."""

    _kept: dict[tuple[str, str, Failure], dict[tuple[int, int], None]] = field(default_factory=dict)

    def add(self, request: PodActivity) -> None:
        """Remember a request if it failed, and forget what failed longest ago."""
        if request.failure is None:
            return
        key = request.writer.user, request.writer.uid, request.failure
        found = self._kept[key] = self._kept.pop(key, {})
        found[request.received, request.at] = None  # logs overlap where they were rotated or copied
        if len(found) > MAX_REQUESTS:
            del found[next(iter(found))]
        if len(self._kept) > MAX_KINDS:
            del self._kept[next(iter(self._kept))]

    def list_of(self, pods: Iterable[Writer]) -> dict[Failure, Sequence[tuple[int, Writer]]]:
        """Return when requests of some pods were answered that failed, in order of time, and whose they were."""
        known = {(one.user, one.uid): one for one in pods if one.uid and not one.impersonator}
        found: dict[Failure, list[tuple[int, Writer]]] = {}
        for (user, uid, failure), times in self._kept.items():
            if (user, uid) in known:
                found.setdefault(failure, []).extend((at, known[user, uid]) for _, at in times)
        return {failure: sorted(times, key=lambda one: one[0]) for failure, times in found.items()}
