"""Logs without objects: who writes a lease regularly leads, as far as can be known.

In: writes whose object the log does not show. Out: whether another writer followed the holder: it has written for some
time as the holder did, while the holder did not.
"""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import MINUTE, SECOND

UNKNOWN_PATIENCE: Final = 10 * SECOND
"""How long a holder must not have written to be followed by another writer, if its usual interval is not known."""
_LONGEST: Final = 10 * MINUTE
"""Who writes after a longer time does so by itself, and not in turn with another one."""
_MIN_CHANGES: Final = 4
"""Each of two wrote again after the other one, before the last change."""


class Turns(Struct):
    """Two processes that wrote one after the other, and how often the writer changed, from `began` until then.

    The last write before the first change was at `since`. All are microseconds since 1970.
    """

    since: int
    began: int
    first: Writer
    second: Writer
    until: int
    count: int = 1
    is_ended: bool = False
    """One of them has followed the other."""

    @property
    def is_in_turn(self) -> bool:
        """Whether two pods of one account each wrote again after the other one: both may lead."""
        first, second = self.first, self.second
        are_replicas = first.user == second.user and bool(first.pod) and bool(second.pod)
        return are_replicas and self.count >= _MIN_CHANGES

    def is_ongoing(self, now: int) -> bool:
        """Return whether the writer may change again, by how often it did."""
        return not self.is_ended and (now - self.until) * (self.count - 1) <= 2 * (self.until - self.began)

    def has(self, at: int, writer: Writer) -> bool:
        """Return whether a write is one of these."""
        return self.since <= at <= self.until and writer.process in {self.first, self.second}


class Rival(Struct):
    """A writer other than the holder, since the last write of the holder."""

    verb: str = ""
    """How the holder writes."""
    writes: deque[tuple[int, Writer]] = field(default_factory=partial(deque, (), MAX_LISTED))
    """Times in microseconds since 1970, and their writer."""
    others: set[Writer] = field(default_factory=set)
    """Every one that wrote like the holder since the last write of that."""

    turns: deque[Turns] = field(default_factory=partial(deque, (), MAX_LISTED))
    """The pairs of processes that wrote like the holder, or as it, one after the other."""
    last: tuple[int, Writer] | None = None
    """The latest of these writes."""

    def note_writer(self, at: int, writer: Writer) -> None:
        """Note a write by the holder, or like those of it."""
        last, self.last = self.last, (at, writer.process)
        if last is None or last[1] == writer.process:
            return
        run = self.turns[-1] if self.turns else None
        is_same = run is not None and not run.is_ended and {last[1], writer.process} == {run.first, run.second}
        if run is not None and is_same and at - run.until <= _LONGEST:
            run.count, run.until = run.count + 1, at
        else:
            self.turns.append(Turns(last[0], at, last[1], writer.process, at))

    def end_turns(self) -> bool:
        """Note that the latest writer has followed the one before; return whether they wrote in turn until then."""
        self.turns[-1].is_ended = True
        return self.turns[-1].is_in_turn

    def begin(self, verb: str) -> None:
        """Begin with a write of a holder: what others wrote before does not follow it."""
        self.verb = verb
        self.others.clear()
        self.writes.clear()

    def follow_holder(self, verb: str) -> None:
        """Note that it has followed the holder, by writes with this verb."""
        self.verb = verb
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
