"""Follow every lease of an input, and compare them: a lease that only a list shows is followed once it is asked for."""

from bisect import bisect_right
from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.api.objects import LeaseCandidate
from webhook.api.times import MINUTE, SECOND
from webhook.history.events import LeaseEvent
from webhook.history.lease import MAX_READERS, Bounds, LeaseHistory
from webhook.history.renewals import OtherLeases, other_leases
from webhook.history.status import LeaseStatus
from webhook.history.stored import Key, StoredLeases
from webhook.inputs.items import Act, ClockSkew, ElectionEvent, Fenced, InputKind, Item, LogEnd, Observation, Unrecorded

MAX_COMPARED: Final = 200
"""Other leases that one is compared with if there are twice as many or more; of fewer all are."""
_TOGETHER: Final = MINUTE
"""Leases that were last renewed within this time before one stopped with it."""


class Follower(Struct):
    """Every lease that was seen, by namespace and name; `bounds.until` is by an API server's clock, None for dumps."""

    leases: dict[Key, LeaseHistory] = field(default_factory=dict)
    """Without those that are only `stored`."""
    stored: StoredLeases = field(default_factory=StoredLeases)
    candidates: dict[Key, LeaseCandidate] = field(default_factory=dict)
    election_events: dict[Key, set[tuple[int, str]]] = field(default_factory=dict)
    """Time and text of Events. Clients write them, so they are not part of a history."""
    bounds: Bounds = field(default_factory=Bounds)
    has_managed_fields: bool = False
    _last_renewals: tuple[int, list[int], list[int]] | None = None
    """At a moment, of held leases, in order: last renewals, and these less half a duration."""
    _names: list[Key] = field(default_factory=list)

    @property
    def hides_stamps(self) -> bool:
        """True if leases were shown, and all of them without managedFields."""
        is_any_shown = self.stored.is_used or any(one.lease for one in self.leases.values())
        return is_any_shown and not self.has_managed_fields

    def names(self) -> list[Key]:
        """Return the names of all leases, in order."""
        return sorted({*self.leases, *self.stored.keys()})

    def history_of(self, key: Key) -> LeaseHistory | None:
        """Return what is known of a lease; None if it was never seen."""
        history, state = self.leases.get(key), self.stored.get(key)
        if history is None and state is not None:
            history = LeaseHistory(*key)
            history.feed(state, self.bounds)
        return history

    def take(self, seen: Item) -> None:
        """Take in one item; what only lists show is not followed before it is asked for."""
        if isinstance(seen, Observation) and seen.kind == "Lease" and seen.input_kind is InputKind.DUMP:
            key = (seen.namespace, seen.name)
            if key not in self.leases and self.stored.add(key, seen):
                self.has_managed_fields = self.has_managed_fields or seen.has_managed_fields
                return
        if isinstance(seen, Unrecorded):
            self.bounds.unrecorded.append(seen)
        if isinstance(seen, ClockSkew):
            self.bounds.skew = seen.least
        self.feed(seen)

    def feed(self, seen: Item) -> list[LeaseEvent]:
        """Take in one item, and return what happened: nothing unless it is an observation."""
        self._last_renewals = None
        if isinstance(seen, LogEnd):
            self.bounds.reach(min(seen.at, self.bounds.latest))
        elif isinstance(seen, Fenced):
            fenced = self._followed((seen.namespace, seen.name))
            if fenced is not None and seen.is_refused:
                fenced.fenced.append(seen)
        elif isinstance(seen, ElectionEvent):
            said = self.election_events.setdefault((seen.namespace, seen.lease), set())
            said.add((seen.at, seen.text))
            if len(said) > MAX_READERS:
                said.remove(min(said))
        elif isinstance(seen, Observation) and seen.act is not Act.COLLECTION:
            key = (seen.namespace, seen.name)
            if seen.kind == "Lease":
                history = self._followed(key) or self.leases.setdefault(key, LeaseHistory(*key))
                events = history.feed(seen, self.bounds)
                self.has_managed_fields = self.has_managed_fields or seen.has_managed_fields
                self.bounds.seen(seen, history.at if seen.at is None else min(seen.at, self.bounds.latest))
                return events
            if isinstance(seen.object, LeaseCandidate) and seen.is_stored:
                self.candidates[key] = seen.object
            if seen.act is Act.DELETED:
                self.candidates.pop(key, None)
        return []

    def _followed(self, key: Key) -> LeaseHistory | None:
        history = self.leases.get(key) or self.history_of(key)
        if history is not None and self.stored.take(key) is not None:
            self.leases[key] = history
        return history

    def others_of(self, one: LeaseHistory, start: int, end: int) -> OtherLeases:
        """Return how many other leases were late, and how many were renewed as usual, between two instants.

        Of many leases some are compared, evenly spread: after an outage each lease asks this of all others.
        """
        if len(self._names) != len(self.leases):
            self._names = sorted(self.leases)
        step = max(1, len(self._names) // MAX_COMPARED)
        sample = (self.leases[key] for key in islice(self._names, 0, None, step))
        others = (other.renewals for other in sample if other is not one)
        return replace(other_leases(others, start, end), is_sample=step > 1)

    def stopped_with(self, one: LeaseStatus, now: int) -> OtherLeases:
        """Return how many other held leases were last renewed when an expired one was, and how many after it."""
        if self._last_renewals is None or self._last_renewals[0] != now:
            statuses = (lease.status(now) for lease in self.leases.values())
            held = [
                (status.last_renewal, max(0, status.duration) * SECOND // 2)
                for status in statuses
                if status and status.holder and status.last_renewal is not None and status.duration is not None
            ]
            held += self.stored.last_renewals()
            self._last_renewals = now, sorted(at for at, _ in held), sorted(at - half for at, half in held)
        _, last, going_on = self._last_renewals
        since = one.last_renewal or 0
        on_time = len(going_on) - bisect_right(going_on, since)
        late = len(last) - bisect_right(last, since - _TOGETHER) - on_time
        return OtherLeases(late - (one.duration is not None), on_time)
