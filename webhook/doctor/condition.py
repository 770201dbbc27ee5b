"""The match condition by which the API server skips plain renewals, compared with the shipped texts; and exclusions.

The texts are in `conditions/`, the one of deploy/base/90-webhook.yaml last. `make e2e` runs that on API servers with
each kind of write, so it is verified as a whole: a text that differs is reported with the difference.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Final

from webhook.api.text import truncate
from webhook.doctor.configuration import Entry, MatchCondition, Webhook, danger
from webhook.findings import Finding

MAX_CHARACTERS: Final = 16 * 1024
"""Characters of an expression that are compared; the shipped one has about 2,000."""

_EVERY_WRITE: Final = "true"
"""A condition that excludes nothing: the `observe` and `bindings` components replace the renewal condition by it."""
_SOURCE: Final = "the condition of deploy/base/90-webhook.yaml"
_COMMENT: Final = re.compile(r"//[^\n]*")
_TOKEN: Final = re.compile(r'"[^"]*"|\w+|[^\w\s]')
_EXCLUSION: Final = re.compile(r"""!request\.namespace\.startsWith\((?P<quote>['"])[a-z0-9][-a-z0-9]+(?P=quote)\)""")
"""What needs no finding, as in deploy/overlays/openshift: request.namespace is always a string, so it never errs. A
prefix of one character is not among them: it can exclude every namespace, alone or with others."""

_SHIPPED: Final = [
    path.read_text(encoding="utf-8")
    for path in sorted(files("webhook.doctor").joinpath("conditions").iterdir(), key=lambda path: path.name)
]


def renewal_condition(webhook: Webhook) -> MatchCondition | None:
    """Return the condition that is meant to skip plain renewals: it has half of the terms of a shipped text."""
    for condition in webhook.match_conditions or ():
        found = _terms(condition.expression)
        if any(2 * len(terms.keys() & found.keys()) >= len(terms) for terms in map(_terms, _SHIPPED)):
            return condition
    return None


def check_condition(entry: Entry) -> Iterable[Finding]:
    """Check that the renewal condition is the shipped one, and that no other condition narrows what is reviewed."""
    ours = renewal_condition(entry.webhook)
    for number, condition in enumerate(entry.webhook.match_conditions or ()):
        place = entry.place(f"matchConditions[{number}]", condition.name)
        text = condition.expression.strip()
        if condition is ours:
            yield from _compared(place, text)
        elif text != _EVERY_WRITE and not _EXCLUSION.fullmatch(text):
            yield danger(
                "condition-unknown",
                place,
                "a write for which this is false is never reviewed, and the condition is not a verified one: an error"
                " in it admits the write without review under Ignore and rejects it under Fail.",
                f"remove it, or compare it with {_SOURCE}; exclude namespaces by namespaceSelector, and writers by an"
                " exemption in the policy.",
            )


def _compared(place: str, expression: str) -> Iterator[Finding]:
    if _tokens(expression) == _tokens(_SHIPPED[-1]):
        return
    found, shipped = _terms(expression), _terms(_SHIPPED[-1])
    missing = [text for term, text in shipped.items() if term not in found]
    added = [text for term, text in found.items() if term not in shipped]
    difference = "; ".join([*_listed("without", missing), *_listed("with", added)]) or "in another order"
    yield danger(
        "condition-changed",
        place,
        "each term of the verified text has one kind of write reviewed, or keeps the expression from failing, which"
        f" admits the write without review under Ignore and rejects it under Fail. This text is {difference}.",
        f"copy {_SOURCE} again, as a whole, or apply the overlay again, if the text is that of an earlier version;"
        " docs/renewals.md says what each term is for.",
    )


def _listed(word: str, terms: Sequence[str], most: int = 4) -> list[str]:
    shown = [truncate(text, 200) for text in terms[:most]]
    shown += [f"{len(terms) - most} more"] if len(terms) > most else []
    return [f"{word} {', '.join(shown)}"] if terms else []


def _terms(expression: str) -> dict[str, str]:
    """Return the parts between `||`: their tokens, by which they are compared, and their text."""
    if len(expression) > MAX_CHARACTERS:
        return {}
    text = " ".join(_COMMENT.sub("", expression).split())
    return {_tokens(term): term.strip() for term in text.split("||")}


def _tokens(expression: str) -> str:
    """Return the expression without layout and comments; no shipped text has strings that these could be in."""
    return " ".join(_TOKEN.findall(_COMMENT.sub("", expression)))
