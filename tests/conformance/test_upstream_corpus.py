"""Every recorded verdict of the API server's own validation, judged end to end; the differences are counted."""

import pytest

from tests.conformance.comparison import disagreements
from tests.conformance.conftest import report
from tests.conformance.corpus import cases

CORPORA = {"upstream-v1.36.3": 6000, "upstream-v1.31.14": 2000}


@pytest.mark.parametrize("name", CORPORA)
def test_every_case_is_judged_as_upstream_but_for_the_named_differences(
    name: str, request: pytest.FixtureRequest
) -> None:
    recorded = cases(name)
    assert len(recorded) == CORPORA[name]
    lines, count = disagreements(recorded)
    report(request.config, name, count)
    assert lines == []
