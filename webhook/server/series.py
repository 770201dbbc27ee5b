"""The label values that each counter can have: a client cannot add one, and all of them are there from the start.

A series that appears with the value 1 has no increase, so an alert on `increase(...)` would miss the first event,
which is often the only one (Prometheus, "Instrumentation", "Avoid missing metrics").
"""

from collections.abc import Iterator
from itertools import product
from typing import Final

from webhook.api.request import Operation, Resource
from webhook.api.verdict import Mode
from webhook.decide import OBJECT_TYPES
from webhook.rules.events import Event
from webhook.rules.registry import RULES

OTHER: Final = "other"
"""What a client named and we do not know."""

VERDICTS: Final = ("allowed", "warned", "denied")
MALFORMED: Final = (
    *("framing", "head-size", "slow", "method", "expectation", "client", "bug"),
    *("path", "media-type", "body-size", "body", OTHER),
)
INCIDENTS: Final = ("bug", "no-time")
RELOADS: Final = tuple(product(("certificate", "policy"), ("success", "failure")))
DROPPED: Final = ("log", "capture")
FINDINGS: Final = tuple(
    product((*RULES, OBJECT_TYPES), (mode.word for mode in (Mode.AUDIT, Mode.WARN, Mode.DENY))),
)
"""Rule and mode."""

_UPDATES: Final = {
    Resource.LEASES: (
        *(Event.UNTOUCHED, Event.RENEWAL, Event.RELEASE, Event.CLAIM, Event.TAKEOVER, Event.STEAL, Event.EDIT),
    ),
    Resource.LEASECANDIDATES: (Event.UNTOUCHED, Event.UPDATE),
}


def reviews() -> Iterator[tuple[str, str, str, str]]:
    """Resource, operation, event and verdict of what this webhook is registered for.

    The event is empty where no rule ran: a wrong type, a request that contradicts itself, the kill switch.
    """
    for resource, updates in _UPDATES.items():
        events = {Operation.CREATE: (Event.CREATE,), Operation.UPDATE: updates, Operation.DELETE: (Event.DELETE,)}
        for operation, known in events.items():
            for event, verdict in product((*known, ""), VERDICTS):
                yield resource.value, operation.value, str(event), verdict
