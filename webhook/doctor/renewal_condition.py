"""Whether the match condition that drops plain renewals inside the API server says everything it must."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from webhook.doctor import cel
from webhook.doctor.configuration import Entry, MatchCondition, Webhook
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.renewal_terms import REQUIREMENTS, Requirement

_EXCLUSION: Final = re.compile(
    r"""! request \. namespace \. startsWith \( "[^"]*" \)"""
    r"""|! \( request \. namespace in \[ "[^"]*"(?: , "[^"]*")* \] \)"""
    r"""|"[^"]*" != request \. namespace"""
)
"""Normal forms of conditions that leave namespaces out; request.namespace is always a string."""

_SOURCE: Final = "the condition of deploy/base/90-webhook.yaml"
_NORMAL: Final = {one.name: tuple(next(iter(cel.terms(form))) for form in one.forms) for one in REQUIREMENTS}
_KNOWN: Final = frozenset(form for forms in _NORMAL.values() for form in forms)


def renewal_condition(webhook: Webhook) -> MatchCondition | None:
    """The condition that is meant to drop plain renewals: it has at least half of what it must say."""
    for condition in webhook.match_conditions or ():
        if 2 * len(_missing(cel.terms(condition.expression))) <= len(REQUIREMENTS):
            return condition
    return None


def check_condition(entry: Entry) -> Iterable[Diagnosis]:
    """The renewal condition says everything it must, and nothing else narrows what is seen."""
    ours = renewal_condition(entry.webhook)
    for number, condition in enumerate(entry.webhook.match_conditions or ()):
        place = entry.place(f"matchConditions[{number}]", condition.name)
        if condition is ours:
            yield from _compare(place, cel.terms(condition.expression))
        elif not _excludes_namespaces(condition):
            yield Diagnosis(
                "condition-unknown",
                place,
                "a write for which this is false is never reviewed, and nobody verified it: an error in it admits the"
                " write unseen under Ignore and refuses it under Fail.",
                f"remove it, or compare it with {_SOURCE}; leave namespaces out by namespaceSelector, and writers by an"
                " exemption in the policy.",
            )


def _compare(place: str, found: frozenset[str]) -> Iterator[Diagnosis]:
    unknown = set(found - _KNOWN)
    for requirement in _missing(found):
        close = get_close_matches(_NORMAL[requirement.name][0], sorted(unknown), n=1)
        unknown.difference_update(close)
        yield Diagnosis(
            "condition-term-changed" if close else "condition-term-missing",
            f"{place}, {requirement.name}",
            requirement.loss,
            f"put the term back as it was verified: {requirement.forms[0]}",
        )
    for term in sorted(unknown):
        yield Diagnosis(
            "condition-term-unknown",
            f"{place}, {_shortened(term)}",
            "where it is true for a renewal, each renewal waits for the webhook; where it errs, the write is admitted"
            " unseen under Ignore and refused under Fail.",
            f"remove it; {_SOURCE} is verified as a whole.",
        )


def _missing(found: frozenset[str]) -> list[Requirement]:
    return [one for one in REQUIREMENTS if found.isdisjoint(_NORMAL[one.name])]


def _excludes_namespaces(condition: MatchCondition) -> bool:
    """A condition that cannot err and says only which namespaces stay outside."""
    found = cel.terms(condition.expression)
    return len(found) == 1 and all(_EXCLUSION.fullmatch(part) for term in found for part in term.split(" && "))


def _shortened(term: str) -> str:
    return term if len(term) <= 80 else f"{term[:77]}..."
