"""What an audit log shows beside the writes of a lease: who reads it, and whether the holder's pod still asks."""

from typing import Final

from msgspec import Struct, field

from webhook.history.tenure import Tenure
from webhook.observations.observation import Observation

MOST_READERS: Final = 16


class Readers(Struct):
    """Pods, or users without one, by how often and when last (microseconds since 1970) they read the lease."""

    counts: dict[str, int] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)

    def add(self, seen: Observation) -> None:
        """Take in a read."""
        who = (seen.writer.pod or seen.writer.name) if seen.writer else ""
        if who and (who in self.counts or len(self.counts) < MOST_READERS):
            self.counts[who] = self.counts.get(who, 0) + 1
            self.latest[who] = seen.at or 0


def hear(seen: Observation, holder: Tenure | None, lost: Tenure | None) -> None:
    """Remember a request of the holder's pods, or the first one of the pods of the holder that lost the lease to it."""
    pod = seen.writer.pod if seen.writer else ""
    if not pod or seen.at is None or holder is None:
        return
    received = seen.at - (seen.answer.took if seen.answer else 0)
    if pod in holder.pods:
        holder.requests.append(received)
    elif lost is not None and lost.heard_again is None and pod in lost.pods and received > holder.since:
        lost.heard_again = received
