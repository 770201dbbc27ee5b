"""How a lease was taken while it still named its holder: after it expired, before, or not known.

In: the tenure before, and the write. Out: a frozen value.
"""

from collections.abc import Sequence

from msgspec import Struct

from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.status import date_renewal, has_expired, is_release, was_live
from webhook.analysis.history.write import Dating, Write
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import SECOND


def classify_taking(
    kept_until: int | None, duration: int | None, at: int, *, less: int, more: int, is_dated: bool
) -> Handover:
    """Classify a write at `at` that replaced a holder whose last renewal was at `kept_until`.

    `less` and `more` are by how much less or more time may have passed in between: clocks differ, stamps have whole
    seconds, and a write is stored at some time between its request and the answer.

    | the write is dated | the lease, by the API servers' clocks | it was |
    |---|---|---|
    | no | | UNKNOWN: it may have been written long after `at` |
    | yes | without a duration | UNKNOWN: nothing says until when it was held |
    | yes | live or not, within those limits | UNKNOWN |
    | yes | its whole duration had passed | EXPIRED |
    | yes | live | STOLEN |
    | yes | neither: it ended within the tolerance for clocks | UNKNOWN |
    """
    if not is_dated or duration is None:
        return Handover.UNKNOWN
    was_live_before, was_live_after = (was_live(kept_until, duration, at + shift) for shift in (-less, more))
    if was_live_before != was_live_after:
        return Handover.UNKNOWN
    if has_expired(kept_until, duration, at - less):
        return Handover.EXPIRED
    return Handover.STOLEN if was_live(kept_until, duration, at) else Handover.UNKNOWN


class Taking(Struct, frozen=True):
    """How a lease was taken from a holder that was still named; instants are microseconds since 1970.

    `kept_until` is the last renewal, whoever made it, and `duration` the seconds for which the lease was kept. `ended`
    is when the tenure ended. `is_close`: by clocks that may differ, it may have expired.
    """

    how: Handover
    kept_until: int | None
    duration: int | None
    ended: int
    is_close: bool

    @property
    def has_expired(self) -> bool:
        """Whether the lease had expired before."""
        return self.how in {Handover.EXPIRED, Handover.PREFERRED}


def find_taking(tenure: Tenure | None, old: LeaseSpec, known: Sequence[Entry], write: Write, at: int) -> Taking:
    """Find how a write at `at` took the lease from the latest tenure, or from the holder of a state without one."""
    last = tenure.last_renewal if tenure else date_renewal(old, known)
    kept = tenure.kept_until if tenure else last
    is_held = tenure is not None and tenure.until is None
    duration = tenure.duration if tenure and is_held else old.lease_duration_seconds
    how = classify_write(tenure, kept, duration, write)
    if how is Handover.STOLEN and is_release(old):
        # Who is written into a lease that stays released does not hold it.
        how = Handover.UNKNOWN
    is_asked = tenure is not None and tenure.step_down.asked is not None and not tenure.step_down.is_ignored
    if how is Handover.EXPIRED and is_held and is_asked:
        how = Handover.PREFERRED
    is_close = how is Handover.UNKNOWN and write.is_dated and not write.skew and duration is not None
    is_close = is_close and not _is_renewal_unknown(tenure, kept, write)
    is_end_known = how in {Handover.EXPIRED, Handover.PREFERRED} or is_close
    ended = last if is_end_known and last is not None else at
    return Taking(how=how, kept_until=kept, duration=duration, ended=ended, is_close=is_close)


def _is_renewal_unknown(tenure: Tenure | None, kept_until: int | None, write: Write) -> bool:
    """Return whether the last renewal and a write after it are dated by clocks that cannot be compared, or by none."""
    is_undated = tenure is not None and _is_undated_renewal(tenure, write)
    return is_undated or _is_dated_before(tenure, kept_until, write)


def _is_undated_renewal(tenure: Tenure, write: Write) -> bool:
    """Return whether nothing dates the last renewal, or only its writer's clock, and an API server's clock a write."""
    last = tenure.last_renewal_write or tenure.beginning.write
    is_inherited_claimed = tenure.inherited is not None and tenure.last_extension.is_claimed
    is_compared = last.is_dated and not (last.is_claimed or is_inherited_claimed)
    return tenure.is_last_unseen or (not is_compared and write.is_dated_by_a_server)


def _is_dated_before(tenure: Tenure | None, kept_until: int | None, write: Write) -> bool:
    """Return whether a write is dated before the last renewal, after which it was stored: by clocks that differ.

    Nothing says then by how much they differ: that others differ by some time at least does not bound it.
    """
    first, _ = _bound_keeping(tenure, kept_until)
    if tenure is not None and tenure.last_extension.at == kept_until:
        first += tenure.last_extension.skew
    return write.dating is Dating.STAMP and write.latest is not None and write.latest - write.skew + SECOND < first


def _bound_keeping(tenure: Tenure | None, kept_until: int | None) -> tuple[int, int]:
    """Return between which moments the last renewal was stored."""
    at = kept_until or 0
    if tenure is not None and tenure.last_extension.at == kept_until:
        return tenure.last_extension.earliest, tenure.last_extension.latest or at
    # The stamp of a renewal that only a state shows has whole seconds.
    return at // SECOND * SECOND, at // SECOND * SECOND + SECOND


def classify_write(tenure: Tenure | None, kept_until: int | None, duration: int | None, write: Write) -> Handover:
    """Classify a write: both it and the renewal before were stored at some time in an interval."""
    is_dated = write.is_dated_by_a_server and not _is_renewal_unknown(tenure, kept_until, write)
    at, skew = kept_until or 0, 0
    first, last = _bound_keeping(tenure, kept_until)
    if tenure is not None and tenure.last_extension.at == kept_until:
        skew = tenure.last_extension.skew
    less = max(0, write.at - write.earliest + last - at - skew)
    more = max(0, (write.latest or write.at) - write.at + at - first - skew)
    how = classify_taking(kept_until, duration, write.at, less=less, more=more, is_dated=is_dated)
    others = (
        classify_taking(kept_until, seconds, write.at, less=less, more=more, is_dated=is_dated)
        for seconds in (() if tenure is None else tenure.held_duration.others)
    )
    return how if all(how is other for other in others) else Handover.UNKNOWN
