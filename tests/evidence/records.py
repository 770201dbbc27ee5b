"""What was written, what is true about it, and what became of it; times are microseconds since 1970."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from tests.evidence.reviews import Outcome, review
from tests.evidence.stored_lease import Lease

SECOND: Final = 1_000_000


class Elector(Struct, frozen=True):
    """An honest elector; `style` is how it writes, `skew` how far its own clock is ahead."""

    identity: str
    manager: str
    style: str
    skew: int


class Write(Struct, frozen=True):
    """One write with the truth about it; times in microseconds since 1970, 0 for never.

    `renewed_by_holder`: the last renewal by the holder itself. `moved`: the last write that moved the stamp of the
    last renewal, renewals included. `stamped`: the lease has entries of an API server, or had any earlier.
    `listed`: the API server stamps writers, and the policy says so.
    `clocks_differ`: how far the clocks that date this write are apart at most.
    """

    honest: bool
    kind: str
    manager: str
    mutations: tuple[str, ...]
    at: int
    now: int
    user: Mapping[str, Any]
    old: Lease | None
    new: Lease | None
    renewed_by_holder: int
    moved: int
    clocks_differ: int
    stamped: bool
    final_try: bool
    listed: bool = False

    @property
    def operation(self) -> str:
        """The admission operation."""
        if self.old is None:
            return "CREATE"
        return "UPDATE" if self.new is not None else "DELETE"


class Record(Struct, frozen=True):
    """A write, whether the API server sent it to the webhook, what the webhook said, and whether it is a probe.

    A probe is tried and not stored, whatever the outcome.
    """

    write: Write
    sent: bool
    outcome: Outcome
    probe: bool

    @property
    def allowed(self) -> bool:
        """Whether the write takes effect."""
        return self.outcome.allowed or not self.sent


def body_of(write: Write) -> bytes:
    """The review of a write."""
    new, old = (None if lease is None else lease.encode() for lease in (write.new, write.old))
    return review(write.operation, write.user, new, old)
