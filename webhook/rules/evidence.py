"""When API servers saw a lease renewed and taken, from their own stamps inside the review.

No clock of a client, and not ours, decides whether a lease has expired: the stamp of the last renewal (`seen_at`) and
the stamp of this very write (`written_at`) do. All instants are microseconds since 1970.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from webhook.api import micro_time
from webhook.api.managed_fields import Entry
from webhook.rules.instants import DAY, SECOND

LARGEST_TOLERANCE: Final = 2 * SECOND
"""How far the clocks of several API servers may differ before a verdict could."""


def tolerance_of(duration_seconds: int | None) -> int:
    """What several API servers' clocks may differ by: two seconds, for short leases a fifth of the duration."""
    if duration_seconds is None or duration_seconds <= 0:
        return LARGEST_TOLERANCE
    return min(LARGEST_TOLERANCE, duration_seconds * SECOND // 5)


def latest_renewal(entries: Iterable[Entry]) -> int | None:
    """The latest stamp among owners of spec.renewTime; an owner without a usable stamp is passed over."""
    return max(
        (stamp for entry in entries if entry.owns_renew_time and (stamp := entry.stamp) is not None), default=None
    )


def earliest_stamp(entries: Iterable[Entry], *, of_holder: bool) -> int | None:
    """The earliest stamp among owners of spec.holderIdentity, or of spec.renewTime."""
    owners = (entry for entry in entries if (entry.owns_holder_identity if of_holder else entry.owns_renew_time))
    return min((stamp for entry in owners if (stamp := entry.stamp) is not None), default=None)


def latest_stamp(entries: Iterable[Entry]) -> int | None:
    """The latest stamp of any entry."""
    return max((stamp for entry in entries if (stamp := entry.stamp) is not None), default=None)


class Expiry(Struct, frozen=True, gc=False):
    """Whether the old lease had run out when this write was made, and what that rests on.

    `from_stamps` is false where no stamp of an API server tells of the last renewal: then the holder's own renewTime
    stands in, and a denial must weaken to a warning.
    """

    expired: bool
    seen_at: int | None
    written_at: int
    duration_seconds: int | None
    from_stamps: bool


def expiry_of(
    *,
    held: bool,
    duration_seconds: int | None,
    renew_time: int | None,
    entries: Sequence[Entry],
    written_at: int | None,
    now: int,
) -> Expiry:
    """Judge the old lease.

    Args:
        held: whether anybody holds it.
        duration_seconds: its leaseDurationSeconds.
        renew_time: its renewTime.
        entries: its managedFields.
        written_at: the stamp of this write, or None where the write carries none.
        now: the shell's clock, used only where `written_at` or every stamp is missing.

    """
    tolerance = tolerance_of(duration_seconds)
    moment = now if written_at is None else written_at
    if not held or renew_time is None:
        return Expiry(
            expired=True, seen_at=None, written_at=moment, duration_seconds=duration_seconds, from_stamps=True
        )
    seen_at = _usable_renewal(entries, None if written_at is None else written_at + tolerance)
    lasts = (duration_seconds or 0) * SECOND
    if seen_at is not None and seen_at > renew_time + DAY + lasts:
        seen_at = None  # something else than renewals kept moving the stamp
    from_stamps = seen_at is not None
    believed = seen_at if seen_at is not None else min(renew_time, now)
    unreadable_past = renew_time < micro_time.FIRST_READABLE
    # Without a duration the lease counts as expired, stamps or not.
    expired = unreadable_past or duration_seconds is None or moment - believed + tolerance >= lasts
    return Expiry(
        expired=expired, seen_at=believed, written_at=moment, duration_seconds=duration_seconds, from_stamps=from_stamps
    )


def _usable_renewal(entries: Sequence[Entry], not_after: int | None) -> int | None:
    """`seen_at`; an entry later than this write is never honest and is dropped.

    Where nobody owns renewTime, as on objects older than field ownership, any owner of spec will do.
    """
    nobody_owns = not any(entry.owns_renew_time for entry in entries)
    owners = (entry for entry in entries if (entry.owns_spec if nobody_owns else entry.owns_renew_time))
    stamps = (stamp for entry in owners if (stamp := entry.stamp) is not None)
    return max((stamp for stamp in stamps if not_after is None or stamp <= not_after), default=None)
