"""From when to when an input shows what happened."""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.audit_log.log_spans import LogSpans
from webhook.analysis.history.status import refine
from webhook.analysis.inputs.items import Act, InputKind, Observation, RecordingGap
from webhook.kubernetes.times import SECOND, parse_stamp

MAX_LISTED: Final = 16  # gaps of an input, readers of a lease
_MAX_STATES: Final = 20_000
_MIN_HOLE: Final = 5 * SECOND
_HOLE_INTERVALS: Final = 3
"""A log has a hole where it has no answer for so many times the mean interval, and for longer than the minimum."""
NEVER: Final = 2**62
"""Later than any instant, in microseconds since 1970."""


class Bounds(Struct):
    """From when to when an input shows what happened, in microseconds since 1970.

    `latest` is the last moment that is believed.
    """

    latest: int = NEVER
    may_be_older: bool = False
    """A list does not say when it was taken, and most of its leases were last renewed together, long before."""
    is_over: bool = False
    """Nothing follows what was read, such as a file; False for a live watch, during which time passes."""
    unrecorded: deque[RecordingGap] = field(default_factory=partial(deque, (), MAX_LISTED))
    """The latest gaps in what a recorder saw."""
    skew: int = 0
    """The least difference between the clocks of the API servers, as far as is known."""
    is_skewed_within: bool = False
    """Whether the clocks differ within a single input, so that several API servers wrote it."""
    is_log_leaky: bool = False
    """An audit log lacks requests here and there, as one does whose collector drops events."""
    log_spans: LogSpans = field(default_factory=LogSpans)
    logged_until: int = 0
    """The last moment that an audit log shows."""
    holes: deque[tuple[int, int]] = field(default_factory=partial(deque, (), MAX_LISTED))
    """Times in which an audit log has no answer about any lease, the latest."""
    _bridged: deque[tuple[int, int]] = field(default_factory=partial(deque, (), MAX_LISTED))
    """Times like these in which a lease was renewed as usual, the latest."""
    _reached: int | None = None
    _undated: int = 0
    """The latest stamp in the last event, or in the states that come first, if no API server surely made it."""
    _created: int = 0
    """The latest creation of a lease that a watch shows: an API server dates it, and no client does."""
    _requests: int = 0
    _first_request: int = 0
    _last_request: int = 0
    _claimed: dict[tuple[str, str], int] = field(default_factory=dict)
    """Times of the two leases with the latest states; a client may have invented them."""
    _resumed: dict[tuple[str, str], int] = field(default_factory=dict)
    """Times of states that follow what was not seen, by their stamps: another write may have moved one since."""
    _of_candidates: dict[tuple[str, str], int] = field(default_factory=dict)
    """Times of LeaseCandidates that a watch shows together with leases."""
    _first_event: int | None = None
    _states: list[int] = field(default_factory=list)

    @property
    def until(self) -> int | None:
        """The last moment that an API server's clock shows; None for dumps, which are of one moment unstated.

        Without any, that of the second latest lease counts: what a client invents in one lease does not move it.
        """
        known = self._reached if self._reached is not None else min(self._claimed.values(), default=None)
        return None if known is None else max(known, self._created)

    @property
    def ended(self) -> int | None:
        """The end of a history that nothing follows; None of any other, during which time passes, and of dumps."""
        return self.until if self.is_over else None

    @property
    def first_request(self) -> int | None:
        """When the first request in an audit log was answered; None if there is none."""
        return self._first_request or None

    @property
    def shown(self) -> int:
        """The latest time that it shows, if no API server's clock says when it ends; 0 if one does."""
        return self._undated if self._reached is not None else max(self._undated, *self._claimed.values(), 0)

    def extend_to(self, at: int) -> None:
        """Note that the input reaches this moment."""
        self._reached = at if self._reached is None else max(self._reached, at)

    def note_event_at(self, at: int) -> None:
        """Note that something happened at a time that an API server's clock shows."""
        self._first_event = at if self._first_event is None else min(self._first_event, at)
        self.extend_to(at)

    def note(self, seen: Observation, at: int | None, stamped: int = 0, *, is_resumed: bool = False) -> None:
        """Note an observation; `at` is None if it does not say when, `stamped` 0 if no API server says so.

        `is_resumed`: it follows what was not seen.
        """
        is_first = seen.act is Act.STORED and seen.input_kind is not InputKind.DUMP
        # States with which a watch or a record begins come in no order of time, so a later one does not date them.
        before = self._undated if is_first else 0
        self._undated = max(before, seen.latest_stamp or 0) if is_first or seen.at is None else 0
        if at is None:
            return
        self._note_creation(seen, at)
        if seen.act is not Act.STORED:
            self._first_event = at if self._first_event is None else min(self._first_event, at)
        elif len(self._states) < _MAX_STATES:
            self._states.append(at)
        if seen.act is not Act.STORED and seen.at is not None:
            self.extend_to(at)
        elif 0 < stamped <= self.latest:
            self._reach_stamp(seen, refine(stamped, at), is_resumed=is_resumed)
        elif self._reached is not None and at // SECOND == self._reached // SECOND:
            self.extend_to(at)
        elif seen.input_kind is not InputKind.DUMP:
            _keep_latest(self._claimed, seen, at)

    def _note_creation(self, seen: Observation, at: int) -> None:
        """Note when a lease was created that a watch shows, with the fraction of a state of that second."""
        shown = seen.object.metadata.creation_timestamp if seen.object is not None else None
        created = parse_stamp(shown) if seen.input_kind is InputKind.WATCH else None
        if created is None or created > self.latest:
            return
        self._created = max(self._created, at if at // SECOND == created // SECOND else created)

    def _reach_stamp(self, seen: Observation, at: int, *, is_resumed: bool) -> None:
        """Note that it reaches a stamp; after what was not seen, that of the second latest lease counts."""
        if not is_resumed:
            self.extend_to(at)
            return
        _keep_latest(self._resumed, seen, at)
        if len(self._resumed) > 1:
            self.extend_to(min(self._resumed.values()))

    def note_candidate(self, seen: Observation, ping_time: int | None) -> None:
        """Note a write to a LeaseCandidate that a watch shows, by its stamp: that of the second latest one counts.

        `ping_time` is when an API server asked it whether it is there, if that is what was written.
        """
        stamp = seen.latest_stamp or 0
        if seen.input_kind is not InputKind.WATCH or seen.act is Act.STORED or not 0 < stamp <= self.latest:
            return
        _keep_latest(self._of_candidates, seen, refine(stamp, ping_time or stamp))
        if len(self._of_candidates) > 1:
            self.extend_to(min(self._of_candidates.values()))

    def note_request(self, answered: int) -> int | None:
        """Note a request in an audit log; return since when the log has none for any lease, None if it went on.

        Then requests may be missing: nothing that a lease shows before is known to be so afterwards. One that was
        received before, and answered late, does not show that no other one was answered meanwhile.
        """
        hole_start = self._find_hole_start(answered)
        self._first_request = self._first_request or answered
        self._last_request = max(self._last_request, answered)
        self.logged_until = max(self.logged_until, answered)
        self._requests += 1
        if hole_start is not None:
            self.holes.append((hole_start, answered))
        return hole_start

    def note_log_end(self, at: int) -> int | None:
        """Note the last request in an audit log, about any object; return since when it has none for any lease.

        None if it went on, or was without one for as long before, while a lease was renewed as usual.
        """
        hole_start = self._find_hole_start(at)
        self.extend_to(at)
        self.logged_until = max(self.logged_until, at)
        if hole_start is None or any(until - since >= at - hole_start for since, until in self._bridged):
            return None
        self.holes.append((hole_start, at))
        return hole_start

    def _find_hole_start(self, at: int) -> int | None:
        """Return when a lease was last asked for before an instant, if that is unusually long ago; None if not."""
        number, silence = self._requests, at - self._last_request
        mean = (self._last_request - self._first_request) // max(1, number - 1)
        is_hole = number > 0 and silence > max(_MIN_HOLE, _HOLE_INTERVALS * mean)
        return self._last_request if is_hole else None

    def note_continuation(self, since: int) -> None:
        """Note that the log continued from then on: what was taken for holes after that is none."""
        while self.holes and self.holes[-1][0] >= since:
            self._bridged.append(self.holes.pop())

    def note_missing_write(self) -> None:
        """Note that the log lacks writes: what were not taken for holes may be some."""
        self.holes.extend(sorted(self._bridged))
        self._bridged.clear()

    def has_hole(self, start: int, end: int) -> bool:
        """Return whether an audit log has no answer about any lease in a part of a time."""
        return any(since < end and start < until for since, until in self.holes)

    def was_sparse(self, start: int, end: int) -> bool:
        """Return whether a part of a time was taken for a hole in an audit log, until a renewal showed otherwise."""
        return any(since < end and start < until for since, until in self._bridged)

    def list_quiet_times(self) -> list[tuple[int, int]]:
        """Return the latest times in which an audit log has no answer about any lease, whether or not it lacks some."""
        return sorted((*self.holes, *self._bridged))

    def find_start(self, ends: int) -> int:
        """Return where to begin to draw: with the first event, or the list before it; of dumps with the oldest state.

        The states at the start of a watch are older than the watch. If there are many, one was renewed just before it.
        """
        first = self._first_event
        if first is None:
            return min([ends, *self._states])
        return min(ends, max((at for at in self._states if at <= first), default=first))


def _keep_latest(times: dict[tuple[str, str], int], seen: Observation, at: int) -> None:
    """Keep the time of a lease, if it is one of the two latest."""
    times[seen.namespace, seen.name] = at
    if len(times) > 2:
        del times[min(times, key=times.__getitem__)]
