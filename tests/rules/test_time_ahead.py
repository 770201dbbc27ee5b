"""A time ahead of the clock by whole hours hints at a time zone."""

import pytest

from tests.factories import (
    NOW,
    put,
)
from tests.rules.findings import (
    created,
    findings,
)


@pytest.mark.parametrize(
    ("time", "zone"),
    [
        pytest.param("2025-11-20T13:00:00.000000Z", True, id="an hour"),
        pytest.param("2025-11-20T12:59:00.000000Z", True, id="an hour less a minute"),
        pytest.param("2025-11-20T13:01:01.000000Z", False, id="an hour and more than a minute"),
        pytest.param("2025-11-20T12:58:59.000000Z", False, id="an hour less more than a minute"),
        pytest.param("2025-11-20T12:01:30.000000Z", False, id="less than an hour"),
        pytest.param("2025-11-21T02:00:00.000000Z", True, id="fourteen hours"),
        pytest.param("2025-11-21T03:00:00.000000Z", False, id="further east than any zone"),
    ],
)
def test_whole_hours_ahead_hint_at_a_time_zone(time: str, zone: bool) -> None:
    (finding,) = findings(created(put("spec.renewTime", time)), now=NOW)["renew-time-in-future"]
    assert ("local time as UTC" in finding.error.detail) is zone
    assert finding.happened is not None
    assert ("local time as UTC" in finding.happened.shorten(256)) is zone
