"""What a rule is, data around a pure function, and what a person needs to know about it beyond its text."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from webhook.api.request import Operation, Resource
from webhook.rules.events import Event
from webhook.rules.finding import Finding
from webhook.rules.mode import Mode

LEASES: Final = frozenset({Resource.LEASES})
CANDIDATES: Final = frozenset({Resource.LEASECANDIDATES})
BOTH: Final = LEASES | CANDIDATES
CREATE: Final = frozenset({Operation.CREATE})
UPDATE: Final = frozenset({Operation.UPDATE})
DELETE: Final = frozenset({Operation.DELETE})
WRITES: Final = CREATE | UPDATE
ANY_OPERATION: Final = WRITES | DELETE

ALL_EVENTS: Final = frozenset(Event)
NOT_A_RENEWAL: Final = ALL_EVENTS - {Event.RENEWAL, Event.UNTOUCHED}
TOUCHED: Final = ALL_EVENTS - {Event.UNTOUCHED}


Check = Callable[..., Iterable[Finding]]


class Rule(Struct, frozen=True):
    """One named check; the first line of the check's docstring is the rule's text everywhere.

    `events` are those on which the check is evaluated at all. `parity` rules repeat the API server's own validation: no
    exemption silences them. `about_writer` rules are skipped if the writer is not known (a bare manifest).
    `standard` and `strict` are the rule's modes in the presets of these names.
    """

    id: str
    check: Check
    resources: frozenset[Resource]
    operations: frozenset[Operation]
    source: str
    events: frozenset[Event] = ALL_EVENTS
    parity: bool = False
    about_writer: bool = False
    never_exempt: bool = False
    standard: Mode = Mode.DENY
    strict: Mode = Mode.DENY

    @property
    def summary(self) -> str:
        """The rule as one sentence."""
        return (self.check.__doc__ or "").strip().partition("\n")[0]

    @property
    def observe(self) -> Mode:
        """The mode in the preset observe, below its cap: a deny if strict denies, else standard's."""
        return Mode.DENY if self.strict is Mode.DENY else self.standard


class Guidance(Struct, frozen=True):
    """Sentences of Markdown about one rule; `lease-webhook rules` and docs/rules show them.

    `why` says what happens without the rule, `who` which honest writers meet it, `fix` what they change.
    """

    why: str
    who: str
    fix: str
