"""The law of the fence holds on one API server in every order; each limit has a trace, and the docs print it."""

from pathlib import Path

import pytest

from tests.model.depth import MORE
from tests.model.fence import LIMITS, Conditions, counterexample, no_old_write_follows, old_writes_are_in_flight

DOCS = Path(__file__).parents[2] / "docs" / "fence-limits.md"
DEEP = 12 + MORE


def test_one_server_lets_only_requests_in_flight_through() -> None:
    assert counterexample(Conditions(), old_writes_are_in_flight, DEEP) is None


def test_with_a_token_no_late_watch_lets_an_old_write_through() -> None:
    assert counterexample(Conditions(servers=2, has_token=True), no_old_write_follows, DEEP) is None


def test_the_token_needs_the_second_admission() -> None:
    conditions = Conditions(servers=2, has_token=True, is_admitted_again=False)
    assert counterexample(conditions, no_old_write_follows, DEEP) is not None


def test_without_a_token_what_is_in_flight_follows() -> None:
    assert counterexample(Conditions(), no_old_write_follows, DEEP) is not None


@pytest.mark.parametrize("limit", LIMITS)
def test_each_limit_has_a_trace_which_the_docs_print(limit: str) -> None:
    conditions, law = LIMITS[limit]
    trace = counterexample(conditions, law, DEEP)
    assert trace is not None
    printed = "".join(f"{number}. {words}\n" for number, words in enumerate(trace, 1))
    assert printed in DOCS.read_text(encoding="utf-8")
