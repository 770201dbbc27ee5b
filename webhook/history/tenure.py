"""Who held a lease from when to when, how it changed hands, and how long no one led in between."""

from collections import deque
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from webhook.observations.observation import Writer

MOST_WRITERS: Final = 8
MOST_REQUESTS: Final = 64


class Handover(StrEnum):
    """How a replica came to hold a lease."""

    SEEN = "seen"
    """It held the lease already when the input begins."""
    CREATED = "created"
    CLAIMED = "claimed"
    """The lease existed, and no one had held it."""
    RELEASED = "released"
    """The previous holder released it."""
    EXPIRED = "expired"
    """The previous holder had not renewed it in time."""
    STOLEN = "stolen"
    """The previous holder still had it: two may have led."""
    DELETED = "deleted"
    """The lease was deleted while the previous holder had it, and created again."""
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
    """It began before the input does."""
    writers: list[Writer] = field(default_factory=list)
    switches: int = 0
    """How often renewals came from another pod or user than the one before."""
    joined: list[tuple[int, Writer]] = field(default_factory=list)
    """When another pod or user first wrote under this name."""
    taken_by: Writer | None = None
    """Who wrote the holder into the lease."""
    is_deleted: bool = False
    """It ended because the lease was deleted."""
    deleted_by: Writer | None = None
    manager: str = ""
    """The field manager of its last renewal; known once it has ended."""
    ahead: int | None = None
    """How far its clock was ahead of the API server's, in microseconds; known once it has ended."""
    requests: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_REQUESTS))
    """When its pods' latest requests for the lease were received, as far as an audit log shows."""
    heard_again: int | None = None
    """When the first request of its pods was received after another one had taken the lease."""

    def written_by(self, writer: Writer | None, at: int | None = None) -> None:
        """Remember who wrote, the last one last."""
        if writer is None or not writer.user:
            return
        known = Writer(writer.user, writer.pod)
        self.taken_by = self.taken_by or known
        if self.writers and self.writers[-1] != known:
            self.switches += 1
            if at is not None and known not in self.writers and len(self.joined) < MOST_WRITERS:
                self.joined.append((at, known))
        if known in self.writers:
            self.writers.remove(known)
        self.writers = [*self.writers, known][-MOST_WRITERS:]

    @property
    def has_several_writers(self) -> bool:
        """Whether two processes renewed alternately under this name; a process that replaced another does not count."""
        return self.switches > 1

    @property
    def pods(self) -> list[str]:
        """The pods that wrote under this name, the last one last."""
        return [one.pod for one in self.writers if one.pod]

    def requests_between(self, start: int, end: int) -> int | None:
        """How many requests of its pods were received between two instants; None if that cannot be known."""
        return sum(start < one <= end for one in self.requests) if self.pods else None
