"""How far a holder's clock is off, by the renewTime that it writes and the time at which an API server stored it."""

from msgspec import Struct

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.kubernetes.times import SECOND


class HolderClock(Struct, frozen=True):
    """By how many microseconds a clock is ahead of the API server's; less than 0 if it is behind."""

    ahead: int | None = None
    """None unless two writes agree, or the clock is right."""
    ahead_at_last: int | None = None
    """By how much the clock is ahead, by the latest write alone."""

    def measure(self, ahead: int | None, skew: int) -> "HolderClock":
        """Return what is known after a write: one odd renewTime may be that of a late request, or another writer's.

        `ahead` is by how much it was by that write, `skew` by how much clocks of API servers differ.
        """
        if ahead is None:
            return HolderClock()
        is_odd = abs(ahead) > MAX_TOLERANCE
        is_alone = self.ahead_at_last is not None and abs(self.ahead_at_last - ahead) > SECOND
        is_server = abs(ahead) <= skew + MAX_TOLERANCE
        return HolderClock(None if is_odd and (is_alone or is_server) else ahead, ahead)
