"""The modules that test the rules, whose data other tests use.

By the id of the rule, but for the first:

- `WORDING`: writes with what a rule says of them.
- `WRITES_IT_SPEAKS_OF`: more writes of which a rule speaks, where those whose wording is pinned lack a kind: one that
  API servers send and policies see, one of each event on which the rule is evaluated in ordinary writes, and a renewal
  if it denies any.
- `WRITES_IT_ALLOWS`: writes of which a rule is silent, where the cases of the module's tests and what stands beside its
  other writes (`tests/rule_policies/neighbors.py`) lack one that a clause of its CEL is for.
- `WHERE_CEL_DIFFERS`: of which writes a policy of the API server says something else than the rule, as `lacks` of its
  `RuleInCel` says: a function of a request and of the field of which the rule speaks, "" where the policy speaks.
- `TEXT_DIFFERS_IN_CEL`: what of its text a policy does not say, or in other words, as a regular expression.
"""

import pkgutil
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from tests.factories import Document
from tests.rules import election


@cache
def modules() -> Sequence[ModuleType]:
    """Return the modules that test the rules of elections."""
    return [import_module(found.name) for found in pkgutil.iter_modules(election.__path__, f"{election.__name__}.")]


def list_cases(rule: str) -> Sequence[Document]:
    """Return the reviews that the module of a rule lists for its tests, and those of `WRITES_IT_ALLOWS`."""
    return [
        review
        for module in modules()
        if any(case.values[0] == rule for case in getattr(module, "WORDING", ()))
        for review in [*_find_cases(module), *getattr(module, "WRITES_IT_ALLOWS", {}).get(rule, ())]
    ]


def _find_cases(module: ModuleType) -> Iterator[Document]:
    marks = [mark for test in vars(module).values() for mark in getattr(test, "pytestmark", ())]
    for mark in marks:
        if mark.name == "parametrize":
            for case in mark.args[1]:
                yield from _find_reviews(getattr(case, "values", case))


def _find_reviews(value: Any) -> Iterator[Document]:
    if isinstance(value, dict) and isinstance(value.get("request"), dict):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _find_reviews(item)
