"""Whether the match condition that drops plain renewals inside the API server says everything it must."""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final

from webhook.doctor import cel
from webhook.doctor.configuration import Entry, MatchCondition, Webhook
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.exclusion import Exclusion, read_exclusion
from webhook.doctor.namespaces import chosen_names
from webhook.doctor.renewal_terms import OLDER_NAMES, OUTDATED, OUTDATED_LOSS, REQUIREMENTS, Requirement

_CLOSE: Final = 0.6
"""Of two terms with more than this in common, one is taken for a change of the other."""
_EVERY_WRITE: Final = "true"
"""A condition that leaves nothing out: what the components observe and bindings make of the renewal condition."""
_SOURCE: Final = "the condition of deploy/base/90-webhook.yaml"
_NORMAL: Final = {one.name: next(iter(cel.terms(one.term))) for one in REQUIREMENTS}
_OUTDATED: Final = frozenset(next(iter(cel.terms(term))) for term in OUTDATED)
_OLDER_TEXT: Final = _OUTDATED | {_NORMAL[name] for name in OLDER_NAMES}
_KNOWN: Final = frozenset(_NORMAL.values())


def renewal_condition(webhook: Webhook) -> MatchCondition | None:
    """The condition that is meant to drop plain renewals: it has at least half of what it or the older text says."""
    for condition in webhook.match_conditions or ():
        found = cel.terms(condition.expression)
        if any(2 * len(text - found) <= len(text) for text in (_KNOWN, _OLDER_TEXT)):
            return condition
    return None


def check_condition(entry: Entry) -> Iterable[Diagnosis]:
    """The renewal condition says everything it must, and nothing else narrows what is seen."""
    ours = renewal_condition(entry.webhook)
    exclusions: list[Exclusion] = []
    for number, condition in enumerate(entry.webhook.match_conditions or ()):
        if condition.expression.strip() == _EVERY_WRITE:
            continue
        place = entry.place(f"matchConditions[{number}]", condition.name)
        if condition is ours:
            yield from _compare(place, cel.terms(condition.expression))
            continue
        exclusion = read_exclusion(condition.expression)
        if exclusion:
            exclusions.append(exclusion)
        else:
            yield Diagnosis(
                "condition-unknown",
                place,
                "a write for which this is false is never reviewed, and nobody verified it: an error in it admits the"
                " write unseen under Ignore and refuses it under Fail.",
                f"remove it, or compare it with {_SOURCE}; leave namespaces out by namespaceSelector, and writers by an"
                " exemption in the policy.",
            )
    chosen = chosen_names(entry.webhook.namespace_selector)
    if exclusions and chosen is not None and all(any(one.excludes(name) for one in exclusions) for name in chosen):
        yield Diagnosis(
            "condition-never-true",
            entry.place("matchConditions", "they leave out every namespace that namespaceSelector chooses"),
            "the webhook is never called, so nothing of what the rules promise is in force.",
            "leave namespaces out by namespaceSelector alone.",
        )


def _compare(place: str, found: frozenset[str]) -> Iterator[Diagnosis]:
    outdated = 2 * len(_OUTDATED & found) >= len(_OUTDATED)
    unknown = set(found - _KNOWN - (_OUTDATED if outdated else frozenset()))
    missing = _missing(found)
    if outdated:
        yield _outdated(place, missing)
        missing = [one for one in missing if _NORMAL[one.name] in _OLDER_TEXT]
    for requirement in missing:
        close = _closest(_NORMAL[requirement.name], unknown)
        unknown.discard(close)
        yield Diagnosis(
            "condition-term-changed" if close else "condition-term-missing",
            f"{place}, {requirement.name}",
            requirement.loss,
            f"take {_SOURCE} again, as a whole; what this term says: {requirement.term}",
        )
    for term in sorted(unknown):
        yield Diagnosis(
            "condition-term-unknown",
            f"{place}, {_shortened(term)}",
            "where it is true for a renewal, each renewal waits for the webhook; where it errs, the write is admitted"
            " unseen under Ignore and refused under Fail.",
            f"remove it; {_SOURCE} is verified as a whole.",
        )


def _outdated(place: str, missing: list[Requirement]) -> Diagnosis:
    return Diagnosis(
        "condition-outdated",
        f"{place}, without {', '.join(one.name for one in missing)}",
        OUTDATED_LOSS,
        f"replace it by {_SOURCE}; apply the overlay again.",
    )


def _missing(found: frozenset[str]) -> list[Requirement]:
    return [one for one in REQUIREMENTS if _NORMAL[one.name] not in found]


def _closest(wanted: str, unknown: set[str]) -> str:
    """The unknown term that has most of the wanted one's tokens in their order; empty if none has enough."""
    matcher = SequenceMatcher(a=(), b=wanted.split(" "), autojunk=False)
    best, closeness = "", _CLOSE
    for term in sorted(unknown):
        matcher.set_seq1(term.split(" "))
        if matcher.real_quick_ratio() > closeness and matcher.quick_ratio() > closeness:
            ratio = matcher.ratio()
            if ratio > closeness:
                best, closeness = term, ratio
    return best


def _shortened(term: str) -> str:
    return term if len(term) <= 80 else f"{term[:77]}..."
