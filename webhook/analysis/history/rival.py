"""Logs without objects: who writes a lease regularly leads, as far as can be known.

In: writes whose object the log does not show. Out: whether another writer followed the holder: it has written for some
time as the holder did, while the holder did not.
"""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND

UNKNOWN_PATIENCE: Final = 10 * SECOND
"""How long a holder must not have written to be followed by another writer, if its usual interval is not known."""


class Rival(Struct):
    """One writer beside the holder, since the last write of that."""

    verb: str = ""
    """How the holder writes."""
    writes: deque[tuple[int, Writer]] = field(default_factory=partial(deque, (), MAX_LISTED))
    """Times in microseconds since 1970, and their writer."""
    others: set[Writer] = field(default_factory=set)
    """Every one that wrote like the holder since the last write of that."""

    def begin(self, verb: str) -> None:
        """Begin with a first write of a holder."""
        self.verb = verb
        self.others.clear()

    def note_holder(self, verb: str) -> None:
        """Note a write of the holder."""
        self.begin(verb)
        self.writes.clear()

    def is_writing_like_holder(self, verb: str) -> bool:
        """Return whether a verb is that of the holder's renewals."""
        return self.verb in {verb, "create"}

    def add(self, at: int, writer: Writer) -> None:
        """Add a write; that of another rival begins again."""
        if self.writes and self.writes[0][1] != writer:
            self.writes.clear()
        self.writes.append((at, writer))
        if len(self.others) < MAX_LISTED:
            self.others.add(writer.process)

    def has_followed(self, at: int, usual: int | None) -> bool:
        """Return whether it wrote for long enough, by the holder's usual interval."""
        return len(self.writes) >= 2 and at - self.writes[0][0] >= estimate_patience(usual)


def estimate_patience(usual: int | None) -> int:
    """Return the microseconds after which a holder with this usual interval has missed a write."""
    return UNKNOWN_PATIENCE if usual is None else 2 * usual
