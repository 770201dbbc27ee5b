"""When a state of a lease was written and last renewed, as its stamps say. All instants are microseconds since 1970."""

from collections.abc import Sequence

from webhook.api.managed_fields import Entry
from webhook.api.objects import LeaseSpec
from webhook.history.standing import ahead, refined
from webhook.rules.expiry import HOLDER, seen_at, stamp_of_write, tolerance_of
from webhook.rules.times import SECOND, normalized, readable


def renewed_at(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """When the last renewal was seen: the stamp with the fraction of the holder; else what the holder claims."""
    claimed = readable(normalized(spec.renew_time))
    stamp = seen_at(entries)
    return claimed if stamp is None else refined(stamp, claimed)


def acquired_at(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """When the holder says that it took the lease, corrected by the error of its clock at the last renewal."""
    acquired = readable(normalized(spec.acquire_time))
    if acquired is None:
        return None
    return acquired - (ahead(seen_at(entries), readable(normalized(spec.renew_time))) or 0)


def written_at(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """When a state was written, as far as it shows: the stamp of its holder or of a later renewal."""
    renewed = renewed_at(spec, entries)
    if spec.holder_identity is None or not entries:
        # A removed field has no owner: whatever was written last is the best guess.
        stamps = (entry.stamp for entry in entries if not entry.is_fold)
        return max((stamp for stamp in stamps if stamp is not None), default=renewed)
    stamp = stamp_of_write(entries, (), HOLDER, 0)
    return renewed if renewed is not None and renewed >= stamp else stamp or renewed


def was_live(last: int | None, duration: int | None, at: int) -> bool:
    """Whether a lease that was last renewed at `last` was still live when it was taken."""
    if last is None or duration is None:
        return False
    return at - last + tolerance_of(duration) < duration * SECOND
