"""Whether the match condition by which the API server skips plain renewals has all its terms."""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final

from webhook.doctor import cel
from webhook.doctor.configuration import Entry, MatchCondition, Webhook
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.exclusion import Exclusion, read_exclusion
from webhook.doctor.namespaces import chosen_names
from webhook.doctor.renewal_terms import CONDITION_TERMS, OLDER_NAMES, OUTDATED, OUTDATED_LOSS, ConditionTerm

_CLOSE: Final = 0.6
"""Two terms that have more than this share in common count as one term that was changed."""
_EVERY_WRITE: Final = "true"
"""A condition that excludes nothing: the components observe and bindings replace the renewal condition by it."""
_SOURCE: Final = "the condition of deploy/base/90-webhook.yaml"
_NORMAL: Final = {one.name: next(iter(cel.terms(one.term))) for one in CONDITION_TERMS}
_OUTDATED: Final = frozenset(next(iter(cel.terms(term))) for term in OUTDATED)
_OLDER_TEXT: Final = _OUTDATED | {_NORMAL[name] for name in OLDER_NAMES}
_KNOWN: Final = frozenset(_NORMAL.values())


def renewal_condition(webhook: Webhook) -> MatchCondition | None:
    """The condition that is meant to skip plain renewals: it has at least half of the terms of a known version."""
    for condition in webhook.match_conditions or ():
        found = cel.terms(condition.expression)
        if any(2 * len(text - found) <= len(text) for text in (_KNOWN, _OLDER_TEXT)):
            return condition
    return None


def check_condition(entry: Entry) -> Iterable[Diagnosis]:
    """The renewal condition has all its terms, and no other condition narrows what is reviewed."""
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
                "a write for which this is false is never reviewed, and the condition is not a verified one: an "
                "error in"
                " it admits the write without review under Ignore and rejects it under Fail.",
                f"remove it, or compare it with {_SOURCE}; exclude namespaces by namespaceSelector, and writers by an"
                " exemption in the policy.",
            )
    chosen = chosen_names(entry.webhook.namespace_selector)
    if exclusions and chosen is not None and all(any(one.excludes(name) for one in exclusions) for name in chosen):
        yield Diagnosis(
            "condition-never-true",
            entry.place("matchConditions", "they exclude every namespace that namespaceSelector selects"),
            "the webhook is never called, so none of its rules is in force.",
            "exclude namespaces by namespaceSelector alone.",
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
            f"copy {_SOURCE} again, as a whole; this term is: {requirement.term}",
        )
    for term in sorted(unknown):
        yield Diagnosis(
            "condition-term-unknown",
            f"{place}, {_shortened(term)}",
            "if it is true for a renewal, the renewal waits for the webhook; if it fails, the write is admitted without"
            " review under Ignore and rejected under Fail.",
            f"remove it; {_SOURCE} is verified as a whole.",
        )


def _outdated(place: str, missing: list[ConditionTerm]) -> Diagnosis:
    return Diagnosis(
        "condition-outdated",
        f"{place}, without {', '.join(one.name for one in missing)}",
        OUTDATED_LOSS,
        f"replace it with {_SOURCE}; apply the overlay again.",
    )


def _missing(found: frozenset[str]) -> list[ConditionTerm]:
    return [one for one in CONDITION_TERMS if _NORMAL[one.name] not in found]


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
