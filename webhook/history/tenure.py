"""Who held a lease from when to when, how it changed hands, and how long no one led in between."""

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from webhook.observations.observation import Writer

MOST_WRITERS: Final = 8


class Handover(StrEnum):
    """How a replica came to hold a lease."""

    __hash__ = str.__hash__  # Enum's own is a Python call, made on every lookup

    SEEN = "seen"
    """It held the lease already when the input begins."""
    CREATED = "created"
    CLAIMED = "claimed"
    """The lease was there, and no one had held it."""
    RELEASED = "released"
    """The previous holder released it."""
    EXPIRED = "expired"
    """The holder before had not renewed it in time."""
    STOLEN = "stolen"
    """The holder before still had it: two may have led."""
    DELETED = "deleted"
    """The lease was deleted under the holder before, and created again."""
    UNKNOWN = "unknown"
    """The input does not show how."""


FIRST: Final = frozenset({Handover.SEEN, Handover.CREATED})
"""How the first holder comes to hold a lease: no one held it before, as far as is known."""


class Tenure(Struct):
    """One holder, from `since` to `until` (None: it still holds, as far as is known), in microseconds since 1970.

    `leaderless` is how long no one led before it, at most: from the last sign of life of the holder before. It is None
    if that was not seen. `is_writer` is set if the log hides the holder and its writer stands in.
    """

    holder: str
    since: int
    began: Handover
    previous: str = ""
    leaderless: int | None = None
    last_renewal: int | None = None
    until: int | None = None
    is_writer: bool = False
    is_cut: bool = False
    """The input begins later than it does."""
    writers: list[Writer] = field(default_factory=list)
    switches: int = 0
    """How often renewals came from another pod or user than the one before."""

    def written_by(self, writer: Writer | None) -> None:
        """Remember who wrote, the last one last."""
        if writer is None or not writer.user:
            return
        known = Writer(writer.user, writer.pod)
        if self.writers and self.writers[-1] != known:
            self.switches += 1
        if known in self.writers:
            self.writers.remove(known)
        self.writers = [*self.writers, known][-MOST_WRITERS:]

    @property
    def has_several_writers(self) -> bool:
        """Whether two processes renewed in turns under this name; one that replaced another is none of it."""
        return self.switches > 1
