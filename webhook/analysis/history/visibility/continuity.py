"""Whether the writes to a lease that an input shows follow each other, or some may be missing in between.

In: each observation, and what was reported of the input (a hole in a log, a store that was put back). Out: since when
the present state of the lease is hidden, and whether a state continues the one before. It knows nothing of holders.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.analysis.history.status import is_earlier_renewal
from webhook.analysis.history.visibility.bounds import Bounds
from webhook.analysis.history.visibility.sources import is_same_source
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Act, InputKind, Observation, RecordingGap, parse_number
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND, normalize


class Visibility(StrEnum):
    """Whether the latest state that was shown is known to be the present one."""

    WHOLE = "whole"
    """Nothing says that a write is missing."""
    SPARSE = "sparse"
    """An audit log was without a request for a time, in which another lease was renewed as usual: it did not stop."""
    IN_HOLE = "in-hole"
    """An audit log may lack what was written since."""
    STORE_RESTORED = "put-back"
    """The store was put back to an earlier state: the lease may be another one since."""
    BEHIND_WRITE = "behind-write"
    """An audit log has a later write, and does not show what that changed."""


class VisibilityChange(StrEnum):
    """What changes the visibility of a lease."""

    LOG_HAS_HOLE = "log-has-hole"
    LOG_WENT_ON = "log-went-on"
    """What was taken for a hole is none."""
    WRITE_IS_MISSING = "write-is-missing"
    """A write follows another one that the log does not have: what was taken for none is a hole."""
    STORE_WAS_RESTORED = "store-was-put-back"
    HOLDER_HAD_WAITED = "holder-had-waited"
    """The holder waited for an answer throughout a hole: it made no other request then."""
    STATE_WAS_SHOWN = "state-was-shown"
    WRITE_WAS_HIDDEN = "write-was-hidden"


_TRANSITIONS: Final = {
    (Visibility.WHOLE, VisibilityChange.LOG_HAS_HOLE): Visibility.IN_HOLE,
    (Visibility.SPARSE, VisibilityChange.LOG_HAS_HOLE): Visibility.IN_HOLE,
    (Visibility.SPARSE, VisibilityChange.WRITE_IS_MISSING): Visibility.IN_HOLE,
    (Visibility.IN_HOLE, VisibilityChange.WRITE_IS_MISSING): Visibility.IN_HOLE,
    (Visibility.IN_HOLE, VisibilityChange.LOG_WENT_ON): Visibility.SPARSE,
    (Visibility.WHOLE, VisibilityChange.STORE_WAS_RESTORED): Visibility.STORE_RESTORED,
    (Visibility.SPARSE, VisibilityChange.STORE_WAS_RESTORED): Visibility.STORE_RESTORED,
    (Visibility.IN_HOLE, VisibilityChange.STORE_WAS_RESTORED): Visibility.STORE_RESTORED,
    (Visibility.BEHIND_WRITE, VisibilityChange.STORE_WAS_RESTORED): Visibility.STORE_RESTORED,
    (Visibility.IN_HOLE, VisibilityChange.HOLDER_HAD_WAITED): Visibility.WHOLE,
    (Visibility.SPARSE, VisibilityChange.HOLDER_HAD_WAITED): Visibility.WHOLE,
    **{(visibility, VisibilityChange.STATE_WAS_SHOWN): Visibility.WHOLE for visibility in Visibility},
    **{(visibility, VisibilityChange.WRITE_WAS_HIDDEN): Visibility.BEHIND_WRITE for visibility in Visibility},
}
"""What is not listed changes nothing."""


class Continuity(Struct):
    """What links the states of one lease that an input shows."""

    visibility: Visibility = Visibility.WHOLE
    hidden_since: int | None = None
    """Since when the present state may differ from the latest that was shown; None in WHOLE and SPARSE."""
    sparse_since: int | None = None
    """Since when an audit log was sparse, if nothing was written to the lease after that."""
    has_skipped: bool = False
    """The latest observation is of a write that follows another one, which the log does not have."""
    is_shown_beside: bool = False
    """A watch, or reviews, show what was stored, also where a log does not."""
    own_hidden_at: int | None = None
    """When the holder itself wrote what a log does not show, if no state was shown since: its renewal, or its release.
    """
    is_partial: bool = False
    """Writes may have been missed: a record has gaps, or a watch began again after renewals that it did not see."""
    is_log_leaky: bool = False
    """An audit log lacks a write, and not in a hole: the next one names a state that none of them made."""
    is_after_gap: bool = False
    """A recorder did not see a part of the time between the latest observation and the one before."""
    kind: InputKind = InputKind.DUMP
    """The kind of the input with the latest observation."""
    kind_before: InputKind = InputKind.DUMP
    path: str = ""
    """The input that showed the latest state."""
    paths: frozenset[str] = frozenset()
    """All inputs that showed it: two watches may overlap."""
    version: str = ""
    """The resourceVersion of the latest state, "" if the input does not show it."""
    sent_after: int = 0
    """The resourceVersion that the request of the latest state named, if the log has only what was sent; else 0."""
    _revision: int = 0
    """The highest resourceVersion shown so far; 0 if none was."""
    _known_gaps: tuple[RecordingGap, ...] = ()
    """Gaps after which a state was seen: what followed it is recorded."""

    def begin(self, seen: Observation, write: Write, before: Write, bounds: Bounds) -> None:
        """Begin with an observation of a write, after the one `before`."""
        self.has_skipped = False
        self.kind_before, self.kind = self.kind, seen.input_kind
        is_shown = seen.is_watched or seen.input_kind in {InputKind.WATCH, InputKind.REVIEW}
        self.is_shown_beside = self.is_shown_beside or is_shown
        # What nothing dates came after a gap, or in it.
        end = write.at if write.is_dated and seen.act is not Act.DELETED else bounds.latest
        gaps = [
            gap for gap in bounds.unrecorded if gap not in self._known_gaps and not gap.is_recorded_after(seen.place)
        ]
        self.is_after_gap = any(gap.start <= end and before.at <= gap.end for gap in gaps)
        self.is_partial = self.is_partial or bool(bounds.unrecorded)

    def note_state(self, write: Write, bounds: Bounds) -> None:
        """Note that a write was seen after the gaps before it: what was written in one was seen after it.

        Gaps begin in whole seconds: a write of the same second may have come before.
        """
        self._known_gaps = tuple(gap for gap in bounds.unrecorded if gap.start + SECOND <= write.earliest)

    def apply(self, change: VisibilityChange, at: int | None = None) -> None:
        """Apply a change of visibility; `at` is when the state became hidden, if the change hides it."""
        if self.visibility is Visibility.WHOLE and change is VisibilityChange.STATE_WAS_SHOWN:
            return  # as after nearly all writes: the keys of the table take long to hash
        visibility = _TRANSITIONS.get((self.visibility, change))
        if visibility is None:
            return
        self.visibility = visibility
        if visibility is Visibility.WHOLE:
            self.hidden_since = self.sparse_since = None
        elif visibility is Visibility.SPARSE:
            self.sparse_since = self.hidden_since if self.sparse_since is None else self.sparse_since
            self.hidden_since = None
        elif change is VisibilityChange.WRITE_IS_MISSING:
            self.hidden_since = self.hidden_since if self.sparse_since is None else self.sparse_since
        elif self.hidden_since is None:
            self.hidden_since = at

    def hide_since_own_write(self) -> bool:
        """Note that another holder is shown, so what the one before wrote last may have been its release.

        Return whether it wrote what is not shown.
        """
        at = self.own_hidden_at
        if at is None:
            return False
        self.apply(VisibilityChange.WRITE_WAS_HIDDEN, at)
        return True

    def note_skip(self, seen: Observation) -> None:
        """Note that a write does not follow the one that is known; a log lacks the one that it names, if it names any.

        Behind a write that the log shows without its content, and where a store was put back, it need not.
        """
        is_shown = self.visibility in {Visibility.WHOLE, Visibility.SPARSE, Visibility.IN_HOLE}
        if is_shown and seen.input_kind is InputKind.AUDIT_LOG and seen.replaces and self.version:
            self.has_skipped = True
            self.apply(VisibilityChange.WRITE_IS_MISSING)

    def forget_revisions(self) -> None:
        """Forget what came first by resourceVersions: they went back to an earlier value."""
        self._revision, self.version = 0, ""

    def is_older(self, lease: Lease, *, is_deleted: bool) -> bool:
        """Return whether a state is older than one that is known: lines of logs may be out of order."""
        revision = parse_number(lease.metadata.resource_version)
        return 0 < revision < self._revision or (is_deleted and 0 < revision == self._revision)

    def advance_to(self, lease: Lease) -> None:
        """Go on to a state, which is not older than those that are known."""
        self._revision = parse_number(lease.metadata.resource_version) or self._revision

    def is_cut(self, seen: Observation) -> bool:
        """Return whether a state follows one that was hidden, unless its request names the one that is known.

        Versions count the writes to the store: where a request names the next one after that which the last request
        named, nothing else was written between.
        """
        if self.hidden_since is None:
            return False
        is_next = self.sent_after > 0 and parse_number(seen.replaces) == self.sent_after + 1
        return not is_next and (not seen.replaces or seen.replaces != self.version)

    def has_gap_between(self, seen: Observation, known: Lease, lease: Lease, act: Act, *, is_other: bool) -> bool:
        """Return whether writes between two states were not seen, if no request names the one that it replaced.

        A watch, and a list, begins without what was written before. `is_other`: the second is of another uid.
        """
        # Of what a log has the request, it is known what it replaced.
        is_known = seen.requested_at is not None and seen.replaces == self.version
        is_dump = seen.input_kind is InputKind.DUMP
        is_watch = seen.input_kind is InputKind.WATCH and self.kind_before in {InputKind.WATCH, InputKind.DUMP}
        if is_known or seen.at is not None or not (is_dump or is_watch):
            return False
        old, new = known.spec, lease.spec
        is_changed = is_other or (new.holder_identity or "") != (old.holder_identity or "")
        if is_watch and any(is_same_source(path, other) for path in self.paths for other in seen.paths):
            if is_retaken(old, new):
                return True
            if act is not Act.STORED:
                return is_changed and self.is_after_gap
        return is_changed or normalize(new.renew_time) != normalize(old.renew_time)


def is_retaken(old: LeaseSpec, new: LeaseSpec) -> bool:
    """Return whether a holder took a lease that named it before, as if another one had it.

    Whoever takes it renews it: with an earlier renewTime an old copy was written over it.
    """
    return (
        new.holder_identity == old.holder_identity
        and new.acquire_time != old.acquire_time
        and (new.lease_transitions or 0) > (old.lease_transitions or 0)
        and not is_earlier_renewal(old, new)
    )
