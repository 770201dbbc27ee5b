"""One observation of a lease, from its beginning to what follows from it: every step of that has it in hand."""

from msgspec import Struct, field

from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.visibility.bounds import Bounds
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Observation


class Step(Struct):
    """An observation `seen` that is taken in.

    `write` is the write that it shows, `write_before` that of the observation before, and `events` what happened.
    """

    history: LeaseHistory
    seen: Observation
    bounds: Bounds
    write: Write
    write_before: Write
    events: list[LeaseEvent] = field(default_factory=list)
