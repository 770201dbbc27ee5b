"""The modules that test the rules, whose data other tests use.

By the id of the rule, but for the first:

- `WORDING`: writes with what a rule says of them.
- `WRITES_IT_SPEAKS_OF`: more writes of which a rule speaks, where those whose wording is pinned lack a kind: one that
  API servers send and policies see, one of each event on which the rule is evaluated in ordinary writes, and a renewal
  if it denies any.
- `WRITES_IT_ALLOWS`: writes of which a rule is silent, where what the module's tests evaluate and what stands beside
  its other writes (`tests/rule_policies/neighbors.py`) lack one that a clause of its CEL is for.
- `WHERE_CEL_DIFFERS`: of which writes a policy of the API server says something else than the rule, as `lacks` of its
  `RuleInCel` says: a function of a request and of the field of which the rule speaks, "" where the policy speaks.
- `TEXT_DIFFERS_IN_CEL`: what of its text a policy does not say, or in other words, as a regular expression.
"""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any

from hypothesis import is_hypothesis_test

from tests.factories import Document
from tests.rules import election
from tests.rules.findings import recording_reviews


@cache
def modules() -> Sequence[ModuleType]:
    """Return the modules that test the rules of elections."""
    return [import_module(found.name) for found in pkgutil.iter_modules(election.__path__, f"{election.__name__}.")]


def list_evaluated_reviews(rule: str) -> Sequence[Document]:
    """Return the reviews that the tests of the module of a rule evaluate, and those of `WRITES_IT_ALLOWS`."""
    return [
        review
        for module in modules()
        if any(case.values[0] == rule for case in getattr(module, "WORDING", ()))
        for review in [*_play_tests(module), *getattr(module, "WRITES_IT_ALLOWS", {}).get(rule, ())]
    ]


@cache
def _play_tests(module: ModuleType) -> Sequence[Document]:
    """Return the reviews that the tests of a module list or evaluate: what they say of them is for their own run."""
    found: list[Document] = []
    for name, test in [*vars(module).items()]:
        if name.startswith("test_") and callable(test) and not is_hypothesis_test(test):
            cases = [*_list_arguments(test)]
            found += [review for case in cases for review in _find_reviews([*case.values()])]
            with recording_reviews(found):
                for case in cases:
                    # A test that needs a fixture, or fails, shows what it evaluated until then.
                    with suppress(Exception):
                        test(**case)
    return found


def _list_arguments(test: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of each case of a test."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for cases in product(*([*_list_cases(*mark.args[:2])] for mark in marks)):
        yield {name: value for case in cases for name, value in case.items()}


def _list_cases(names: str | Sequence[str], cases: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    for case in cases:
        values = getattr(case, "values", case)
        is_one = len(split) == 1 and values is case
        yield dict(zip(split, [values] if is_one else values, strict=True))


def _find_reviews(value: Any) -> Iterator[Document]:
    if isinstance(value, dict) and isinstance(value.get("request"), dict):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _find_reviews(item)
