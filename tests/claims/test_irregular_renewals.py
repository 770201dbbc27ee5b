"""Holders that renew at irregular intervals: what looks like a silence may be how they work."""

from collections.abc import Sequence
from typing import Final

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log

JITTER: Final = (9.8, 2.8, 1.0, 2.5, 4.1, 11.0, 3.1, 8.5, 2.4, 3.2, 7.6, 4.3, 10.2, 2.7)
HABIT: Final = "The lease is renewed at irregular intervals, "


def explain(intervals: Sequence[float], *, code: int = 0) -> list[str]:
    """Return what is said of late renewals."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.take()
    for interval in intervals:
        for _ in range(4 if code and interval > 10 else 0):
            server.wait(interval / 8)
            holder.fail(code)
        server.wait(interval / 2 if code and interval > 10 else interval)
        holder.renew()
    findings = account(follow_log(server), server.now).findings
    return [one.message for one in findings if one.check == "renewal-late"]


def test_irregular_renewals_come_before_other_possible_causes() -> None:
    output = explain(JITTER)
    assert len(output) == 2
    assert f"{HABIT}1 s to 11 s long, so that may be how its holder works; if not, why is not known: " in output[1]
    assert f"{HABIT}1 s to 10.2 s long" in output[0]


@pytest.mark.parametrize(
    ("intervals", "number"),
    [
        pytest.param((*[2.0] * 20, 11.0, 2.0), 1, id="of one gap among regular renewals"),
        pytest.param((*[2.0] * 20, 11.0, *[2.0] * 10, 12.0, 2.0), 2, id="of two gaps among many"),
        pytest.param((*JITTER, 16.0, 2.0), 3, id="of a gap for which the lease did not last"),
        pytest.param((*[8.0] * 20, 14.0, 8.0), 1, id="of long intervals that are regular"),
        pytest.param((2.0, 6.0, 3.0, 8.0, 2.0, 11.0, 2.0), 1, id="of a few intervals"),
    ],
)
def test_a_gap_that_stands_out_is_no_habit(intervals: Sequence[float], number: int) -> None:
    output = explain(intervals)
    assert len(output) == number
    assert HABIT not in output[-1]


def test_a_gap_with_another_cause_is_no_habit() -> None:
    output = explain(JITTER, code=403)
    assert len(output) == 2
    assert all("Its writes were refused" in one and HABIT not in one for one in output)
