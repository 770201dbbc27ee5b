"""Every recorded verdict of the API server's own validation, evaluated end to end; the differences are counted."""

from collections import defaultdict

import pytest

from tests.conformance.comparison import (
    DIFFERENCES,
    disagreements,
    evaluate_case,
    in_words_of_1_36,
    left_out,
    path_of_a_strategy,
)
from tests.conformance.conftest import report
from tests.conformance.corpus import cases
from tools.docs.upstream import COMPARED as REFUSING
from webhook.admission.rules.registry import RULES
from webhook.api_server.rule_policies import is_refused_upstream

COMPARED = {"upstream-v1.36.3": 5327, "upstream-v1.31.14": 1824}
"""Number of cases of each corpus that an API server could send to a webhook."""

DIFFERENCES_OF = {"upstream-v1.36.3": "abdf", "upstream-v1.31.14": "abcdef"}
"""The differences that a corpus can show: (c) and (e) are about v1alpha1 alone."""


@pytest.mark.parametrize("name", COMPARED)
def test_every_case_is_evaluated_as_upstream_but_for_the_named_differences(
    name: str, request: pytest.FixtureRequest
) -> None:
    recorded = cases(name)
    lines, count = disagreements(recorded)
    report(request.config, name, count)
    assert lines == []
    compared = sum(times for line, times in count.items() if line.startswith("compared: "))
    left_out = sum(times for line, times in count.items() if line.startswith("left out: "))
    assert (compared, compared + left_out) == (COMPARED[name], len(recorded))
    assert "".join(line[1] for line in DIFFERENCES if count[line]) == DIFFERENCES_OF[name]


def test_the_pages_of_rules_name_the_versions_that_refuse_the_same() -> None:
    upstream = {rule.id for rule in RULES.values() if is_refused_upstream(rule)} | {"object-types"}
    refusing = defaultdict[str, list[str]](list)
    for corpus in COMPARED:
        refused, only_ours = set[str](), set[str]()
        for case in cases(corpus):
            expected = case["expected"]
            words = {in_words_of_1_36((one["type"], one["field"], one["detail"])) for one in expected["errors"]}
            theirs = path_of_a_strategy(case, words)
            for rule, error in () if left_out(case) else evaluate_case(case).by_rule:
                is_theirs = error in theirs or expected["decode_error"] is not None
                (refused if is_theirs else only_ours).add(rule)
        for rule in upstream & refused - only_ours:
            refusing[rule].append(corpus.removeprefix("upstream-v"))
    assert {rule: tuple(versions) for rule, versions in refusing.items()} == dict(REFUSING)
