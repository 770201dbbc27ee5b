"""What a rule is: data around a pure function that returns findings, with all that a person needs to know about it."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import islice
from typing import Final

from msgspec import Struct

from webhook.api.field import FieldError
from webhook.api.request import Operation, Resource
from webhook.api.text import Text, made, quote, quote_within
from webhook.rules.change import Event


class Mode(IntEnum):
    """What a finding leads to; a lower mode does less."""

    OFF = 0
    AUDIT = 1
    WARN = 2
    DENY = 3

    @property
    def word(self) -> str:
        """The mode as policy files and annotations spell it."""
        return _WORDS[self]


_WORDS: Final = tuple(mode.name.lower() for mode in Mode)


ELLIPSIS: Final = "..."


class Statement(Struct, frozen=True, gc=False):
    """A sentence about a write that has been admitted.

    `text` is a template of `str.format`: `{0}`, `{1}` stand for `names`, which clients choose and which are quoted, and
    `{page}` for the place that explains the rule.
    """

    text: Text
    names: tuple[str, ...] = ()

    def within(self, longest: int, page: str = "") -> str:
        """The sentence in at most `longest` characters: the longest names are cut first, and alike."""
        text = made(self.text)
        names = [quote(name) for name in self.names]
        whole = text.format(*names, page=page)
        if len(whole) <= longest:
            return whole
        lengths = [len(name) for name in names]
        space = longest - len(whole) + sum(lengths)
        level = next((level for level in range(space, 0, -1) if sum(min(one, level) for one in lengths) <= space), 0)
        shorter = text.format(*(quote_within(name, level) for name in self.names), page=page)
        return shorter if len(shorter) <= longest else shorter[: longest - len(ELLIPSIS)] + ELLIPSIS


def literal(text: str) -> str:
    """Text that stands in a template as it is, braces included."""
    return text.replace("{", "{{").replace("}", "}}")


class Finding(Struct, frozen=True, gc=False):
    """What a rule found.

    `error` is the text of a denial, `happened` that of a warning on an admitted write
    (without it, the error is shown). `tier` is the strongest mode that the finding may have. `without_stamps` marks one
    that rests on the caller's clock because no API server's stamp is there. Findings with the same `fact` share one
    sentence, which lists all their rules; the last of them supplies its text.
    """

    error: FieldError
    tier: Mode = Mode.DENY
    without_stamps: bool = False
    happened: Statement | None = None
    fact: str = ""


NO_FINDINGS: Final[tuple[Finding, ...]] = ()

MAX_FINDINGS: Final = 50
"""Findings that a verdict carries, and that one rule makes: an object may have hundreds of thousands of wrong items."""


def first_findings(errors: Iterable[FieldError]) -> tuple[Finding, ...]:
    """The first errors as findings; an iterator is not asked for more."""
    return tuple(Finding(error) for error in islice(errors, MAX_FINDINGS))


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


REFUSED_BY_API_SERVER: Final = (
    "The API server refuses the same value itself, before it calls a webhook, so in a cluster that is where the denial "
    "comes from. The rule is for `check` and `replay`, which involve no API server."
)
CORRECT_IT: Final = "correct it in the manifest or the client that writes it; a current API server refuses the value"
NO_CLIENT: Final = "Manifests written by hand, and templates with an empty value. No known elector."


class Attack(Struct, frozen=True):
    """What a write that breaks a rule did to the lease of another writer.

    `text` is a phrase; a warning counts as well if `at_any_mode`, and a CREATE if `on_create`: a restored backup may
    create what makes a leader step down if it is written into an object that exists.
    """

    text: str
    at_any_mode: bool = True
    on_create: bool = True


class Rule(Struct, frozen=True):
    """One named check; the first line of the check's docstring is the rule's text everywhere.

    `events` are those on which the check is evaluated at all. `parity` rules repeat the API server's own validation: no
    exemption silences them. `about_writer` rules are skipped if the writer is not known (a bare manifest).
    `standard` and `strict` are the rule's modes in the presets of these names.

    The texts are sentences of Markdown: `why` says what happens without the rule, `who` which honest writers meet it,
    `fix` what they change. `attack` is what a denied write did if it looks like one. `stored` is how to fix a stored
    object that breaks the rule; "" if one state alone cannot break it.
    """

    id: str
    check: Check
    resources: frozenset[Resource]
    operations: frozenset[Operation]
    source: str
    why: str
    who: str
    fix: str
    attack: Attack | None = None
    stored: str = ""
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
