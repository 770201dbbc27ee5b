"""The value that is passed to each step that adds one observation to the history of a lease."""

from msgspec import Struct, field

from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.visibility.bounds import Bounds
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Observation


class Step(Struct):
    """The observation `seen`, which is being taken into `history`.

    `write` is the write that it shows, `write_before` that of the observation before. The steps add to `events` what
    happened to the lease.
    """

    history: LeaseHistory
    seen: Observation
    bounds: Bounds
    write: Write
    write_before: Write
    events: list[LeaseEvent] = field(default_factory=list)
