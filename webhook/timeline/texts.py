"""The texts of marks and lanes: text from a cluster, truncated, with everything invisible escaped."""

from typing import Final

from webhook.api.objects import LeaseCandidateSpec, LeaseSpec
from webhook.api.text import cut, escape, quote
from webhook.explanation.words import length, writer
from webhook.history.tenure import Tenure
from webhook.observations.observation import Answer, Writer

LONGEST_NAME: Final = 256
LONGEST_TEXT: Final = 4000
"""Characters of a mark; a denial may have 12 KB."""
_MOST_WRITERS: Final = 3
_LONGEST_FIELD: Final = 60

_LEASE_FIELDS: Final = ("lease_duration_seconds", "lease_transitions", "strategy", "preferred_holder")
_CANDIDATE_FIELDS: Final = ("lease_name", "binary_version", "emulation_version", "strategy", "preferred_strategies")

_NOTHING: Final[tuple[object, ...]] = (None, "", [])
"""An API server stores all of them as nothing."""


def shown(text: str) -> str:
    """A name as it is drawn and searched for."""
    return escape(cut(text, LONGEST_NAME))


def sentence(text: str) -> str:
    """The text of a mark."""
    return escape(cut(text, LONGEST_TEXT))


def by(one: Writer | None) -> str:
    """` by shop/checkout from pod checkout-1`, "" if the input does not show who wrote."""
    return f" by {writer(one)}" if one and one.user else ""


def writer_name(one: Writer | None) -> str:
    """Who wrote, for a column of its own."""
    return shown(writer(one)) if one and one.user else ""


def writers_of(tenure: Tenure) -> str:
    """Who wrote as the holder; several only if several did."""
    return shown(" and ".join(writer(one) for one in tenure.writers[-_MOST_WRITERS:]))


def changed_fields(old: LeaseSpec | LeaseCandidateSpec, new: LeaseSpec | LeaseCandidateSpec) -> str:
    """`leaseTransitions 3 -> 2147483647`: the fields that are changed beside the times and the holder; or ""."""
    fields = _LEASE_FIELDS if isinstance(new, LeaseSpec) else _CANDIDATE_FIELDS
    pairs = ((field, getattr(old, field, None), getattr(new, field, None)) for field in fields)
    return ", ".join(
        f"{_camel(field)} {_value(before)} -> {_value(after)}"
        for field, before, after in pairs
        if before != after and not (before in _NOTHING and after in _NOTHING)
    )


def refused(answer: Answer, writer: Writer | None) -> str:
    """What the API server answered to a write that was not stored."""
    said = f": {answer.message}" if answer.message else ""
    took = f" after {length(answer.took)}" if answer.took >= 1_000_000 else ""
    code = f" with {answer.code}" if answer.code >= 400 else ""
    return sentence(f"a write{by(writer)} was answered{code}{took}{said}")


def _value(value: object) -> str:
    return "absent" if value is None else cut(quote(value), _LONGEST_FIELD)


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)
