"""Every recorded verdict of the API server's own validation, evaluated end to end; the differences are counted."""

import pytest

from tests.conformance.comparison import DIFFERENCES, disagreements
from tests.conformance.conftest import report
from tests.conformance.corpus import cases
from tests.conformance.refusals import find_refusing_versions
from webhook.admission.rules.registry import OBJECT_TYPES_ID, RULES
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


def test_a_version_that_stores_what_a_rule_denies_does_not_refuse_the_same() -> None:
    refusing = find_refusing_versions()
    assert refusing["object-name"] == ("1.36.3", "1.31.14")
    assert refusing["candidate-strategy"] == ("1.36.3",), "1.31.14 has a list of strategies instead"
    assert "candidate-lease-name-format" not in refusing, "both store such a name"


def test_each_field_rule_is_compared_with_an_api_server() -> None:
    upstream = {rule.id for rule in RULES.values() if is_refused_upstream(rule)} | {OBJECT_TYPES_ID}
    not_compared = upstream - find_refusing_versions().keys()
    assert not_compared == {"request-options"}, "the corpora have objects, and no options"
