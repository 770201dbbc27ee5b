"""Builds a timeline from observations, one after another, in memory that does not grow with their number."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from webhook.explanation.words import count
from webhook.history.cluster_history import ClusterHistory, Key
from webhook.history.lease_history import LeaseHistory
from webhook.observations.observation import Act, Fenced, Item, LogEnd, Observation
from webhook.timeline.before import Before, Bounds
from webhook.timeline.candidate_record import CandidateRecord
from webhook.timeline.causes import causes_of, with_causes
from webhook.timeline.clipping import lane_within
from webhook.timeline.fenced import FencedWrites
from webhook.timeline.lease_record import LeaseRecord
from webhook.timeline.model import Lane, Timeline
from webhook.timeline.reach import Reach
from webhook.timeline.texts import shown
from webhook.timeline.thinning import what_was_thinned

MOST_LANES: Final = 20_000
"""Leases, and as many candidates; what is seen of others is counted."""
MOST_TICKS: Final = 4_000_000
"""Renewals that are kept one by one, of all lanes together; but of each lane at least FEWEST_TICKS."""
FEWEST_TICKS: Final = 64


class TimelineBuilder(Struct):
    """`clock` is when the input was read, in microseconds since 1970: what is dated later is wrong or forged.

    `changed` are the leases of which something was seen since it was emptied, themselves or their candidates.
    """

    clock: int
    most_ticks: int = MOST_TICKS
    most_lanes: int = MOST_LANES
    reach: Reach = field(default_factory=Reach)
    changed: set[Key] = field(default_factory=set)
    _cluster: ClusterHistory = field(default_factory=ClusterHistory)
    _leases: dict[Key, LeaseRecord] = field(default_factory=dict)
    _candidates: dict[Key, CandidateRecord] = field(default_factory=dict)
    _beneath: dict[Key, dict[Key, None]] = field(default_factory=dict)
    _fenced: FencedWrites = field(default_factory=FencedWrites)
    _left_out: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no lease and no candidate was seen."""
        return not self._leases and not self._candidates

    @property
    def has_managed_fields(self) -> bool:
        """Whether any object showed managedFields, or none was shown at all."""
        cluster = self._cluster
        return cluster.has_managed_fields or not any(one.lease for one in cluster.leases.values())

    def observe(self, seen: Item) -> None:
        """Take in one observation, and pass over what is none; those of one lease come in order."""
        if isinstance(seen, LogEnd):
            self.reach.until_at_least(min(seen.at, self.clock))
        elif isinstance(seen, Fenced):
            self._observe_fenced(seen)
        elif not isinstance(seen, Observation) or seen.act is Act.COLLECTION:
            return  # it says nothing of a single object
        elif seen.kind == "Lease":
            self._observe_lease((seen.namespace, seen.name), seen)
        else:
            self._observe_candidate((seen.namespace, seen.name), seen)

    def keys(self) -> list[Key]:
        """The leases that have a lane, in their order."""
        return sorted({*self._leases, *self._fenced.marks, *self._beneath})

    def explain(self, key: Key, until: int) -> bool:
        """Find out why leaders of a lease were lost or late; whether that is settled, or there is nothing to find."""
        record = self._leases.get(key)
        if record is None or record.causes.is_of(record.history):
            return True
        record.causes = causes_of(self._cluster, record.history, until)
        return record.causes.is_settled or not (record.causes.lost or record.causes.late)

    def lane(self, key: Key, ends: int) -> Lane:
        """The lane of one lease as it stands at `ends`, with the causes that were found out."""
        record = self._leases.get(key) or LeaseRecord(LeaseHistory(*key))
        fenced = self._fenced.marks.get(key)
        marks = with_causes(record.marks.marks, record.causes)
        if fenced:
            marks = tuple(sorted([*marks, *fenced.marks], key=lambda mark: mark.at))
        below = ((own, self._candidates[own]) for own in sorted(self._beneath.get(key, ())))
        return Lane(
            "Lease",
            shown(key[0]),
            shown(key[1]),
            record.duration_held,
            record.spans.spans(record.overdue_at, ends, is_gone=record.history.is_deleted),
            record.ticks.ticks,
            marks,
            tuple(_candidate_lane(own, candidate, ends) for own, candidate in below),
        )

    def timeline(
        self,
        ends: int,
        sources: tuple[str, ...] = (),
        read_at: int | None = None,
        *,
        keys: Iterable[Key] | None = None,
    ) -> Timeline:
        """Everything from the first event up to `ends`, in microseconds since 1970.

        With `keys` only some leases, and no cause that was not found out before.
        """
        begins = self.reach.begins(ends)
        chosen = self.keys() if keys is None else keys
        if keys is None:
            for key in chosen:
                self.explain(key, ends)
        lanes = tuple(lane_within(self.lane(key, ends), begins, ends) for key in chosen)
        thinned = (*self._not_shown(), *what_was_thinned(lanes))
        return Timeline(begins, ends, lanes, thinned, sources, read_at)

    def overdue_between(self, begins: int, ends: int) -> list[Key]:
        """Leases whose holder's time ends after `begins`, and not after `ends`."""
        times = ((key, record.overdue_at) for key, record in self._leases.items())
        return [key for key, at in times if at is not None and begins < at <= ends]

    def _observe_lease(self, key: Key, seen: Observation) -> None:
        record = self._leases.get(key)
        if record is None:
            if seen.act is Act.READ:
                return  # anyone may ask for any name, and be refused
            if len(self._leases) >= self.most_lanes:
                self._left_out += 1
                return
            history = self._cluster.leases.setdefault(key, LeaseHistory(*key))
            record = self._leases[key] = LeaseRecord(history)
        before = Before.of(record.history)
        self._cluster.observe(seen)
        record.observed(seen, before, self._bounds())
        self.reach.seen(seen.act, seen.origin, record.at if seen.at is None else min(seen.at, self.clock))
        self.changed.add(key)

    def _observe_candidate(self, key: Key, seen: Observation) -> None:
        record = self._candidates.get(key)
        if record is None:
            if len(self._candidates) >= self.most_lanes:
                self._left_out += 1
                return
            record = self._candidates[key] = CandidateRecord()
        before = (key[0], record.lease)
        record.observe(seen, self._bounds())
        self.reach.seen(seen.act, seen.origin, record.at if seen.at is None else min(seen.at, self.clock))
        after = (key[0], record.lease)
        if before != after:
            self._leave(before, key)
        self._beneath.setdefault(after, {})[key] = None
        self.changed.add(after)

    def _leave(self, lease: Key, candidate: Key) -> None:
        """A candidate offers itself for another lease; nothing is kept of one without candidates."""
        below = self._beneath.get(lease, {})
        below.pop(candidate, None)
        if not below:
            self._beneath.pop(lease, None)

    def _observe_fenced(self, seen: Fenced) -> None:
        key = self._fenced.lease_of(seen)
        if key:
            record = self._leases.get(key)
            self._fenced.observe(seen, key, record.holder if record else "")
            self.changed.add(key)
            self.reach.event(min(seen.at, self.clock))

    def _bounds(self) -> Bounds:
        kept = max(FEWEST_TICKS, self.most_ticks // max(1, len(self._leases) + len(self._candidates)))
        return Bounds(self.clock, kept, self.reach.until)

    def _not_shown(self) -> Iterator[str]:
        if self._left_out:
            seen = count(self._left_out, "observation")
            yield f"{seen} of leases and candidates beyond the first {self.most_lanes} of each are left out"
        for fence, number in sorted(self._fenced.unplaced.items()):
            writes = count(number, "write")
            yield f"{writes} that fence {shown(fence)} refused are left out: the log does not name its lease"


def _candidate_lane(key: Key, record: CandidateRecord, ends: int) -> Lane:
    return Lane(
        "LeaseCandidate",
        shown(key[0]),
        shown(key[1]),
        spans=record.spans.spans(None, ends, is_gone=record.is_deleted),
        ticks=record.ticks.ticks,
        marks=record.marks.marks,
    )
