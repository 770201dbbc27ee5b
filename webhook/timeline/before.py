"""What is known before an observation is taken in: of one lease, and of all."""

from collections.abc import Sequence

from msgspec import Struct

from webhook.api.managed_fields import Entry
from webhook.api.objects import Lease
from webhook.history.lease_history import LeaseHistory
from webhook.history.tenure import Tenure


class Bounds(Struct, frozen=True, gc=False):
    """`latest` is the last moment that is trusted, `until` the last one that was seen of any lease."""

    latest: int
    most_ticks: int
    until: int | None = None


class Before(Struct, frozen=True):
    """What a history knew before it took in an observation; `open` is the tenure that had not ended."""

    lease: Lease | None
    entries: Sequence[Entry]
    open: Tenure | None
    last_renewal: int | None
    tenures: int
    is_deleted: bool

    @classmethod
    def of(cls, history: LeaseHistory) -> "Before":
        """The state of the history now."""
        tenure = history.tenure
        is_open = tenure is not None and tenure.until is None
        return cls(
            None if history.is_deleted else history.lease,
            history.entries,
            tenure if is_open else None,
            tenure.last_renewal if tenure else None,
            sum(history.handovers.values()),
            history.is_deleted,
        )
