"""One write: its time, what dates it, and its writer, worked out once, when the write is observed."""

from enum import StrEnum

from msgspec import Struct

from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND


class Dating(StrEnum):
    """The evidence for the time of a write, the strongest first."""

    LOG = "log"
    """An API server logged when it received the request and when it answered."""
    STAMP = "stamp"
    """A time that the API server wrote, in whole seconds, and that moved with this write."""
    ORDER = "order"
    """Only that it came after the write before: at `at` or later."""
    WRITER_CLOCK = "writer-clock"
    """The writer's own clock: a claim of a client, which cannot be compared with another one's."""


class Write(Struct, frozen=True):
    """One observed write. Instants are microseconds since 1970.

    `at` is the best estimate; the write was stored in [earliest, latest], `latest` None if nothing bounds it. `skew` is
    by how much the clocks of this write and of the one before may differ. `writer` is who made this very write, None
    if that is not known.
    `is_doubtful`: a write of the holder before was stored although its answer says that it failed.
    """

    at: int = 0
    earliest: int = 0
    latest: int | None = None
    dating: Dating = Dating.ORDER
    writer: Writer | None = None
    skew: int = 0
    is_doubtful: bool = False
    has_failed: bool = False
    """Its answer says that it failed, although it was stored: etcd may have done so when the answer was long sent."""
    shown_at: int | None = None
    """When a read first showed what such a write stored; None if none is known to."""

    @property
    def is_logged(self) -> bool:
        """Whether a log says when it was answered."""
        return self.dating is Dating.LOG

    @property
    def is_exact(self) -> bool:
        """Whether a log says when it was stored, up to a tenth of a second."""
        return self.is_logged and self.latest is not None and self.latest - self.earliest <= SECOND // 10

    @property
    def is_claimed(self) -> bool:
        """Whether only the writer's own clock says when it was made."""
        return self.dating is Dating.WRITER_CLOCK

    @property
    def is_dated(self) -> bool:
        """Whether anything says when it was made, rather than only that it came later than another one."""
        return self.dating is not Dating.ORDER

    @property
    def has_claimed_time(self) -> bool | None:
        """Whether its time comes from the writer's own clock alone; None if it has no time."""
        return self.is_claimed if self.is_dated else None

    @property
    def is_dated_by_a_server(self) -> bool:
        """Whether an API server says when it was stored, and what it followed is known."""
        return self.dating in {Dating.LOG, Dating.STAMP} and not self.is_doubtful

    def may_include(self, at: int) -> bool:
        """Return whether it may have been stored at an instant."""
        return self.earliest <= at and (self.latest is None or at <= self.latest)
