"""LeaseCandidates that an API server refused to store: whoever has none cannot be chosen in a coordinated election."""

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Act, Observation, Writer

_Key = tuple[str, Writer]


class RefusedCandidate(Struct, frozen=True):
    """The refused writes of one process to a LeaseCandidate, since it last stored one.

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

    def take(self, seen: Observation, lease: str) -> None:
        """Take in what was asked of a candidate of a lease; "" if that is not known."""
        if seen.act in {Act.READ, Act.DELETED} or seen.writer is None or seen.is_dry_run:
            return
        key = (seen.namespace, seen.writer.process)
        if seen.is_stored:
            self.found.pop(key, None)
            return
        refusal = Refusal.from_observation(seen)
        if refusal is None or not refusal.is_denied_write:
            return
        known = self.found.get(key) or RefusedCandidate(seen.namespace, lease, 0, refusal.received, refusal)
        self.found[key] = replace(known, lease=lease or known.lease, count=known.count + 1, last=refusal)
        if len(self.found) > MAX_REFUSED:
            del self.found[next(iter(self.found))]

    def list_for_lease(self, namespace: str, lease: str, askers: dict[str, set[str]]) -> tuple[RefusedCandidate, ...]:
        """Return those for a lease; where a log does not show for which, of processes that asked for it.

        `askers` are the pods that did, by user.
        """
        return tuple(
            one
            for one in self.found.values()
            if one.namespace == namespace
            and (one.lease == lease or (not one.lease and one.writer.pod in askers.get(one.writer.user, ())))
        )


MAX_REFUSED: Final = 4 * MAX_LISTED
