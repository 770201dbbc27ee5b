"""The writes of which the tests of a rule say what the rule finds, for tests of all rules."""

from collections.abc import Iterator, Sequence
from functools import cache

from tests.factories import Document
from tests.rules import test_api_sentences
from tests.rules.modules import modules


@cache
def pinned_writes() -> Sequence[tuple[str, Document]]:
    """Return rules, each with the review of a write of which it speaks."""
    return [*_find_writes()]


def _find_writes() -> Iterator[tuple[str, Document]]:
    for module in modules():
        for case in getattr(module, "WORDING", ()):
            rule, review, *_ = case.values
            yield rule, review
        for rule, reviews in getattr(module, "WRITES_IT_SPEAKS_OF", {}).items():
            yield from ((rule, review) for review in reviews)
    for case in test_api_sentences.cases("writes"):
        kind, version, write = case.values
        if denied := write.get("denied"):
            yield denied, test_api_sentences.review_of(kind, version, write)
