"""Which API servers refuse by their own validation what a rule denies, from the recorded corpora."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.conformance.comparison import evaluate_case, in_words_of_1_36, left_out, path_of_a_strategy
from tests.conformance.corpus import cases

VERSIONS: Final = ("1.36.3", "1.31.14")
"""The versions of the API servers whose validation was recorded."""


@cache
def find_refusing_versions() -> Mapping[str, tuple[str, ...]]:
    """Return, by rule, the versions that refuse every recorded case that the rule denies, and for the same reason."""
    refusing = defaultdict[str, list[str]](list)
    for version in VERSIONS:
        refused, stored = set[str](), set[str]()
        for case in cases(f"upstream-v{version}"):
            expected = case["expected"]
            words = {in_words_of_1_36((one["type"], one["field"], one["detail"])) for one in expected["errors"]}
            theirs = path_of_a_strategy(case, words)
            for rule, error in () if left_out(case) else evaluate_case(case).by_rule:
                is_refused = error in theirs or expected["decode_error"] is not None
                (refused if is_refused else stored).add(rule)
        for rule in refused - stored:
            refusing[rule].append(version)
    return {rule: tuple(versions) for rule, versions in refusing.items()}
