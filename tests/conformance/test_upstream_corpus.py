"""Every recorded verdict of the API server's own validation, evaluated end to end; the differences are counted."""

import pytest

from tests.conformance.comparison import DIFFERENCES, disagreements
from tests.conformance.conftest import report
from tests.conformance.corpus import cases

COMPARED = 5327
"""Number of cases of the corpus that an API server could send to a webhook."""


def test_every_case_is_evaluated_as_upstream_but_for_the_named_differences(request: pytest.FixtureRequest) -> None:
    name = "upstream-v1.36.3"
    recorded = cases(name)
    lines, count = disagreements(recorded)
    report(request.config, name, count)
    assert lines == []
    compared = sum(times for line, times in count.items() if line.startswith("compared: "))
    left_out = sum(times for line, times in count.items() if line.startswith("left out: "))
    assert (compared, compared + left_out) == (COMPARED, len(recorded))
    assert all(count[line] for line in DIFFERENCES), "a difference that no case of the corpus shows"
