"""The reviews of the benchmark and of the faults: a wrong answer there must be the server's, not the list's."""

import time

import pytest

from lab.bench.reviews import Case, list_mixture, make_renewal_case
from webhook.admission.policy.file import load
from webhook.server.reviewer import respond


@pytest.mark.parametrize("case", [*list_mixture(), make_renewal_case()], ids=lambda case: case.name)
def test_a_review_has_its_known_answer(case: Case) -> None:
    verdict = respond(case.body, load(None), time.time_ns() // 1000).verdict
    assert verdict is not None
    assert verdict.code == case.code
