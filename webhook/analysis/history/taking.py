"""How a lease was taken while it still named its holder: after it expired, before, or not known."""

from webhook.analysis.history.events import Handover
from webhook.analysis.history.status import has_expired, was_live


def taking(kept_until: int | None, duration: int | None, at: int, skew: int, *, is_dated: bool) -> Handover:
    """Classify a write at `at` that replaced a holder whose last renewal was at `kept_until`.

    `skew` is by how much these may be off from each other: by clocks that differ, or a fraction of a second.

    | the write is dated | the lease, by the API servers' clocks | it was |
    |---|---|---|
    | no | | UNKNOWN: it may have been written long after `at` |
    | yes | live or not, within the skew of the clocks | UNKNOWN |
    | yes | its whole duration had passed | EXPIRED |
    | yes | live | STOLEN |
    | yes | neither: it ended within the tolerance for clocks | UNKNOWN |
    """
    if not is_dated:
        return Handover.UNKNOWN
    was_live_before, was_live_after = (was_live(kept_until, duration, at + shift) for shift in (-skew, skew))
    if was_live_before != was_live_after:
        return Handover.UNKNOWN
    if has_expired(kept_until, duration, at - skew):
        return Handover.EXPIRED
    return Handover.STOLEN if was_live(kept_until, duration, at) else Handover.UNKNOWN
