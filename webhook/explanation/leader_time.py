"""How long a lease had no leader: less than it had no renewal, because a leader that is cut off leads for a while.

client-go's deadline begins with the first try after the last renewal, one retry period later.
Source: client-go `tools/leaderelection/leaderelection.go`, `renew`.
"""

from typing import Final

from webhook.explanation.words import length
from webhook.history.timing import timing_of
from webhook.rules.times import SECOND

_USUAL: Final = 15


def deadline_of(duration: int | None) -> int:
    """Microseconds after the last renewal before which no client stops; `duration` is that of the lease in seconds."""
    return int(timing_of(_known(duration), None).deadline * SECOND)


def goes_on_for(duration: int | None) -> int:
    """Microseconds after the last renewal for which most clients lead at most."""
    found = timing_of(_known(duration), None)
    return int((found.deadline + found.retry) * SECOND)


def range_without_leader(gap: int, duration: int | None, *, renewed_again: bool = False) -> tuple[int, int]:
    """Microseconds without a leader, at least and at most; `gap` is from the last renewal to the next one.

    A process that ended did not lead any more; one that kept running led until its deadline. If it renewed again, it
    had kept running.
    """
    if renewed_again:
        return 0, max(0, gap - deadline_of(duration))
    return max(0, gap - goes_on_for(duration)), gap


def without_leader(gap: int, duration: int | None) -> str:
    """The range after a holder let the lease expire, and another took it."""
    least, _ = range_without_leader(gap, duration)
    if not least:
        return f"no one led for up to {length(gap)}"
    return (
        f"no one led for {length(least)} to {length(gap)} (most clients lead for up to {length(goes_on_for(duration))} "
        "after their last renewal)"
    )


def _known(duration: int | None) -> int:
    return duration if duration and duration > 1 else _USUAL
