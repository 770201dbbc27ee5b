"""Label selectors of Kubernetes, as objects and as kubectl's text."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

_KEY: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EQUALITY: Final = re.compile(rf"({_KEY})\s*(=|==|!=)\s*({_VALUE})")
_SET: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EXISTENCE: Final = re.compile(rf"(!?)\s*({_KEY})")
_COMMA: Final = re.compile(r",(?![^(]*\))")
"""A comma that is not within parentheses."""


class SelectorRequirement(Struct, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None

    def __str__(self) -> str:
        """As kubectl takes it."""
        if self.operator in {"Exists", "DoesNotExist"}:
            return self.key if self.operator == "Exists" else f"!{self.key}"
        return f"{self.key} {self.operator.lower()} ({', '.join(self.values or ())})"


class Selector(Struct, frozen=True, rename="camel"):
    """A label selector; an empty one selects everything."""

    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[SelectorRequirement, ...] | None = None


def list_requirements(selector: Selector | None) -> tuple[SelectorRequirement, ...]:
    """Return labels and expressions in one form; all of them must hold."""
    if selector is None:
        return ()
    labels = (SelectorRequirement(key, "In", (value,)) for key, value in (selector.match_labels or {}).items())
    return (*labels, *(selector.match_expressions or ()))


def is_met(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet a requirement."""
    value = labels.get(requirement.key)
    listed, is_there = value in (requirement.values or ()), value is not None
    return {"In": listed, "NotIn": not listed, "Exists": is_there, "DoesNotExist": not is_there}[requirement.operator]


def parse_selector(text: str) -> tuple[SelectorRequirement, ...]:
    """Return the requirements of a text as kubectl takes it, `app=shop,tier in (a, b),!old`; raises ValueError.

    Source: Parse in apimachinery/pkg/labels/selector.go.
    """
    return tuple(_parse(text))


def _parse(text: str) -> Iterator[SelectorRequirement]:
    for part in map(str.strip, _COMMA.split(text)):
        if found := _EQUALITY.fullmatch(part):
            yield SelectorRequirement(found[1], "NotIn" if found[2] == "!=" else "In", (found[3],))
        elif found := _SET.fullmatch(part):
            values = tuple(map(str.strip, found[3].split(",")))
            yield SelectorRequirement(found[1], "In" if found[2] == "in" else "NotIn", values)
        elif found := _EXISTENCE.fullmatch(part):
            yield SelectorRequirement(found[2], "DoesNotExist" if found[1] else "Exists")
        else:
            raise ValueError(f'"{part}" is not a label selector such as app=shop, app!=shop, app in (a, b) or !app')
