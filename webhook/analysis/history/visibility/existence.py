"""Whether a lease exists: its creation, its deletion, and that another one was created with its name.

In: uids of states, and deletions. Out: whether it is gone, since when, and whether its name is that of several leases.
"""

from typing import Final

from msgspec import Struct

from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Act, Observation, Writer
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, parse_stamp

_AT_ONCE: Final = 5 * SECOND
"""Clocks of API servers differ by less, as a rule."""


class Existence(Struct):
    """What is known of the object of a lease."""

    is_deleted: bool = False
    is_deletion_sure: bool = True
    """False if the last deletion may have been a dry run."""
    deleted_at: int = 0
    """The time of its last deletion, in microseconds since 1970."""
    deleted_by: Writer | None = None
    """Who asked for the last deletion; None if the input does not show it."""
    is_seen_created: bool = False
    """The input shows how it was created."""
    created_by: Writer | None = None
    """Who created it; None if the input does not show it."""
    created_at: int = 0
    """When that writer created it, in microseconds since 1970."""
    is_creation_hidden: bool = False
    """It was deleted, and created again by a request of which the input does not show the object."""
    is_mixed: bool = False
    """Two leases of this name were written in turns: the input is of several clusters, so nothing is known."""
    overlap: int = 0
    """For how long two leases of this name existed at once by the times of API servers, in microseconds: for 0 if the
    input is of one cluster. Else these are several, or clocks differ by as much."""
    marked_at: int = 0
    """When its deletion was asked for, which waits for finalizers; 0 if there is none."""
    _marked_by: Writer | None = None
    """The writer whose deletion waits for finalizers; None if there is none."""
    _uid_before: str | None = None
    """The uid of the lease that was deleted before the latest one was created."""

    def note_creation(self, by: Writer | None, at: int) -> None:
        """Note that the input shows how it was created, and by whom, if it is known."""
        self.is_seen_created, self.created_by, self.created_at = True, by, at

    def mark(self, writer: Writer | None, at: int) -> None:
        """Note a deletion that waits for finalizers, or who asked for it; a later one changes nothing."""
        if not self.marked_at or (self._marked_by is None and writer is not None):
            self.marked_at, self._marked_by = at, writer

    def find_deleter(self, seen: Observation) -> Writer | None:
        """Return who asked for the deletion, who need not be the writer that removed the last finalizer."""
        return seen.writer if seen.act is Act.DELETED else self._marked_by

    def delete(self, at: int, by: Writer | None, *, is_surely_not_dry_run: bool) -> None:
        """Note that it is gone, or may be, and who asked for that, if it is known."""
        self.deleted_by = by
        self.is_deletion_sure = is_surely_not_dry_run
        self.is_deleted, self.deleted_at, self.is_creation_hidden = True, at, False

    def note_hidden_creation(self) -> None:
        """Note that it exists again, as a log says that does not show what was created."""
        self.is_creation_hidden = self.is_deleted

    def restore(self, *, is_other: bool) -> None:
        """Note that it exists; `is_other`: as another lease than the one that was known, whose deletion it has not."""
        if self.is_deleted or is_other:
            self.is_deleted = False
            self._unmark()

    def forget_uid(self) -> None:
        """Forget the lease before, and a deletion: the store was put back, perhaps to a state before either."""
        self._uid_before = None
        self._unmark()

    def _unmark(self) -> None:
        self.marked_at, self._marked_by = 0, None

    def replace_uid(self, known: str | None, uid: str | None) -> None:
        """Note that the lease that was known is gone, and one of another uid was created with its name."""
        self.is_mixed = self.is_mixed or uid == self._uid_before
        self._uid_before = known


def measure_overlap(lease: Lease, latest: Write) -> int:
    """Return for how long a lease existed already when one of another uid was written, 0 if it need not have.

    Only a log dates the `latest` write of the other one: a client may write the stamps of what a watch shows.
    """
    created = parse_stamp(lease.metadata.creation_timestamp)
    if created is None or not latest.is_logged:
        return 0
    overlap = latest.earliest - created - SECOND
    return overlap if overlap > _AT_ONCE else 0


def is_other_uid(known: str | None, uid: str | None) -> bool:
    """Return whether a uid is that of another lease than the one that is known."""
    return bool(known) and bool(uid) and known != uid
