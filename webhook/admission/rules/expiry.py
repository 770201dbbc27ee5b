"""Dates renewals and takeovers by the stamps of the API servers themselves, inside the review.

No clock of a client, and not ours, decides whether a lease has expired: the stamps of the last renewal (`last_renewal`)
and of this very write (`written_at`) do. A client may send any managedFields, and invented entries are kept, so
only one thing in a list can be trusted: **a field that a write sets has exactly one owner afterwards, and the
owner is stamped now**. There are two exceptions. The fold into `ancient-changes` takes the time of the last entry that
is folded in, which may be invented. And if the list that a client sent makes the field manager fail, Kubernetes 1.37
keeps the stored list (UpdateNoErrors in `pkg/util/managedfields/internal/fieldmanager.go` of apimachinery), in which no
entry is of this write. All instants are microseconds since 1970.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from webhook.kubernetes.managed_fields import RENEW_TIME, Entry
from webhook.kubernetes.times import SECOND

EXPIRY_FIELDS: Final = (
    "spec.holderIdentity",
    "spec.leaseDurationSeconds",
    "spec.renewTime",
    "metadata.managedFields",
)
"""What says whether a lease is live: held, and renewed less than one duration ago."""

MAX_TOLERANCE: Final = 2 * SECOND
"""How far the clocks of several API servers may differ without changing a verdict."""

BOUND: Final = 60 * SECOND
"""How far ahead of the moment of a write a stamp may be and still count: clocks of API servers differ and step."""


def find_tolerance(duration_seconds: int | None) -> int:
    """Return what several API servers' clocks may differ by: two seconds, for short leases a fifth of the duration."""
    if duration_seconds is None or not 0 < duration_seconds < 10:
        return MAX_TOLERANCE
    return duration_seconds * SECOND // 5


def truncate_to_seconds(now: int) -> int:
    """Return a time of our clock without its fraction of a second: a stamp has none either."""
    return now - now % SECOND


def date_last_renewal(entries: Iterable[Entry]) -> int | None:
    """Return when the last renewal was seen: the earliest stamp among owners of spec.renewTime.

    A renewal leaves one owner. A manager that owns it later too, by an apply of the same value, did not renew.
    """
    seen = None
    for entry in entries:
        if entry.owns_renew_time and (stamp := entry.stamp) is not None and (seen is None or stamp < seen):
            seen = stamp
    return seen


def date_write_by_writer(entries: Iterable[Entry], now: int) -> int:
    """Return when a write was made: the latest stamp of its writer's entries, else `now` in whole seconds."""
    stamp = find_latest_stamp_of_writer(entries)
    return truncate_to_seconds(now) if stamp is None else stamp


def find_latest_stamp_of_writer(entries: Iterable[Entry]) -> int | None:
    """Return the latest stamp of an entry that is the writer's and not a fold, whose time a client can choose."""
    latest = None
    for entry in entries:
        if not entry.is_fold and (stamp := entry.stamp) is not None and (latest is None or stamp > latest):
            latest = stamp
    return latest


def date_write_by_field(entries: Iterable[Entry], before: Sequence[Entry], field: str, now: int) -> int:
    """Return when a write that set `field` was made: the stamp of the field's one owner in object.

    `now`, in whole seconds, is used if the field has no owner or several, if the owner has no stamp, and if it is
    `ancient-changes`, whose time a client can choose. If the owner had the field with this stamp `before`, in
    oldObject, the write has no stamp of its own, or that of another write of the same second: the earlier of the stamp
    and `now` is used. Only `now` may be wrong then, so a new holder is not dated before the last renewal was seen.
    """
    owner = None
    for entry in entries:
        if field in entry.owned.spec:
            if owner is not None:
                return truncate_to_seconds(now)
            owner = entry
    if owner is None or owner.is_fold or (stamp := owner.stamp) is None:
        return truncate_to_seconds(now)
    for old_entry in before:
        if old_entry.stamp == stamp and old_entry.key == owner.key and field in old_entry.owned.spec:
            break
    else:
        return stamp
    seen = None if field == RENEW_TIME else date_last_renewal(before)
    return min(stamp, truncate_to_seconds(now) if seen is None else max(truncate_to_seconds(now), seen))


class Expiry(Struct, frozen=True, gc=False):
    """The state of the old lease at the time of the write: expired or not, and by which evidence.

    `from_stamps` is false if there is no usable stamp of the last renewal: then the holder's own renewTime is used,
    and a denial must weaken to a warning.
    """

    is_expired: bool
    last_renewal: int | None
    written_at: int
    duration_seconds: int | None
    from_stamps: bool

    @property
    def whose_clock(self) -> str:
        """The end of a clause about the time left: empty, or that it is by the holder's clock for lack of a stamp."""
        return "" if self.from_stamps else " by its holder's clock"

    @property
    def seconds_left(self) -> int:
        """Whole seconds until a live lease expires, rounded up, at least 1; 0 for an expired one."""
        if self.is_expired or self.duration_seconds is None or self.last_renewal is None:
            return 0
        age = max(0, self.written_at - self.last_renewal)
        return max(1, -(-(self.duration_seconds * SECOND - age) // SECOND))


def find_expiry(
    holder: str,
    duration_seconds: int | None,
    renew_time: int | None,
    entries: Sequence[Entry],
    written_at: int,
    now: int,
    stamped_at: int | None = None,
) -> Expiry:
    """Return whether the old lease had expired.

    `stamped_at`, if it is known, is when the last renewal was seen; else the entries say it.
    A renewTime that is unknown is later than `now`, so only stamps let the lease expire. `written_at` is the moment of
    this write, see `date_write_by_field`; `now`, the caller's clock, is used only if no stamp of the last renewal is
    usable.
    """
    if not holder or renew_time is None:
        return Expiry(
            is_expired=True,
            last_renewal=None,
            written_at=written_at,
            duration_seconds=duration_seconds,
            from_stamps=True,
        )
    seen = date_last_renewal(entries) if stamped_at is None else stamped_at
    from_stamps = seen is not None and seen <= written_at + BOUND
    if seen is None or not from_stamps:
        seen = min(renew_time, now)
    expired = (
        duration_seconds is None or written_at - seen + find_tolerance(duration_seconds) >= duration_seconds * SECOND
    )
    return Expiry(
        is_expired=expired,
        last_renewal=seen,
        written_at=written_at,
        duration_seconds=duration_seconds,
        from_stamps=from_stamps,
    )
