"""What a rule found in one write: a field error, the sentences about it, and the mode that the policy gives it."""

from collections.abc import Iterable
from enum import Enum
from itertools import islice
from typing import Final

from msgspec import Struct

from webhook.api.field import FieldError
from webhook.rules.mode import Mode
from webhook.rules.statement import Statement


class Weakened(Enum):
    """Why a finding that would deny does not."""

    BY_CAP = "the policy's mode, the cap for everything"
    WITHOUT_STAMPS = "no API server's stamp supports it"


class Finding(Struct, frozen=True, gc=False):
    """What a rule found, and, once `evaluate` has leveled it, what it leads to.

    A check sets the first five. `error` is the text of a denial, `happened` that of a warning on an admitted write
    (without it, the error is shown). `tier` is the strongest mode that the finding may have. `without_stamps` marks one
    that rests on the caller's clock because no API server's stamp is there. Findings with the same `fact` share one
    sentence, which lists all their rules; the last of them supplies its text.

    `evaluate` sets the others: the id of the `rule`, whether it repeats the API server's own validation (`parity`), the
    `mode` that the policy leaves, and why that is not `DENY` if it would be (`weakened`).
    """

    error: FieldError
    tier: Mode = Mode.DENY
    without_stamps: bool = False
    happened: Statement | None = None
    fact: str = ""
    rule: str = ""
    parity: bool = False
    mode: Mode = Mode.OFF
    weakened: Weakened | None = None


NOTHING: Final[tuple[Finding, ...]] = ()

MOST_FINDINGS: Final = 50
"""Findings that a verdict carries, and that one rule makes: an object may have hundreds of thousands of wrong items."""


def first_findings(errors: Iterable[FieldError]) -> tuple[Finding, ...]:
    """The first errors as findings; an iterator is not asked for more."""
    return tuple(Finding(error) for error in islice(errors, MOST_FINDINGS))
