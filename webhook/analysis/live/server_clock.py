"""The present moment by the clock of the API server, as far as a watch shows it."""

import time
from statistics import median_low
from typing import Final

from msgspec import Struct, field

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.history.status import date_state
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.items import Act, Item, Observation
from webhook.kubernetes.objects import Lease

_MEASURED: Final = 64
"""Leases by whose writes the clocks are compared, each by its latest one: one with forged stamps is outvoted."""


def read_clock() -> int:
    """Return the moment by this computer's clock, in microseconds since 1970."""
    return time.time_ns() // 1000


class ServerClock(Struct):
    """Compares the clocks by the writes that a watch shows; moments are in microseconds since 1970."""

    _delays: dict[Key, int] = field(default_factory=dict)

    def measure(self, item: Item, now: int) -> None:
        """Note how late this computer learns of a write: the difference of the clocks, plus the latency."""
        if not isinstance(item, Observation) or item.act is not Act.UPDATED or not isinstance(item.object, Lease):
            return
        at = date_state(item.object.spec, item.entries) if item.at is None else item.at
        if at is not None:
            key = (item.namespace, item.name)
            self._delays.pop(key, None)
            self._delays[key] = now - at
            if len(self._delays) > _MEASURED:
                del self._delays[next(iter(self._delays))]

    def estimate(self, now: int, until: int | None) -> int:
        """Return the moment at the API server when this computer's clock says `now`; `until` is its latest one seen."""
        if not self._delays:
            return max(now, until or 0)
        there = now - median_low(self._delays.values())
        return max(there, min(until or 0, there + MAX_TOLERANCE))
