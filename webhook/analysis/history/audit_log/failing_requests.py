"""Requests of pods, besides those for leases, that failed again and again in an audit log: the latest of each kind."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct, field

from webhook.analysis.inputs.items import Failure, PodActivity, Writer

MAX_PODS: Final = 100
MAX_KINDS: Final = 20
"""Different things that each pod asked for in vain that are remembered, lest those of a pod crowd out others'."""
MAX_REQUESTS: Final = 1000
"""Requests of each kind that are remembered, the latest."""


class FailedRequest(Struct, frozen=True):
    """When a request was answered that failed, and received, in microseconds since 1970; the answer, and who asked."""

    at: int
    received: int
    message: str
    who: Writer


class FailingRequests(Struct):
    """When requests failed, and with which answer, by the user and the uid of their pod, and what they were to do."""

    _kept: dict[tuple[str, str], dict[Failure, dict[tuple[int, int], str]]] = field(default_factory=dict)
    has_forgotten: bool = False
    """Whether there were more pods, or more kinds of one pod, than are remembered."""

    def add(self, request: PodActivity) -> None:
        """Remember a request if it failed, and forget what failed longest ago."""
        if request.failure is None or request.writer.impersonator:
            return
        key = request.writer.user, request.writer.uid
        kinds = self._kept[key] = self._kept.pop(key, {})
        found = kinds[request.failure] = kinds.pop(request.failure, {})
        found[request.received, request.at] = request.message  # logs overlap where they were rotated or copied
        if len(found) > MAX_REQUESTS:
            del found[next(iter(found))]
        if len(kinds) > MAX_KINDS:
            del kinds[next(iter(kinds))]
            self.has_forgotten = True
        if len(self._kept) > MAX_PODS:
            del self._kept[next(iter(self._kept))]
            self.has_forgotten = True

    def list_by_failure(self, pods: Iterable[Writer]) -> dict[Failure, Sequence[FailedRequest]]:
        """Return the requests of some pods that failed, in the order of their answers."""
        known = {(one.user, one.uid): one for one in pods if one.uid and not one.impersonator}
        found: dict[Failure, list[FailedRequest]] = {}
        for key, kinds in self._kept.items():
            for failure, kept in kinds.items() if key in known else ():
                who = known[key]
                answers = (FailedRequest(at, received, message, who) for (received, at), message in kept.items())
                found.setdefault(failure, []).extend(answers)
        return {failure: sorted(answers, key=attrgetter("at")) for failure, answers in found.items()}
