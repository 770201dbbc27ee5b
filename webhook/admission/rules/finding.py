"""What a check returns: findings, and the sentences about them."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from webhook.admission.rules.answer_limits import MAX_FINDINGS
from webhook.admission.rules.mode import Mode
from webhook.kubernetes.field import FieldError
from webhook.text.quoting import LazyText, quote, quote_within, render

ELLIPSIS: Final = "..."


class Statement(Struct, frozen=True, gc=False):
    """A sentence about a write that has been admitted.

    `text` is a template of `str.format`: `{0}`, `{1}` stand for `names`, which clients choose and which are quoted, and
    `{page}` for the place that explains the rule.
    """

    text: LazyText
    names: tuple[str, ...] = ()

    def shorten(self, longest: int, page: str = "") -> str:
        """Return the sentence in at most `longest` characters: the longest names are cut first, and alike."""
        text = render(self.text)
        names = [quote(name) for name in self.names]
        whole = text.format(*names, page=page)
        if len(whole) <= longest:
            return whole
        lengths = [len(name) for name in names]
        space = longest - len(whole) + sum(lengths)
        level = next((level for level in range(space, 0, -1) if sum(min(one, level) for one in lengths) <= space), 0)
        shorter = text.format(*(quote_within(name, level) for name in self.names), page=page)
        return shorter if len(shorter) <= longest else shorter[: longest - len(ELLIPSIS)] + ELLIPSIS


def escape_braces(text: str) -> str:
    """Return text that stands in a template as it is, braces included."""
    return text.replace("{", "{{").replace("}", "}}")


class Finding(Struct, frozen=True, gc=False):
    """One finding of a rule.

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


def take_first_findings(errors: Iterable[FieldError]) -> tuple[Finding, ...]:
    """Return the first errors as findings; an iterator is not asked for more."""
    return tuple(Finding(error) for error in islice(errors, MAX_FINDINGS))
