"""The match condition by which the API server skips plain renewals, compared with the texts in `conditions/`.

The last text is that of deploy/base/90-webhook.yaml. `make e2e` runs that on API servers with each kind of write, so it
is verified as a whole: a text that differs is reported with the difference.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Final

from webhook.api_server.doctor.documents import MatchCondition, Webhook, WebhookEntry
from webhook.findings import ReportFinding
from webhook.text.quoting import truncate

MAX_CHARACTERS: Final = 16 * 1024
"""Characters of an expression that are compared; the shipped one has about 2,000."""

_EVERY_WRITE: Final = "true"
"""Excludes nothing: the components `all-renewals` and `bindings` replace the renewal condition by it."""
_SOURCE: Final = "the condition of deploy/base/90-webhook.yaml"
_COMMENT: Final = re.compile(r"//[^\n]*")
_TOKEN: Final = re.compile(r'"[^"]*"|\w+|[^\w\s]')
_EXCLUSION: Final = re.compile(r"""!request\.namespace\.startsWith\((?P<quote>['"])[a-z0-9][-a-z0-9]+(?P=quote)\)""")
"""An exclusion that needs no finding, as in deploy/overlays/openshift: request.namespace is always a string, so it
never errs. A prefix of one character is not among them: it can exclude every namespace, alone or with others."""

_SHIPPED: Final = [
    path.read_text(encoding="utf-8")
    for path in sorted(files("webhook.api_server.doctor").joinpath("conditions").iterdir(), key=lambda path: path.name)
]


def is_without_renewals(webhook: Webhook) -> bool:
    """True if plain renewals of leases never reach the webhook."""
    return not webhook.reviews("leases", "UPDATE") or find_renewal_condition(webhook) is not None


def find_renewal_condition(webhook: Webhook) -> MatchCondition | None:
    """Return the condition that is meant to skip plain renewals: it has half of the terms of a shipped text."""
    for condition in webhook.match_conditions or ():
        found = _split_terms(condition.expression)
        if any(2 * len(terms.keys() & found.keys()) >= len(terms) for terms in map(_split_terms, _SHIPPED)):
            return condition
    return None


def check_condition(entry: WebhookEntry) -> Iterable[ReportFinding]:
    """Check that the renewal condition is the shipped one, and that no other condition narrows what is reviewed."""
    ours = find_renewal_condition(entry.webhook)
    for number, condition in enumerate(entry.webhook.match_conditions or ()):
        place = f"matchConditions[{number}]: {condition.name}"
        text = condition.expression.strip()
        if condition is ours:
            yield from _compare_condition(entry, place, text)
        elif text != _EVERY_WRITE and not _EXCLUSION.fullmatch(text):
            yield entry.report(
                "condition-unknown",
                place,
                "a write for which this is false is never reviewed, and the condition is not a verified one: an error"
                " in it admits the write without review under Ignore and rejects it under Fail.",
                f"remove it, or compare it with {_SOURCE}; exclude namespaces by namespaceSelector, and writers by an"
                " exemption in the policy.",
            )


def _compare_condition(entry: WebhookEntry, place: str, expression: str) -> Iterator[ReportFinding]:
    if _normalize(expression) == _normalize(_SHIPPED[-1]):
        return
    found, shipped = _split_terms(expression), _split_terms(_SHIPPED[-1])
    missing = [text for term, text in shipped.items() if term not in found]
    added = [text for term, text in found.items() if term not in shipped]
    difference = "; ".join([*_format_list("without", missing), *_format_list("with", added)]) or "in another order"
    yield entry.report(
        "condition-changed",
        place,
        "each term of the verified text has one kind of write reviewed, or keeps the expression from failing, which"
        f" admits the write without review under Ignore and rejects it under Fail. This text is {difference}.",
        f"copy {_SOURCE} again, as a whole, or apply the overlay again, if the text is that of an earlier version;"
        " docs/renewals.md says what each term is for.",
    )


def _format_list(word: str, terms: Sequence[str]) -> list[str]:
    shown = [truncate(text, 200) for text in terms[:4]]
    shown += [f"{len(terms) - 4} more"] if len(terms) > 4 else []
    return [f"{word} {', '.join(shown)}"] if terms else []


def _split_terms(expression: str) -> dict[str, str]:
    """Return the parts between `||`: their tokens, by which they are compared, and their text."""
    if len(expression) > MAX_CHARACTERS:
        return {}
    text = " ".join(_COMMENT.sub("", expression).split())
    return {_normalize(term): term.strip() for term in text.split("||")}


def _normalize(expression: str) -> str:
    """Return the expression without layout and comments; no shipped text has strings that these could be in."""
    return " ".join(_TOKEN.findall(_COMMENT.sub("", expression)))
