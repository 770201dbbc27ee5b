"""When each process asked for a lease last, and how often it does: what an audit log shows of who has fallen silent.

In: every request of an audit log. Out: by process, when the latest of its requests were received.
"""

from collections import deque
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation, Writer

KEPT: Final = 5
"""Requests of each process that are kept, the latest."""


class Heard(Struct):
    """The latest requests of each process, in microseconds since 1970; who is not authenticated is Writer()."""

    times: dict[Writer, deque[int]] = field(default_factory=dict)
    first: dict[Writer, int] = field(default_factory=dict)
    """The time at which the first request of each of them was received."""
    nodes: dict[Writer, str] = field(default_factory=dict)
    """The node of the pod of each of them, as its token says."""
    forgotten_until: int = 0
    """When a process was last heard that is not kept, because many others were heard later."""

    @property
    def has_forgotten(self) -> bool:
        """Whether there were more processes than are kept."""
        return self.forgotten_until > 0

    def note_request(self, seen: Observation) -> None:
        """Add a request of any kind."""
        who = seen.writer.process if seen.writer else Writer()
        times = self.times.get(who)
        if times is None:
            if len(self.times) >= MAX_LISTED:
                oldest = min(self.times, key=self._find_last)
                self.forgotten_until = max(self.forgotten_until, self._find_last(oldest))
                del self.times[oldest]
                del self.first[oldest]
                self.nodes.pop(oldest, None)
            times = self.times[who] = deque(maxlen=KEPT)
            self.first[who] = (seen.at or 0) - seen.took
        if seen.writer and seen.writer.pod and seen.writer.node:
            self.nodes[who] = seen.writer.node
        times.append((seen.at or 0) - seen.took)

    def _find_last(self, who: Writer) -> int:
        return max(self.times[who])
