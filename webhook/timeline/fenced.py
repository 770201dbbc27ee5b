"""Writes of other objects that a fence refused, by the lease of the fence."""

from typing import Final

from msgspec import Struct, field

from webhook.history.cluster_history import Key
from webhook.observations.observation import Fenced
from webhook.timeline.marks import MarkRecord
from webhook.timeline.model import Mark, MarkKind
from webhook.timeline.texts import by, sentence, writer_name

MOST_FENCES: Final = 10_000


class FencedWrites(Struct):
    """`unplaced` counts, by fence, writes for which the log does not show the lease of the fence."""

    marks: dict[Key, MarkRecord] = field(default_factory=dict)
    unplaced: dict[str, int] = field(default_factory=dict)
    _leases: dict[str, Key] = field(default_factory=dict)

    def lease_of(self, seen: Fenced) -> Key | None:
        """The lease of the fence; None, and counted, if no message of that fence has named it so far."""
        key = (seen.namespace, seen.name) if seen.name else self._leases.get(seen.fence)
        if key is None:
            if seen.fence in self.unplaced or len(self.unplaced) < MOST_FENCES:
                self.unplaced[seen.fence] = self.unplaced.get(seen.fence, 0) + 1
        elif len(self._leases) < MOST_FENCES:
            self._leases[seen.fence] = key
        return key

    def observe(self, seen: Fenced, key: Key, holder: str) -> None:
        """Add a write that concerns a lease; `holder` is the holder of that lease."""
        if key not in self.marks and len(self.marks) >= MOST_FENCES:
            return
        what = "refused" if seen.is_refused else "noted, and did not refuse,"
        text = sentence(f"fence {seen.fence} {what} {seen.target}{by(seen.writer)}: {seen.message}")
        mark = Mark(MarkKind.FENCED, seen.at, text, holder, writer_name(seen.writer))
        self.marks.setdefault(key, MarkRecord()).add(mark)
