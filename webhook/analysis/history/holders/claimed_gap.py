"""The time between two holders by the clocks of their writers, where no API server dates what they wrote.

In: two tenures that followed each other. Out: a frozen value, None if the input does not show that time.
"""

from msgspec import Struct

from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.kubernetes.times import SECOND


class ClaimedGap(Struct, frozen=True):
    """From the last renewal of a holder, or its release, to the first write of the next one, by their own clocks.

    Instants are microseconds since 1970. `is_free`: the lease was free; else it still named the holder before, and
    `duration` is for how many seconds that one had it, None if it does not say that.
    """

    start: int
    end: int
    is_free: bool
    duration: int | None = None

    @property
    def length(self) -> int:
        """Microseconds."""
        return self.end - self.start

    @property
    def outlasts_lease(self) -> bool:
        """Whether the holder before let the lease expire, if both clocks are right."""
        return not self.is_free and self.duration is not None and self.length >= self.duration * SECOND


def find_claimed_gap(before: Tenure | None, after: Tenure) -> ClaimedGap | None:
    """Return how much later a holder took the lease than the one before renewed or released it, by their own clocks.

    Where the earlier clock was set back, the difference says nothing.
    """
    beginning = after.beginning
    if before is None or not beginning.write.is_claimed or beginning.is_unseen:
        return None
    ended = before.ended
    if before.set_back is not None and not before.set_back.is_over:
        return None
    if after.began is Handover.RELEASED and ended is not None and ended.is_claimed:
        gap = ClaimedGap(ended.at, beginning.write.at, is_free=True)
    elif after.is_unclear and before.is_claimed:
        gap = ClaimedGap(before.kept_until, beginning.write.at, is_free=False, duration=before.duration)
    else:
        return None
    return gap if gap.length > 0 else None
