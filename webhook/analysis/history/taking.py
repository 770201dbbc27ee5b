"""How a lease was taken while it still named its holder: after it expired, before, or not known."""

from webhook.analysis.history.events import Handover
from webhook.analysis.history.status import has_expired, was_live


def classify_taking(
    kept_until: int | None, duration: int | None, at: int, *, less: int, more: int, is_dated: bool
) -> Handover:
    """Classify a write at `at` that replaced a holder whose last renewal was at `kept_until`.

    `less` and `more` are by how much less or more time may have passed in between: clocks differ, stamps have whole
    seconds, and a write is stored at some time between its request and the answer.

    | the write is dated | the lease, by the API servers' clocks | it was |
    |---|---|---|
    | no | | UNKNOWN: it may have been written long after `at` |
    | yes | live or not, within those limits | UNKNOWN |
    | yes | its whole duration had passed | EXPIRED |
    | yes | live | STOLEN |
    | yes | neither: it ended within the tolerance for clocks | UNKNOWN |
    """
    if not is_dated:
        return Handover.UNKNOWN
    was_live_before, was_live_after = (was_live(kept_until, duration, at + shift) for shift in (-less, more))
    if was_live_before != was_live_after:
        return Handover.UNKNOWN
    if has_expired(kept_until, duration, at - less):
        return Handover.EXPIRED
    return Handover.STOLEN if was_live(kept_until, duration, at) else Handover.UNKNOWN
