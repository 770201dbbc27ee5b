"""Builds a timeline from observations, one after another, in memory that does not grow with their number."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from webhook.analysis.claims.words import describe_by_writer, format_count
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.items import AboutInput, Act, FenceReport, Item, Observation
from webhook.analysis.timeline.downsampling import (
    cut_lane,
    describe_merging,
)
from webhook.analysis.timeline.lease_lane import LeaseLane
from webhook.analysis.timeline.model import (
    MAX_TEXT,
    Lane,
    MarkKind,
    Timeline,
    shorten_for_page,
)

MAX_LANES: Final = 20_000
"""Leases; what is seen of others is counted."""
MAX_OTHERS: Final = 500_000
"""Leases without a lane that are counted."""
MAX_TICKS: Final = 4_000_000
"""Renewals that are kept one by one, of all lanes together; but of each lane at least MIN_TICKS."""
MIN_TICKS: Final = 64


class TimelineBuilder(Struct):
    """`clock` is when the input was read, in microseconds since 1970: what is dated later is wrong or forged.

    `names` and `namespace` choose leases, which have a lane also if there are too many others. The namespace of a name
    is "" for any.
    """

    clock: int
    max_ticks: int = MAX_TICKS
    histories: ClusterHistory = field(default_factory=ClusterHistory)
    names: frozenset[Key] = frozenset()
    namespace: str = ""
    _leases: dict[Key, "LeaseLane"] = field(default_factory=dict)
    _problems: dict[Key, str] = field(default_factory=dict)
    _left_out: int = 0
    _others: set[int] = field(default_factory=set)
    """Hashes of the names of leases that have no lane."""

    def observe(self, seen: Item) -> Key | None:
        """Take in one item, and return the lease that it is about; the observations of one lease come in order."""
        self.histories.bounds.latest = self.clock
        if isinstance(seen, AboutInput):
            self.histories.add(seen)
        elif isinstance(seen, FenceReport):
            return self._observe_fenced((seen.namespace, seen.name), seen)
        elif isinstance(seen, Observation) and seen.kind == "Lease" and seen.act is not Act.COLLECTION:
            return self._observe_lease((seen.namespace, seen.name), seen)
        return None

    def explain(self, key: Key, until: int) -> bool:
        """Find out why leaders of a lease were lost or late; True if that is settled, or there is nothing to find."""
        try:
            return self._leases[key].explain(self.histories, until)
        except Exception as error:  # noqa: BLE001 - see _draw_safely
            self._problems[key] = _describe_bug(error)
            return True

    def _draw_safely(self, key: Key, begins: int, ends: int) -> Lane:
        """Return the lane of one lease from `begins` to `ends`: one that cannot be drawn costs no other."""
        if key not in self._problems:
            try:
                return cut_lane(self._draw(key, ends), begins, ends)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one lane, the others are drawn
                self._problems[key] = _describe_bug(error)
        return Lane(shorten_for_page(key[0]), shorten_for_page(key[1]), problem=self._problems[key])

    def _draw(self, key: Key, ends: int) -> Lane:
        """Return the lane of one lease as it stands at `ends`, with the causes that are known."""
        lane = self._leases[key]
        return Lane(
            shorten_for_page(key[0]),
            shorten_for_page(key[1]),
            lane.duration_held,
            lane.spans.spans(
                lane.overdue_at,
                ends,
                lane.find_freeze(ends),
                is_gone=lane.history.is_deleted,
                hidden_since=lane.history.hidden_since,
                doubtful_at=lane.doubtful_at,
            ),
            lane.ticks,
            tuple(map(lane.add_cause, lane.marks)),
            lane.history.is_list_only,
            handovers=lane.history.changes,
            is_claimed=lane.is_claimed,
            is_nameless=lane.history.is_nameless,
        )

    def timeline(
        self, ends: int, sources: tuple[str, ...] = (), read_at: int | None = None, *, keys: Iterable[Key] | None = None
    ) -> Timeline:
        """Return all up to `ends`, in microseconds since 1970; with `keys` only some leases, and no new causes."""
        begins = self.histories.bounds.find_start(ends)
        chosen = sorted(self._leases) if keys is None else keys
        if keys is None:
            for key in chosen:
                self.explain(key, ends)
        lanes = tuple(self._draw_safely(key, begins, ends) for key in chosen)
        undrawn = [f"{one.namespace}/{one.name} cannot be drawn: {one.problem}" for one in lanes if one.problem]
        thinned = (*undrawn, *map(str, self.histories.bounds.unrecorded), *describe_merging(lanes))
        if self._left_out:
            seen = format_count(self._left_out, "observation")
            thinned = (f"{seen} of leases beyond the first {MAX_LANES} are left out", *thinned)
        return Timeline(begins, ends, lanes, thinned, sources, read_at, len(self._others))

    def list_overdue_between(self, begins: int, ends: int) -> list[Key]:
        """Return the leases whose holder's time ends after `begins`, and not after `ends`."""
        times = ((key, one.overdue_at) for key, one in self._leases.items())
        return [key for key, at in times if at is not None and begins < at <= ends]

    def _find_lease(self, key: Key) -> "LeaseLane | None":
        """Return what is drawn of a lease, None if there are too many; what was seen of it is then counted."""
        lane = self._leases.get(key)
        is_named = key in self.names or ("", key[1]) in self.names
        is_chosen = is_named or key[0] == self.namespace
        if lane is None and len(self._leases) < (2 * MAX_LANES if is_chosen else MAX_LANES):
            lane = self._leases[key] = LeaseLane(history=self.histories.find_or_begin_history(key))
        if lane is None and (is_chosen or not (self.names or self.namespace)):
            self._left_out += 1
            if len(self._others) < MAX_OTHERS:
                self._others.add(hash(key))
        return lane

    def _observe_lease(self, key: Key, seen: Observation) -> Key | None:
        if seen.act is Act.READ and key not in self._leases:
            return None  # anyone may ask for any name, and be refused
        if not self.histories.is_of_a_lease(seen):
            return None
        lane = self._find_lease(key)
        if lane is None:
            return None
        kept = max(MIN_TICKS, self.max_ticks // len(self._leases))
        events = self.histories.add(seen)
        try:
            lane.observe(seen, events, self.clock, kept, self.histories.bounds.first_request)
        except Exception as error:  # noqa: BLE001 - see _draw_safely
            self._problems[key] = _describe_bug(error)
        return key

    def _observe_fenced(self, key: Key, seen: FenceReport) -> Key | None:
        lane = self._find_lease(key)
        if lane is None:
            return None
        what = "refused" if seen.is_refused else "noted, and did not refuse,"
        text = f"fence {seen.fence} {what} {seen.target}{describe_by_writer(seen.writer)}: {seen.message}"
        lane.mark(MarkKind.FENCED, seen.at, text, seen.writer, lane.holder)
        self.histories.bounds.note_event_at(min(seen.at, self.clock))
        return key


def _describe_bug(error: Exception) -> str:
    return shorten_for_page(f"this is a bug: {type(error).__name__}: {error}", MAX_TEXT)
