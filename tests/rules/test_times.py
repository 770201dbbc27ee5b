"""Lengths of time as people read them."""

import pytest

from tests.rules.findings import (
    SECOND,
)
from webhook.kubernetes.times import format_span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(59, "59 s", id="seconds"),
        pytest.param(3599, "59 min 59 s", id="minutes"),
        pytest.param(3600, "1 h 0 min", id="an hour"),
        pytest.param(9 * 3600 - 2, "9 h 0 min", id="a request takes time"),
        pytest.param(86_370, "1 d 0 h", id="nearly a day"),
        pytest.param(3650 * 86_400, "3650 d 0 h", id="years"),
        pytest.param(7304 * 86_400, "7304 d 0 h", id="nearly twenty years"),
        pytest.param(2_147_483_647, "68 years", id="the longest duration"),
        pytest.param(2_912_114 * 86_400, "7,973 years", id="millennia"),
    ],
)
def test_a_span_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert format_span(seconds * SECOND) == text
