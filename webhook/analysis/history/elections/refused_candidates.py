"""LeaseCandidates that an API server refused to store: whoever has none cannot be chosen in a coordinated election.

A client reads its candidate first: who may not do that does not try to store one.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.audit_log.refusal import NOT_FOUND, Refusal, RefusedBy, is_not_served
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Act, Observation, Writer

_Key = tuple[str, Writer, bool, int]
"""A namespace, a process, whether it read, and the code that it was answered with."""


class RefusedCandidate(Struct, frozen=True):
    """The writes of one process to a LeaseCandidate that were answered with one code, since it last stored one.

    Or its reads, since it last was allowed to read.
    `lease` is the lease that it is for, "" if the input does not show that; `count` is how many, `last` the latest.
    """

    namespace: str
    lease: str
    count: int
    first: int
    last: Refusal

    @property
    def writer(self) -> Writer:
        """The process that wrote."""
        return self.last.writer.process


class RefusedCandidates(Struct):
    """The latest ones, by namespace and process, in the order in which they were refused first."""

    found: dict[_Key, RefusedCandidate] = field(default_factory=dict)
    _ended: dict[_Key, RefusedCandidate] = field(default_factory=dict)
    """Of each process the latest, if it was not refused any longer."""

    def take(self, seen: Observation, lease: str) -> None:
        """Take in what was asked of a candidate of a lease; "" if that is not known."""
        if seen.act is Act.DELETED or seen.writer is None or seen.is_dry_run:
            return
        is_read = seen.act is Act.READ
        if seen.is_stored or (is_read and _is_not_found(seen)):
            self._end(seen.namespace, seen.writer.process, is_read=is_read)
            return
        refusal = Refusal.from_observation(seen)
        if refusal is None or not (_is_kept_out(refusal) if is_read else refusal.is_denied_write):
            return
        key = (seen.namespace, seen.writer.process, is_read, refusal.code)
        known = self.found.get(key) or RefusedCandidate(seen.namespace, lease, 0, refusal.received, refusal)
        self.found[key] = replace(known, lease=lease or known.lease, count=known.count + 1, last=refusal)
        if len(self.found) > MAX_REFUSED:
            del self.found[next(iter(self.found))]

    def _end(self, namespace: str, process: Writer, *, is_read: bool) -> None:
        """Note that a process was not refused any longer; who stored one may read it, too."""
        for key in [one for one in self.found if one[:2] == (namespace, process) and (one[2] or not is_read)]:
            self._ended[key] = self.found.pop(key)
        while len(self._ended) > MAX_REFUSED:
            del self._ended[next(iter(self._ended))]

    def list_for_lease(self, namespace: str, lease: str, askers: dict[str, set[str]]) -> tuple[RefusedCandidate, ...]:
        """Return those for a lease; where a log does not show for which, of processes that asked for it.

        `askers` are the pods that did, by user. What an API server does not serve it refuses to nobody.
        """
        found = _select_for_lease(self.found, namespace, lease, askers)
        return tuple(one for one in found if not is_not_served(one.last))

    def list_ended(self, namespace: str, lease: str, askers: dict[str, set[str]]) -> tuple[RefusedCandidate, ...]:
        """Return those after which the same was allowed, as `list_for_lease` does."""
        return _select_for_lease(self._ended, namespace, lease, askers)


def _is_kept_out(refusal: Refusal) -> bool:
    """Return whether a reader does not come to store one: it has no right, or the API server does not serve them."""
    return refusal.by is RefusedBy.RIGHTS or is_not_served(refusal)


def _is_not_found(seen: Observation) -> bool:
    """Return whether there was no such candidate, which is said only to who may read one."""
    answer = seen.answer
    return answer is not None and answer.code == NOT_FOUND and not is_not_served(answer)


def _select_for_lease(
    found: Mapping[_Key, RefusedCandidate], namespace: str, lease: str, askers: dict[str, set[str]]
) -> tuple[RefusedCandidate, ...]:
    return tuple(
        one
        for one in found.values()
        if one.namespace == namespace
        and (one.lease == lease or (not one.lease and one.writer.pod in askers.get(one.writer.user, ())))
    )


MAX_REFUSED: Final = 4 * MAX_LISTED
