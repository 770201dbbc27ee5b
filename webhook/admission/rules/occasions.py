"""Sets of resources, operations and events on which rules are evaluated."""

from typing import Final

from webhook.admission.rules.change import Event
from webhook.kubernetes.request import Operation, Resource

LEASES: Final = frozenset({Resource.LEASES})
CANDIDATES: Final = frozenset({Resource.LEASECANDIDATES})
BOTH: Final = LEASES | CANDIDATES

CREATE: Final = frozenset({Operation.CREATE})
UPDATE: Final = frozenset({Operation.UPDATE})
DELETE: Final = frozenset({Operation.DELETE})
WRITES: Final = CREATE | UPDATE
ANY_OPERATION: Final = WRITES | DELETE

ALL_EVENTS: Final = frozenset(Event)
SPEC_EVENTS: Final = ALL_EVENTS - {Event.UNTOUCHED}
"""Every event but a write that leaves spec as it is."""
NOT_A_RENEWAL: Final = ALL_EVENTS - {Event.RENEWAL, Event.UNTOUCHED}
NEW_HOLDER: Final = frozenset({Event.CREATE, Event.CLAIM, Event.TAKEOVER, Event.STEAL})
SAME_HOLDER: Final = SPEC_EVENTS - NEW_HOLDER - {Event.RELEASE}
