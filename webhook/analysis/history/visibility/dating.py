"""Dates an observation: by its own time, by the stamps of the API server, or only after the one before."""

from collections.abc import Sequence

from msgspec import Struct

from webhook.admission.rules.expiry import MAX_TOLERANCE, truncate_to_seconds
from webhook.admission.rules.stamps import find_latest_stamp, is_constant
from webhook.analysis.history.status import date_state, find_stamp_between, refine
from webhook.analysis.history.visibility.bounds import Bounds
from webhook.analysis.history.visibility.forged_stamps import find_forged_stamps
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.inputs.items import Act, InputKind, Observation
from webhook.analysis.inputs.stamp_reader import StampReader
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, parse_stamp


class KnownState(Struct, frozen=True):
    """What is known of a lease before an observation: its state, None if it does not exist, and its latest write.

    `at` is the latest moment at which it was observed, in microseconds since 1970, None if it was not; `path` is the
    input that showed the state.
    """

    lease: Lease | None
    entries: Sequence[Entry]
    at: int | None
    write: Write
    path: str
    is_held: bool

    def has_same_renewal(self, lease: Lease) -> bool:
        """Return whether a state was not renewed since the one that is known."""
        return self.lease is not None and self.lease.spec.renew_time == lease.spec.renew_time


def estimate_write(seen: Observation, known: KnownState, bounds: Bounds) -> Write:
    """Return when something happened: by its own time, else by its stamps, else when anything was last seen."""
    # What a watch shows was stamped, or logged, by any of the API servers.
    is_of_watch = seen.is_watched or seen.input_kind is InputKind.WATCH
    is_one_clock = known.path == seen.place.path and not (bounds.is_skewed_within or is_of_watch)
    skew = 0 if is_one_clock else bounds.skew
    moment = _find_moment(seen, known, bounds)
    created = _find_creation(seen) if not moment or seen.is_stamp_old else 0  # what is dated needs no bound
    at = min(moment or max(known.at or 0, created), bounds.latest)
    is_logged = seen.input_kind is InputKind.AUDIT_LOG and seen.at is not None
    if moment is None or (seen.is_stamp_old and not is_logged):
        earliest = 0 if known.write.is_claimed else known.write.earliest
        dating, earliest, latest = Dating.ORDER, max(earliest, min(created, bounds.latest) - skew), None
    elif is_logged:
        dating, earliest, latest = Dating.LOG, at - seen.took - skew, at + skew
    elif seen.at is None and seen.object is not None and (not seen.entries or is_constant(seen.entries)):
        dating, earliest, latest = Dating.WRITER_CLOCK, at, at
    elif seen.input_kind is InputKind.REVIEW and at % SECOND:
        dating, earliest, latest = Dating.STAMP, at - skew, at + skew  # an index says when it was received
    else:
        dating, second = Dating.STAMP, truncate_to_seconds(at)
        earliest, latest = second - skew, second + SECOND + skew
    if seen.requested_at is not None and dating is Dating.STAMP:
        earliest = max(earliest, seen.requested_at - skew)  # it was stamped once it was received
    tolerance = MAX_TOLERANCE if dating is Dating.WRITER_CLOCK else 0
    if latest is not None and known.write.is_logged and latest + tolerance < known.write.earliest and not is_logged:
        # A log has what came before: the stamp is of an earlier write, or the clock of the writer is behind.
        at, dating, earliest, latest = known.at or at, Dating.ORDER, known.write.earliest, None
    writer = None if seen.act is Act.STORED else seen.writer
    has_failed = seen.requested_at is not None
    shown_at = seen.read_at if has_failed else None
    return Write(at, earliest, latest, dating, writer, skew=skew, has_failed=has_failed, shown_at=shown_at)


def date_by_itself(seen: Observation, stamps: StampReader) -> int | None:
    """Return when a state was written, as it shows without any other: where stamps are believed, they say so alone."""
    if not isinstance(seen.object, Lease):
        return seen.latest_stamp
    spec, stamp = seen.object.spec, stamps.date(seen)
    if stamp is not None:
        claimed = get_readable_instant(normalize(spec.renew_time))
        return claimed if claimed is not None and truncate_to_seconds(claimed) == stamp else stamp
    found = (seen.latest_stamp, date_state(spec, seen.entries))
    return max((one for one in found if one is not None), default=None)


def date_state_before(moment: int | None, at: int, skew: int) -> Write:
    """Return the write of the state that a review shows as the one before, at `moment` or, if None, by `at`."""
    if moment is None:
        return Write(at, at, None, Dating.ORDER, skew=skew)
    second = truncate_to_seconds(moment)
    return Write(moment, second, second + SECOND, Dating.STAMP)


def _find_creation(seen: Observation) -> int:
    """Return when the lease was created, before which no state of it was written; 0 if it does not say."""
    shown = seen.object.metadata.creation_timestamp if isinstance(seen.object, Lease) else None
    return parse_stamp(shown) or 0


def _find_moment(seen: Observation, known: KnownState, bounds: Bounds) -> int | None:
    """Return the time of an observation; None if nothing dates it, or only what is not believed."""
    at = seen.at
    if at is None and seen.act is Act.DELETED:
        at = parse_stamp(seen.object.metadata.deletion_timestamp) if seen.object else None
        if at is not None and known.at is not None and known.at >= at + SECOND:
            return None  # it waited for finalizers, while others still wrote it
        if at is None:
            # A watch does not date it; it may have been made in what a recorder did not see.
            at = known.at if bounds.unrecorded else bounds.until
    elif at is None and isinstance(seen.object, Lease) and not _is_undated_removal(seen.object, seen.entries, known):
        at = _find_stamp_of_state(seen, seen.object, known)
    return at if at is not None and at <= bounds.latest else None


def _find_stamp_of_state(seen: Observation, lease: Lease, known: KnownState) -> int | None:
    """Return when the state shows that it was written: by a stamp that moved with the write, if that is known.

    Others may be of earlier writes, or invented: they are not later than the stamps of what followed them.
    """
    before = known.lease
    if before is not None and before.metadata.uid == lease.metadata.uid:
        moved = find_stamp_between(before.spec, lease.spec, known.entries, seen.entries)
        owners = [one for one in seen.entries if one.owns_renew_time and not one.is_fold]
        if not moved and len(owners) == 1 and before.spec.renew_time != lease.spec.renew_time:
            moved = owners[0].stamp or 0  # another write may have been stamped in the same second
        claimed = get_readable_instant(normalize(lease.spec.renew_time))
        if moved and before.spec.renew_time != lease.spec.renew_time and (claimed or 0) < moved + SECOND:
            return refine(moved, claimed)
        if moved:
            return moved
    if not known.has_same_renewal(lease):
        return date_state(lease.spec, seen.entries)
    if before is not None and find_forged_stamps(seen, before, known.entries, known.at or 0):
        return None
    return max(_list_new_stamps(known.entries, seen.entries), default=seen.latest_stamp)


def _list_new_stamps(known: Sequence[Entry], entries: Sequence[Entry]) -> list[int]:
    """Return the stamps that are new in a state: one that an earlier write left may be later, if it was invented."""
    old = {(one.manager, one.stamp) for one in known}
    return [one.stamp for one in entries if one.stamp is not None and (one.manager, one.stamp) not in old]


def _is_undated_removal(lease: Lease, entries: Sequence[Entry], known: KnownState) -> bool:
    """Return whether a write that left no stamp removed the holder: a field that is gone has no owner.

    The stamp of the latest write is gone with its fields.
    """
    is_removed = lease.spec.holder_identity is None and known.is_held and bool(entries)
    return is_removed and (find_latest_stamp(entries) or 0) <= (find_latest_stamp(known.entries) or 0)
