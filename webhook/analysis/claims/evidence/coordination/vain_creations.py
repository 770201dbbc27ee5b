"""Creations by which an API server would name a holder of a lease that exists: they are answered with 409 for as long.

Source: the recorded incident of a preferredHolder that named no candidate. An API server asked every few seconds, and
no one led until it was cleared.
"""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import format_clock, format_count
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.lease import LeaseHistory

_MIN_TIMES: Final = 3
"""One or two may be late, of an election that another API server has held."""
_CONFLICT: Final = 409


class VainCreations(Struct, frozen=True):
    """Creations since the last renewal that failed as the lease exists; times in microseconds since 1970."""

    count: int
    first: int
    last: int

    def describe(self, now: int) -> str:
        """`31 creations by an API server, which would name a holder, were answered with 409 until 12:02:31Z: ...`."""
        number, until = format_count(self.count, "creation"), format_clock(self.last, now)
        return f"{number} by an API server, to name a holder, were answered with 409 until {until}: the lease exists"


def find_vain_creations(history: LeaseHistory) -> VainCreations | None:
    """Return the creations of API servers that failed since the holder of a coordinated election renewed last."""
    tenure = history.current_tenure
    if tenure is None or not tenure.is_coordinated:
        return None
    times = [
        one.at
        for one in history.requests.refusals
        if one.is_creation and one.code == _CONFLICT and one.writer.user == API_SERVER and one.at > tenure.last_renewal
    ]
    return VainCreations(len(times), times[0], times[-1]) if len(times) >= _MIN_TIMES else None
