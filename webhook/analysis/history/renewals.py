"""How often a lease is renewed and when it was not, and what an elector with such numbers survives.

The arithmetic is OpenShift's, the only published one. Source: openshift/library-go
`pkg/config/leaderelection/leaderelection.go`, whose 137/107/26 s it gives for an outage of 78 s. How long a client
tries to renew before it gives up (its deadline) cannot be seen from outside; that of client-go's defaults is assumed:
it begins with the first try after the last renewal, one retry period later (client-go `tools/leaderelection`, `renew`).
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.slow_tenures import (
    MIN_INTERVALS,
    SlowTenure,
    find_longest_usual,
    find_slow_tenure,
    is_steady,
)
from webhook.analysis.inputs.items import MILLISECOND, CountedRenewals
from webhook.kubernetes.times import SECOND

_KEPT: Final = 200
"""Intervals and silences that are kept: a stream may be of any length."""
_PAIRS: Final = 5
"""Pairs of intervals that must be alike."""
_MIN_TO_STOP: Final = 2
"""Intervals that must be known before a time without renewals, of several of them, is known to be none."""
_MISSED_AT_END: Final = 2
"""So many times the longest usual interval without a renewal, until an input ends, are no delay of the last one."""
_MIN_OTHERS: Final = 3
_MANY: Final = 10
"""Intervals that must be known before it can be said that they are irregular."""

_DEFAULT_RETRY: Final = 2.0
"""client-go's retry period in seconds, if no renewals were seen."""
DEFAULT_DURATION: Final = 15
"""Seconds that a lease lasts by the default of client-go, where the input does not say it."""
_KNOWN_DEADLINES: Final = {15: 10.0, 60: 40.0, 137: 107.0, 270: 240.0}
"""Deadlines by duration: client-go and controller-runtime; cert-manager; OpenShift, also on a single node."""


class Silence(Struct, frozen=True):
    """A time without a renewal, in microseconds since 1970: from the last one before it to the first one after it."""

    start: int
    end: int
    duration: int | None = None
    """Seconds that the lease lasted then, as far as is known."""
    tenure_number: int = 0
    """In which tenure it was, counted from 1: times do not show that where their writers' clocks date them."""

    doubt: int = 0
    """By how much longer it may have been: a write is stored between its request and its answer, or in a second."""
    is_claimed: bool = False
    """Only the clock of the writer dates the renewals around it."""
    longest_gap: tuple[int, int] | None = None
    """The longest time in it without a renewal by anyone, if others renewed in its holder's place; else None."""

    @property
    def length(self) -> int:
        """Microseconds."""
        return self.end - self.start

    @property
    def expired_at(self) -> int | None:
        """When the lease expired in it, in microseconds since 1970; None if it did not, or its duration is not known.

        A lease lives on while anyone renews it.
        """
        start, end = self.longest_gap or (self.start, self.end)
        expiry = (self.duration or 0) * SECOND
        return start + expiry if expiry and end - start >= expiry else None

    @property
    def last_quarter_start(self) -> int:
        """Start of its last quarter, in microseconds since 1970."""
        return self.end - self.length // 4

    @property
    def longest(self) -> int:
        """Microseconds, at most."""
        return self.length + self.doubt


class TwoRhythms(Struct, frozen=True):
    """A time in which intervals alternated, in microseconds: those of two electors that each renew at a steady rate."""

    start: int
    end: int
    intervals: tuple[int, int]
    """The last two, the longer one first."""
    tenure_number: int
    """In which tenure they ended, counted from 1."""


class FormerRhythm(Struct, frozen=True):
    """How often a holder before the present one renewed: the median of its latest intervals, in microseconds."""

    tenure_number: int
    """Which tenure it was, counted from 1."""
    usual: int


class Renewals(Struct):
    """The renewals of one lease, as they go by."""

    count: int = 0
    first: int | None = None
    last: int | None = None
    intervals: deque[int] = field(default_factory=partial(deque, (), _KEPT))
    latest: deque[int] = field(default_factory=partial(deque, (), 2 * _PAIRS))
    of_holder: deque[int] = field(default_factory=partial(deque, (), 2 * _PAIRS))
    """The latest intervals of the present holder alone: another program may renew in another rhythm."""
    former: deque[FormerRhythm] = field(default_factory=partial(deque, (), _KEPT))
    silences: deque[Silence] = field(default_factory=partial(deque, (), _KEPT))
    lost: deque[Silence] = field(default_factory=partial(deque, (), _KEPT))
    """Before another holder took it because it had expired."""
    free: deque[Silence] = field(default_factory=partial(deque, (), _KEPT))
    """Before another holder took it for another reason, such as a release: there was nothing to renew."""
    unseen: tuple[Silence, ...] = ()
    """Times in which the input does not show whether it was renewed, the latest."""
    longest: int = 0
    """The longest time without a renewal by a holder that renewed again, in microseconds."""
    tenure_count: int = 0
    """How many there were."""
    has_several_clocks: bool = False
    """One was dated before the one that it followed: their writers' clocks, which date them, differ."""
    is_last_claimed: bool = False
    """Only the clock of its writer dates the last one."""
    two_rhythms: TwoRhythms | None = None
    """The latest time in which its intervals alternated; None if they never did."""
    _early: list[Silence] = field(default_factory=list)
    _usual: int | None = None
    _slow: deque[SlowTenure] = field(default_factory=partial(deque, (), _KEPT))
    """Former holders that renewed more rarely than the others."""
    _holder_since: int = 0
    _usual_count: int = 0
    """The number of intervals of the present holder that were no silences."""
    _silence_count: int = 0
    """The number of those that were."""

    def add(
        self,
        at: int,
        duration: int | None = None,
        doubt: int = 0,
        *,
        is_claimed: bool = False,
        longest_gap: tuple[int, int] | None = None,
    ) -> int | None:
        """Take in one renewal after another; return the microseconds of a silence before it.

        `duration` is how many seconds the lease lasted so far; `doubt` and `longest_gap` are of a silence before it.
        `is_claimed`: its writer's clock alone dates it.
        """
        self.count += 1
        if self.last is None or is_claimed != self.is_last_claimed:
            # Two clocks say nothing of the time between.
            self.restart(at, is_claimed=is_claimed)
            return None
        if at < self.last:
            # Either the clock was set back or another clock dated it, so the difference is not an interval.
            self.has_several_clocks = self.has_several_clocks or at < self.last - SECOND
            return None
        gap, longest = at - self.last, self.longest_usual
        self.longest = max(self.longest, gap if longest_gap is None else longest_gap[1] - longest_gap[0])
        self.latest.append(gap)
        self.of_holder.append(gap)
        is_silence = longest is not None and gap > longest
        if longest is None or is_silence:
            silence = Silence(self.last, at, duration, self.tenure_count, doubt, is_claimed, longest_gap)
            (self.silences if is_silence else self._early).append(silence)
        if is_silence:
            self._silence_count += 1
        else:
            self._usual_count += 1
            self.intervals.append(gap)
            self._usual = None
        self._take_early()
        self._relearn()
        if not is_claimed:
            self._note_two_rhythms(self.last, at)
        self.restart(at)
        return gap if is_silence else None

    def _note_two_rhythms(self, before: int, at: int) -> None:
        """Note if two electors seem to renew the lease until this renewal, which followed the one at `before`."""
        # Most leases are renewed at a steady rate, which two intervals show.
        shorter, longer = sorted((self.latest[-1], self.latest[-2])) if len(self.latest) > 1 else (1, 1)
        if 3 * shorter >= 2 * longer or not self.is_doubled:
            return
        known = self.two_rhythms
        start = known.start if known is not None and known.end == before else at - sum(self.latest) + self.latest[0]
        self.two_rhythms = TwoRhythms(start, at, (longer, shorter), self.tenure_count)

    def _take_early(self) -> None:
        """Take in the renewals that were read before it was known what is usual, once it is."""
        longest = self.longest_usual if self._early else None
        if longest is not None:
            self.silences.extend(one for one in self._early if one.length > longest)
            self._early.clear()

    def _relearn(self) -> None:
        """Take silences for the usual intervals once the latest of them are more than those, and alike.

        A few short intervals come first if a conflict had a renewal repeated, or two processes renew one lease.
        """
        number = len(self.intervals) + 1
        if number <= MIN_INTERVALS or len(self.silences) < number:
            return
        latest = [self.silences[place].length for place in range(-number, 0)]
        if 5 * min(latest) >= 4 * max(latest):
            self.intervals.extend(latest)
            for _ in latest:
                self.silences.pop()
            self._usual = None

    def resume(self, counted: CountedRenewals, at: int) -> None:
        """Take in a stretch of renewals, but for the last one, which was made at `at`."""
        latest, number = counted.latest, sum(counted.histogram.values())
        since = at - sum(latest)
        begins = since - sum(MILLISECOND * length * times for length, times in counted.histogram.items())
        if self.last is not None and begins < self.last - SECOND * (1 + number):
            # Another record has shown a part of it.
            self.restart(at - latest[-1])
            return
        for length, times in sorted(counted.histogram.items()):
            kept = -(-times * _KEPT // max(_KEPT, number))
            self.intervals.extend([MILLISECOND * length] * kept)
            self.longest = max(self.longest, MILLISECOND * length)
        self.count += number
        self._usual = None
        self.last = since
        for length in latest[:-1]:
            since += length
            self.add(since, is_claimed=self.is_last_claimed)

    def miss(self, start: int, end: int) -> None:
        """Note a time of which the input shows nothing."""
        self.unseen = (*self.unseen, Silence(start, end))[-_KEPT:]

    def restart(self, at: int, *, is_claimed: bool | None = None) -> None:
        """Restart at a renewal, without counting the time before it as an interval.

        `is_claimed`: its writer's clock alone dates it; None if nothing does.
        """
        if is_claimed is not None:
            self.is_last_claimed = is_claimed
        self.first = at if self.first is None else self.first
        self.last = at if self.last is None else max(at, self.last)

    def set_back(self, at: int) -> None:
        """Restart at a renewal that its writer's clock dates, even before the one that it followed."""
        self.has_several_clocks = self.has_several_clocks or (self.last is not None and at < self.last - SECOND)
        self.last = at

    def forget(self) -> None:
        """Forget the last renewal: what shows it may be wrong."""
        self.last = None

    def restart_with_holder(self, at: int, *, has_expired: bool, is_claimed: bool | None = None) -> None:
        """Restart at the first renewal of a new holder; `is_claimed` is as in `restart`."""
        if (slow := self._find_slow_holder()) is not None:
            self._slow.append(slow)
        if (usual := self.usual_of_holder) is not None and is_steady(self.of_holder, usual):
            self.former.append(FormerRhythm(self.tenure_count, usual))
        self.tenure_count += 1
        self.of_holder.clear()
        self._holder_since, self._usual_count, self._silence_count = at, 0, 0
        if self.last is not None and self.last < at:
            (self.lost if has_expired else self.free).append(Silence(self.last, at))
        self.restart(at, is_claimed=is_claimed)

    def note_gap(self, at: int, *, is_claimed: bool | None) -> None:
        """Note the time before the first renewal by another process of the same holder, which says nothing of rhythm.

        `is_claimed`: its writer's clock alone dates it.
        """
        if self.last is not None and is_claimed == self.is_last_claimed:
            self.longest = max(self.longest, at - self.last)

    def rejoin_holder(self, since: int) -> None:
        """Take back that a new holder began at a time: the previous holder had not stopped."""
        self.tenure_count -= 1
        self.former = deque((one for one in self.former if one.tenure_number < self.tenure_count), _KEPT)
        for kept in (self.silences, self._early):
            found = [replace(one, tenure_number=min(one.tenure_number, self.tenure_count)) for one in kept]
            kept.clear()
            kept.extend(found)
        if self.free and self.free[-1].end == since:
            self.free.pop()

    @property
    def usual(self) -> int | None:
        """The median of the latest intervals in microseconds; None as long as there are few."""
        if self._usual is None and len(self.intervals) >= MIN_INTERVALS:
            self._usual = sorted(self.intervals)[len(self.intervals) // 2]
        return self._usual

    @property
    def usual_of_holder(self) -> int | None:
        """The median of the latest intervals of the present holder, in microseconds; None as long as there are few."""
        found = sorted(self.of_holder)
        return found[len(found) // 2] if len(found) >= MIN_INTERVALS else None

    def _find_slow_holder(self) -> SlowTenure | None:
        """Return the present tenure if its holder renews more rarely than those before; else None."""
        longest, last = self.longest_usual, self.last
        if longest is None or last is None or self._silence_count <= 3 * self._usual_count:
            return None
        return find_slow_tenure(self.tenure_count, (self._holder_since, last), self.of_holder, longest)

    def _list_slow_within(self, start: int, end: int) -> Sequence[SlowTenure]:
        """Return the tenures between two instants whose holders renewed more rarely than the others."""
        present = self._find_slow_holder()
        found = self._slow if present is None else (*self._slow, present)
        return [one for one in found if one.start < end and (one is present or start < one.end)]

    def _list_silences(self, start: int, end: int) -> Sequence[Silence]:
        """Return the silences that lie at least partly between two instants, without what is the rhythm of a holder."""
        within, slow = _list_silences_within(self.silences, start, end), self._list_slow_within(start, end)
        return [one for one in within if not any(_is_explained(one, tenure) for tenure in slow)]

    @property
    def has_holder_of_other_rhythm(self) -> bool:
        """True if the present holder renews much more often, or rarely, than most renewals were made."""
        own, usual = self.usual_of_holder, self.usual
        return own is not None and usual is not None and not 2 * usual < 3 * own < 5 * usual

    @property
    def longest_usual(self) -> int | None:
        """Microseconds after which a renewal is missed; None if it is not known what is usual."""
        return None if self.usual is None else find_longest_usual(self.usual)

    @property
    def longest_known(self) -> int | None:
        """Microseconds after which a renewal is missed, of a lease of which few are known, too; None of one or none."""
        if self.usual is not None or len(self.intervals) < _MIN_TO_STOP:
            return self.longest_usual
        return 2 * max(self.intervals)

    def find_spread_beside(self, gap: Silence) -> tuple[int, int] | None:
        """Return the shortest and the longest of the other intervals if these are so irregular that a gap is like them.

        None if it stands out: a fifth of them or more are at least half as long, and a fifth are shorter than a third.
        """
        beside = [*self.intervals, *(one.length for one in self.silences if one.start != gap.start)]
        long = sum(1 for one in beside if 2 * one >= gap.length)
        short = sum(1 for one in beside if 3 * one <= gap.length)
        if len(beside) < _MANY or min(long, short) * 5 < len(beside):
            return None
        return min(beside), max(beside)

    @property
    def early_expiries(self) -> Sequence[Silence]:
        """The silences in which a lease expired, of those before it is known what is usual."""
        return [one for one in self._early if one.duration and one.length >= one.duration * SECOND]

    def measure_silence_within(self, start: int, end: int) -> int:
        """Return how much of the longest silence lies between two instants, in microseconds."""
        within = (*self._list_silences(start, end), *_list_silences_within(self.lost, start, end))
        return _measure_longest(within, start, end)

    def find_longest_silence(self, start: int, end: int) -> int:
        """Return the length of the longest silence that lies at least partly between two instants, in microseconds."""
        within = (*self._list_silences(start, end), *_list_silences_within(self.lost, start, end))
        return max((one.length for one in within), default=0)

    def has_renewals_around(self, start: int, end: int) -> bool:
        """Return whether the lease was renewed before one instant and after another one."""
        return self.first is not None and self.last is not None and self.first < start and end < self.last

    def was_renewed_between(self, start: int, end: int) -> bool:
        """Return whether it was surely renewed after an instant, and at another one at the latest.

        A renewal after that, by a holder that was silent until then, says nothing of the time between.
        """
        last, longest = self.last, self.longest_usual
        if last is None or last <= start:
            return False
        if last <= end:
            return True
        apart = (self.silences, self.lost, self.free, self._early, self.unseen)
        is_covered = any(one.start <= start and end < one.end for kept in apart for one in kept)
        return longest is not None and longest <= end - start and not is_covered

    def was_late(self, start: int, end: int) -> bool | None:
        """Return whether the lease was late between two instants, rather than renewed as usual.

        None if it cannot say: it had not been renewed before, or too rarely for a renewal to be missed in that time, or
        no one held it, or the input does not show a part of that time.
        """
        usual, first, last = self.usual, self.first, self.last
        if usual is None:
            return self._has_stopped(start, end) or None
        slow = self._list_slow_within(start, end)
        usual = max([usual, *(one.pace for one in slow if one.is_pace_known)])
        if first is None or last is None or last < start - 3 * usual - SECOND or 2 * usual > end - start:
            return None
        if first >= start:
            # That one began to be renewed soon, and went on, shows that the API server was there; its absence nothing.
            is_there = first <= start + (end - start) // 4 and last >= end - 2 * usual
            return False if is_there and self.measure_silence_within(first, end) < (end - start) // 4 else None
        if 2 * _measure_longest(_list_silences_within(self.free, start, end), start, end) >= end - start:
            return None
        if any(one.start < end and start < one.end for one in self.unseen):
            return None
        stopped = end - max(start, last) if last < end else 0
        is_late = max(self.measure_silence_within(start, end), stopped - usual) * 2 >= end - start
        return is_late or (False if all(one.is_pace_known for one in slow) else None)

    def find_sure_pace(self, start: int, end: int) -> int | None:
        """Return how long the lease went without a renewal between two instants at most, in microseconds.

        None unless it is sure that it was renewed meanwhile: it was renewed before, none of its renewals was missed,
        and none of its usual intervals is as long as that time. A writer's own clock shows no time of a renewal.
        """
        first, last, longest = self.first, self.last, self._longest_interval
        if longest is None or first is None or last is None or self.is_last_claimed:
            return None
        if first >= start or longest >= end - start or last < max(start, end - longest):
            return None
        apart = (self.silences, self.lost, self.free, self._early, self.unseen)
        is_missed = any(one.start < end and start < one.end for kept in apart for one in kept)
        return None if is_missed else longest

    def has_missed_since(self, since: int) -> bool:
        """Return whether a renewal was missed after an instant, or the input does not show whether one was."""
        kept = (self.silences, self.lost, self.unseen)
        return any(one.end > since for several in kept for one in several)

    @property
    def _longest_interval(self) -> int | None:
        """The longest interval that was no silence, in microseconds; None if it is not known what is usual."""
        # Those that are no longer kept were shorter than what is a silence.
        return max(self.intervals) if self.usual and len(self.intervals) < _KEPT else self.longest_usual

    def _has_stopped(self, start: int, end: int) -> bool:
        """Return whether a lease of which few renewals are known had one just before, and none between two instants."""
        longest, last = self.longest_known, self.last
        if longest is None or last is None or any(one.start < end and start < one.end for one in self.unseen):
            return False
        return start - longest <= last < end and 2 * longest <= end - max(start, last)

    def has_stopped_by(self, end: int, until: int) -> bool:
        """Return whether its last renewal came before an instant, and several were missing when the input ended."""
        longest, last, slow = self.longest_known, self.last, self._find_slow_holder()
        if longest is None or last is None or any(one.end > last for one in self.unseen):
            return False
        longest = longest if slow is None else slow.longest_usual
        return last < end and until - last >= _MISSED_AT_END * longest

    @property
    def is_doubled(self) -> bool:
        """Whether the latest intervals alternate, as those of two processes that each renew at a steady rate do."""
        latest = list(self.latest)
        if len(latest) < 2 * _PAIRS:
            return False
        pairs = list(zip(latest[::2], latest[1::2], strict=True))
        sums = sorted(sum(pair) for pair in pairs)
        is_steady = sums[-1] - sums[0] < sums[0] // 4
        return is_steady and (
            all(3 * first < 2 * second for first, second in pairs)
            or all(3 * second < 2 * first for first, second in pairs)
        )


def _measure_longest(within: Iterable[Silence], start: int, end: int) -> int:
    return max([0, *(min(one.end, end) - max(one.start, start) for one in within)])


def _is_explained(silence: Silence, tenure: SlowTenure) -> bool:
    return silence.tenure_number == tenure.number and tenure.explains(silence.length)


def _list_silences_within(silences: Sequence[Silence], start: int, end: int) -> Iterator[Silence]:
    # Silences are in order, and each lease of a cluster is asked about every late renewal of the others.
    first = bisect_right(silences, start, key=lambda one: one.end)
    after = bisect_left(silences, end, key=lambda one: one.start)
    return islice(silences, first, after)


class OtherLeases(Struct, frozen=True):
    """The other leases while one was silent; `is_sample` if only some of them were compared.

    `node` is the one from which all that were late are known to be held, as the one that was silent is; else "".
    `paused` of those that were on time missed renewals first, for `silent_for` microseconds at most.
    """

    late: int = 0
    on_time: int = 0
    is_sample: bool = False
    node: str = ""
    paused: int = 0
    silent_for: int = 0
    named_paused: tuple[tuple[str, str], ...] = ()
    """A few of these, by namespace and name."""
    repeated: int = 0
    """How many were late without another holder: one process that ends leaves all of its leases."""
    named_late: tuple[tuple[str, str], ...] = ()
    """A few of those that were late, and of those that were on time, by namespace and name."""
    named_on_time: tuple[tuple[str, str], ...] = ()
    stopped: int = 0
    """How many of those that were late were not renewed again."""
    named_stopped: tuple[tuple[str, str], ...] = ()
    """A few of these, and of those that were renewed again."""
    named_back: tuple[tuple[str, str], ...] = ()
    back_alike: int = 0
    """The number of these in the same namespace that were held under the same text meanwhile; they are named first."""
    held_alike: int = 0
    """How many of those that were on time are of the same namespace, and were held under the same text meanwhile."""
    has_own_node: bool = False
    """One of those that were on time is the lease of the node from which the one that was silent was held."""
    due_once: int = 0
    """How many were due once only, so that none of these counts tells of them, and were surely renewed meanwhile."""
    longest_pace: int = 0
    """The longest time between two renewals of one of these, in microseconds, at most."""
    hindered: int = 0
    """How many were neither late nor on time: as a log shows, a write of theirs failed, or took for seconds."""

    @property
    def is_known(self) -> bool:
        """Whether any other lease can serve as a comparison."""
        return self.late + self.on_time + self.hindered > 0

    @property
    def most_were_late(self) -> bool:
        """Whether most were late, or hindered: then the cause is what they share, such as the API server."""
        return self.late - self.repeated + self.hindered > self.on_time

    @property
    def most_paused(self) -> bool:
        """Whether most leases that were on time had missed renewals first: then what all share may have been away."""
        return 2 * self.paused > self.on_time

    @property
    def are_enough(self) -> bool:
        """Whether they are too many, and too far apart, for the failure of a single node to explain it."""
        number = self.late - self.repeated + self.on_time + self.hindered
        return number >= _MIN_OTHERS and not self.node


class Timing(Struct, frozen=True, gc=False):
    """Seconds throughout. `retry` was seen, or is client-go's default if `is_seen` is false; `deadline` is assumed."""

    duration: float
    retry: float
    deadline: float
    is_seen: bool

    @property
    def survives(self) -> float:
        """Seconds that an API server may be away, from just after a renewal, without costing the leader its lease."""
        last_try = self.deadline // self.retry * self.retry
        return max(0.0, last_try - self.retry)

    @property
    def missed_renewals(self) -> int:
        """How many renewals in a row may fail before the lease has expired."""
        return max(0, int(self.duration / self.retry) - 1)


def estimate_timing(duration: int, interval: float | None) -> Timing:
    """Return what a lease survives; `duration`, above 0, and `interval` (None if not seen) are in seconds."""
    retry = _DEFAULT_RETRY if interval is None else _estimate_period(max(interval, 0.05))
    deadline = _KNOWN_DEADLINES.get(duration, duration * 2 / 3)
    return Timing(float(duration), min(retry, float(duration)), deadline, interval is not None)


def _estimate_period(interval: float) -> float:
    """Return the retry period behind such intervals, each of which includes the time of a request."""
    half_seconds = round(interval * 2) / 2
    return half_seconds if half_seconds >= 1 and abs(interval - half_seconds) <= 0.15 else interval


def estimate_deadline(duration: int | None) -> int:
    """Return the microseconds after the last renewal before which no client stops; `duration` is in seconds."""
    known = duration if duration and duration > 1 else DEFAULT_DURATION
    return int(estimate_timing(known, None).deadline * SECOND)


def estimate_last_work(duration: int | None) -> int:
    """Return the microseconds after the last renewal for which most clients lead at most."""
    return estimate_deadline(duration) + int(_DEFAULT_RETRY * SECOND)
