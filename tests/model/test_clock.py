"""The clock refuses no honest leader while the watch is late by less than the rest of the duration."""

import itertools
from importlib.resources import files

import pytest

from tests.model.clock import SECOND, Case, cases

DURATIONS = (2, 5, 15, 60, 137)
INTERVALS = (250, 900, 2000, 10_000)
AHEAD = (-2000, -700, 0, 700, 2000)
"""The clocks of API servers differ by two seconds at most; for short leases by a fifth of the duration."""


def tolerated(duration: int) -> int:
    return min(2 * SECOND, duration * SECOND // 5)


@pytest.mark.parametrize("duration", DURATIONS)
def test_a_leader_that_renews_is_not_refused(duration: int) -> None:
    for interval, ahead in itertools.product(INTERVALS, AHEAD):
        if abs(ahead) > tolerated(duration) or interval >= duration * SECOND:
            continue
        for share in (0, 0.25, 0.5, 0.9, 1):
            lag = int(share * (duration * SECOND - interval))
            if share == 1:
                lag -= SECOND
            honest = cases(duration, interval, max(0, lag), ahead, last=10**9)
            assert not any(one.is_refused for one in itertools.islice(honest, 4 * duration)), (interval, ahead, lag)


@pytest.mark.parametrize("duration", DURATIONS)
def test_a_watch_that_is_late_by_more_than_the_duration_refuses_it(duration: int) -> None:
    lag = 2 * duration * SECOND
    honest = cases(duration, 250, lag, 0, last=10**9)
    assert any(one.is_refused for one in itertools.islice(honest, 16 * duration))


@pytest.mark.parametrize("duration", DURATIONS)
def test_after_the_expiry_a_write_is_refused(duration: int) -> None:
    last = 4 * duration * SECOND
    for ahead in AHEAD:
        if abs(ahead) > tolerated(duration):
            continue
        bound = duration * SECOND + tolerated(duration) + abs(ahead) + 2 * SECOND
        late = [one for one in cases(duration, 250, 0, ahead, last) if one.age > bound]
        assert late
        assert all(one.is_refused for one in late)


def test_the_arithmetic_is_that_of_the_policy() -> None:
    text = " ".join(files("webhook.api_server.fence").joinpath("token.yaml").read_text(encoding="utf-8").split())
    assert (
        "&& 5 * (int(timestamp(variables.now)) - int(timestamp(variables.renewed))) "
        "> 5 * variables.duration + (variables.duration < 10 ? variables.duration : 10)"
    ) in text
    assert "filter(t, t >= variables.renewed" in text
    assert "variables.times.min()" in text


def test_a_write_in_the_second_of_the_renewal() -> None:
    assert not Case(duration=2, interval=250, lag=0, ahead=0, at=999, last=0).is_refused
