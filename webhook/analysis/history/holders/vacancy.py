"""For how long no one led: from the end of one tenure to the beginning of the next one.

In: how a tenure ended and the next one began, and what dates the two. Out: how long no one led, at most. All times are
microseconds.
"""

from typing import Final

from msgspec import Struct

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.write import Dating, Write
from webhook.kubernetes.times import SECOND

_TAKEN_LIVE: Final = frozenset({Handover.STOLEN, Handover.REPLACED})
"""Ways in which a holder follows another one that may still lead."""


class Vacancy(Struct):
    """The time in which no one leads; `how` and `since` are of the latest one, None while a holder is known."""

    leaderless: int = 0
    """How long no one led, in all."""
    since: int | None = None
    how: Handover | None = None
    """How the tenure before ended."""

    def begin(self, since: int | None, how: Handover) -> None:
        """Begin as a tenure ends; `since` is None if it is not known when that was."""
        self.since, self.how = since, how

    def forget_since(self) -> None:
        """Forget since when no one led: another process may have led, or the holder had stopped before."""
        self.since = None

    def begin_earlier(self, since: int) -> None:
        """Begin it earlier, if that is known: who was written in need not have renewed the lease."""
        self.since = None if self.since is None else min(self.since, since)

    def fill(self, at: int, how: Handover, write: Write, held: Tenure | None) -> int | None:
        """End as a holder begins at a time; return how long no one led, None if that is not known.

        `held` is the tenure before, None if there was none.
        """
        since, self.since, self.how = self.since, None, None
        if since is None or how is Handover.SEEN or _is_by_other_clock(held, since, write):
            return None
        unled = 0 if how in _TAKEN_LIVE else bound_time_between(since, at, write, held)
        if not write.is_claimed:
            # Who was robbed of the lease may have stopped before, or led on; so may one that no one renewed.
            last = held.last_renewal if held else since
            self.leaderless += bound_time_between(last, at, write, held) if how is Handover.DELETED else unled
        # Of a holder that was not seen to take or renew it, what was seen first need not be its renewal.
        is_unseen = held is not None and (
            held.has_unseen_renewals or (held.beginning.is_unseen and held.last_renewal_write is None)
        )
        return unled if not is_unseen and _is_length_known(since, at, how, write) else None

    def extend(self, length: int) -> None:
        """Add to how long no one led."""
        self.leaderless += length


def _is_by_other_clock(held: Tenure | None, since: int, write: Write) -> bool:
    """Return whether a writer's own clock dates the end of a tenure, and an API server's the write that came after."""
    if held is None or write.is_claimed or not write.is_dated:
        return False
    known = (held.ended, held.last_renewal_write, held.last_extension, held.beginning.write)
    ends = [one for one in known if one is not None and one.at == since]
    # What follows such a write, and nothing dates, has its time.
    follows = held.last_extension.is_claimed
    return bool(ends) and all(one.is_claimed or (follows and one.dating is Dating.ORDER) for one in ends)


def bound_time_between(last: int, since: int, write: Write, held: Tenure | None) -> int:
    """Return for how long, at most, there was nothing between the end of a tenure at `last` and a write at `since`.

    Between two writes that a log dates, it is the time between their answers. Stamps have whole seconds, a slow request
    is stored at some time before its answer, and clocks of API servers differ.
    """
    if not write.is_dated:
        return max(0, since - last)
    before = _find_write(held, last)
    is_renewal = held is None or held.last_renewal_write is not None or held.beginning.renew_time is None
    # When it was renewed last is of no interest where a log shows how it ended.
    is_end = held is not None and before is not None and before is held.ended
    if (is_renewal or is_end) and before is not None and before.is_exact and write.is_exact:
        return max(0, since - last)
    tolerance = MAX_TOLERANCE if write.skew else 0
    return max(0, _bound_latest(write, since) - _bound_earliest(before, last, write, held), since - last + tolerance)


def _find_write(held: Tenure | None, at: int) -> Write | None:
    """Return the write of a tenure that an API server dates to a time."""
    known = (held.ended, held.last_renewal_write, held.last_extension, held.beginning.write) if held else ()
    return next((one for one in known if one is not None and one.at == at and one.is_dated_by_a_server), None)


def _bound_latest(write: Write, since: int) -> int:
    if write.latest is not None and write.at == since:
        return write.latest
    return since if write.is_logged else (since // SECOND + 1) * SECOND


def _bound_earliest(before: Write | None, last: int, write: Write, held: Tenure | None) -> int:
    # A log without objects has only times of answers; what a read showed has a stamp, by whole seconds.
    is_by_stamp = not write.is_logged or (held is not None and not held.is_stand_in and held.last_renewal_write is None)
    earliest = last // SECOND * SECOND if is_by_stamp else last
    earliest = earliest if before is None else before.earliest
    if held is not None and held.last_renewal_write is None and held.beginning.renew_time is not None:
        # Of a state that was there only its stamp says when it was renewed, if that.
        return min(last // SECOND * SECOND, earliest, max(held.beginning.renew_time, earliest - MAX_TOLERANCE))
    return earliest


def _is_length_known(since: int, at: int, how: Handover, write: Write) -> bool:
    if how in _TAKEN_LIVE or not write.is_dated or write.is_claimed:
        return False
    return how is not Handover.UNKNOWN or not (write.skew or since == at)
