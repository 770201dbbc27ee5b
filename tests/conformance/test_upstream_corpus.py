"""Every recorded verdict of the API server's own validation, evaluated end to end; the differences are counted."""

import pytest

from tests.conformance.comparison import DIFFERENCES, disagreements
from tests.conformance.conftest import report
from tests.conformance.corpus import cases

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
