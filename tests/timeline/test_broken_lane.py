"""A lane that cannot be drawn, whatever is wrong with it, says so and costs no other lane."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.timeline.test_states import stored, timeline_of, written
from webhook.analysis.timeline import lease_lane

BROKEN, GOOD = "broken", "good"


def fails_for(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """The function, which raises for the lane of one lease."""

    def wrapped(lane: lease_lane.LeaseLane, *arguments: object, **named: object) -> object:
        if lane.history.name == name:
            raise ZeroDivisionError("division by zero")
        return function(lane, *arguments, **named)

    return wrapped


@pytest.mark.parametrize("method", ["observe", "explain", "find_freeze"])
def test_a_fault_in_one_lane_costs_no_other(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_lane.LeaseLane, method, fails_for(BROKEN, getattr(lease_lane.LeaseLane, method)))
    timeline = timeline_of(written(tmp_path, stored(BROKEN), stored(GOOD)))
    drawn = {lane.name: lane for lane in timeline.lanes}
    assert drawn[GOOD].spans
    assert not drawn[GOOD].problem
    assert drawn[BROKEN].problem == "this is a bug: ZeroDivisionError: division by zero"
    assert f"shop/{BROKEN} cannot be drawn: {drawn[BROKEN].problem}" in timeline.thinned
