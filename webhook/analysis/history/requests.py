"""What an audit log shows of a lease beside what was written: who reads it, and from where requests come."""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.bounds import MAX_LISTED
from webhook.analysis.history.events import NOT_FOUND, SLOW, Refusal, Tenure
from webhook.analysis.inputs.items import Observation, Writer

_MAX_ANSWERS: Final = 1000


class Requests(Struct):
    """Requests for one lease; the number of those that are kept is limited."""

    readers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How often pods, or users without one, read the lease, and when last."""
    sources: dict[str, list[Writer]] = field(default_factory=dict)
    """By address and program of requests, the processes that made them."""
    accounts: dict[str, set[str]] = field(default_factory=dict)
    """By user, the pods that read it."""
    absent: tuple[int, int, int] | None = None
    """How many reads were answered that it does not exist, since anything was stored; when the first and the last."""
    answered: deque[int] = field(default_factory=partial(deque, (), _MAX_ANSWERS))
    """The times at which it was read without delay while it was not renewed."""

    def hear(self, seen: Observation) -> None:
        """Remember from where a process made a request."""
        who = seen.writer.process if seen.writer else Writer()
        if seen.source and who.user and len(self.sources) < MAX_LISTED:
            known = self.sources.setdefault(seen.source, [])
            if len(known) < MAX_LISTED and who not in known:
                known.append(who)

    def take_read(self, seen: Observation, *, is_missed: bool) -> Refusal | None:
        """Remember a read, and return it if it was refused or failed, as those of a client that reads before it writes.

        `is_missed`: a renewal was missed by then.
        """
        who = (seen.writer.pod or seen.writer.name) if seen.writer else ""
        if seen.writer and seen.writer.pod:
            pods = self.accounts.setdefault(seen.writer.user, set()) if len(self.accounts) < MAX_LISTED else set()
            pods.update({seen.writer.pod} if len(pods) < MAX_LISTED else ())
        if who and (who in self.readers or len(self.readers) < MAX_LISTED):
            self.readers[who] = (self.readers.get(who, (0, 0))[0] + 1, seen.at or 0)
        if is_missed and seen.answer and seen.answer.is_stored and seen.answer.took <= SLOW:
            self.answered.append(seen.at or 0)
        refusal, at = Refusal.of(seen), seen.at or 0
        if refusal is None or refusal.code < 400:
            return None
        if refusal.code != NOT_FOUND:
            return refusal
        number, first, _ = self.absent or (0, at, at)
        self.absent = number + 1, first, at
        return None

    def sources_of(self, tenure: Tenure | None) -> set[str]:
        """Return the addresses and programs of the requests of a holder's process."""
        own = tenure.process if tenure and tenure.is_sure else None
        return {source for source, known in self.sources.items() if own and any(one.is_same(own) for one in known)}

    def is_only_source_of(self, tenure: Tenure | None, source: str) -> bool:
        """Return whether no other process was heard from there."""
        own = tenure.process if tenure else None
        return own is not None and all(one.is_same(own) for one in self.sources.get(source, ()))
