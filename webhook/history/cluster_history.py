"""The histories of all leases of an input, and what they say of one another."""

from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.api.objects import LeaseCandidate
from webhook.history.lease_history import LeaseHistory
from webhook.history.renewals import Company, company
from webhook.history.stops import Stops
from webhook.observations.observation import Act, Fenced, Item, LogEnd, Observation, Origin

Key = tuple[str, str]

MOST_COMPARED: Final = 200
"""Other leases that one is compared with if there are twice as many or more; of fewer all are."""

# Members of an enumeration are looked up at each use.
_COLLECTION: Final = Act.COLLECTION


class ClusterHistory(Struct):
    """Every lease that was seen, by namespace and name.

    `until` is the latest moment that the input reaches by an API server's clock; None for dumps, which are of one
    moment that they do not state.
    """

    leases: dict[Key, LeaseHistory] = field(default_factory=dict)
    candidates: dict[Key, LeaseCandidate] = field(default_factory=dict)
    until: int | None = None
    has_managed_fields: bool = False
    _stops: Stops | None = None

    def observe(self, seen: Item) -> None:
        """Take in one observation, and pass over what is none; those of one lease come in order."""
        self._stops = None
        if isinstance(seen, LogEnd):
            self._reaches(seen.at)
            return
        if isinstance(seen, Fenced):
            fenced = self.leases.get((seen.namespace, seen.name))
            if fenced is not None and seen.is_refused:
                fenced.fenced.append(seen)
            return
        if not isinstance(seen, Observation) or seen.act is _COLLECTION:
            return
        key = (seen.namespace, seen.name)
        if seen.kind != "Lease":
            self._observe_candidate(key, seen)
            return
        history = self.leases.get(key)
        if history is None:
            history = self.leases[key] = LeaseHistory(*key)
        history.observe(seen)
        self.has_managed_fields = self.has_managed_fields or seen.has_managed_fields
        if history.at is not None and (seen.act is not Act.STORED or seen.origin is Origin.WATCH):
            self._reaches(history.at)

    def _observe_candidate(self, key: Key, seen: Observation) -> None:
        if isinstance(seen.object, LeaseCandidate) and seen.is_stored:
            self.candidates[key] = seen.object
        if seen.act is Act.DELETED:
            self.candidates.pop(key, None)

    def company_of(self, one: LeaseHistory, start: int, end: int) -> Company:
        """How many other leases were late, and how many were renewed as usual, between two instants.

        Of many leases some are compared, evenly spread: after an outage each lease asks this of all others.
        """
        step = max(1, len(self.leases) // MOST_COMPARED)
        others = (other.renewals for other in islice(self.leases.values(), 0, None, step) if other is not one)
        return replace(company(others, start, end), is_sample=step > 1)

    def stopped_with(self, one: LeaseHistory, since: int, now: int) -> Company:
        """How many other held leases of a dump were last renewed before one was, and how many after."""
        if self._stops is None or self._stops.now != now:
            self._stops = Stops.of(self.leases.values(), now)
        return self._stops.company(since, Stops.of([one], now))

    def _reaches(self, at: int) -> None:
        self.until = at if self.until is None else max(self.until, at)
