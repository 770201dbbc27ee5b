"""Planted defects of what is shown beside claims: in the product, and in statements that are true."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.truth.draw import draw
from tests.truth.evaluation import SHOWING, Evaluated, evaluate, shown_in
from tests.truth.facts import Facts
from tests.truth.inputs import Input, Kind, input_of
from tests.truth.planting import (
    Claim,
    Defect,
    check_noticed,
    find_true,
    move_instants,
    names_another,
    only,
    says,
    swap_value,
)
from tests.truth.play import play
from tests.truth.records import History
from tests.truth.shown_predicates import SHOWN
from webhook.analysis.history import status
from webhook.analysis.history.status import LeaseState
from webhook.analysis.timeline import lease_lane
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Lane
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, parse

pytestmark = pytest.mark.deep

INPUTS: Final = (Kind.LOG, Kind.WATCH, Kind.LIST)
HISTORIES: Final = range(2000, 2030)


def false_statements() -> list[Evaluated]:
    """What is shown of some histories that is false."""
    false_claims = []
    for seed in HISTORIES[:12]:
        history = play(draw(seed))
        inputs = [given for kind in INPUTS if (given := input_of(history, kind))]
        false_claims += [
            one for given in inputs for one in evaluate(history, given, SHOWING) if one.is_true is not True
        ]
    return false_claims


def test_without_a_defect_nothing_that_is_shown_is_false() -> None:
    assert false_statements() == []


def test_a_span_that_begins_at_acquire_time_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = lease_lane.LeaseLane._mark_acquisition

    def mark_too_early(lane: Any, tenure: Any, since: int, latest: int, most: int) -> None:
        spec = lane.history.lease.spec if lane.history.lease else None
        acquired = get_readable_instant(normalize(spec.acquire_time)) if spec else None
        present = lane.spans.present
        if acquired is not None and present is not None:
            present.begins = min(present.begins, acquired)
        mark(lane, tenure, since if acquired is None else acquired, latest, most)

    monkeypatch.setattr(lease_lane.LeaseLane, "_mark_acquisition", mark_too_early)
    assert {"timeline-held"} <= {one.id for one in false_statements()}


def test_a_handover_too_many_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_lane = TimelineBuilder._draw

    def draw_more(builder: TimelineBuilder, key: tuple[str, str], ends: int) -> Lane:
        lane = draw_lane(builder, key, ends)
        return replace(lane, handovers=lane.handovers + 1)

    monkeypatch.setattr(TimelineBuilder, "_draw", draw_more)
    sentence = [one for one in false_statements() if one.id == "timeline-handovers"]
    assert len(sentence) > 50


def test_a_state_that_says_held_after_the_expiry_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    find_state = status._find_state

    def find_held(*arguments: Any) -> LeaseState:
        state = find_state(*arguments)
        return LeaseState.LIVE if state is LeaseState.EXPIRED else state

    monkeypatch.setattr(status, "_find_state", find_held)
    assert {"row-state", "json-state"} <= {one.id for one in false_statements()}


def _find_dated_by_servers(history: History, given: Input) -> Iterator[tuple[Claim, Facts]]:
    return ((shown, facts) for shown, facts in shown_in(history, given) if "clock" not in shown)


@cache
def true_statements() -> Mapping[str, list[tuple[Claim, Facts]]]:
    """What is shown that is true, by its kind."""
    return find_true(HISTORIES, _find_dated_by_servers, SHOWN)


def lasts(claim: Claim, _: Facts) -> bool:
    """Whether a span that begins within the input is longer than some seconds."""
    return "seen_from" not in claim and parse(claim["to"]) - parse(claim["from"]) > 5 * SECOND


def is_dated(claim: Claim, _: Facts) -> bool:
    return bool(claim["dated"] == "API server")


PLANTED: Final[dict[str, tuple[str, Defect]]] = {
    "the lease is held by somebody else": ("timeline-held", only(lasts, names_another("identity"))),
    "the lease is held before it was": ("timeline-held", only(lasts, move_instants(-20, "from"))),
    "an overdue lease is somebody else's": ("timeline-overdue", only(lasts, names_another("identity"))),
    "the lease is overdue while it is renewed": ("timeline-overdue", only(lasts, move_instants(-40, "from"))),
    "a held lease has no holder": ("timeline-leaderless", only(lasts, move_instants(-60, "from"))),
    "a renewal came where none did": ("timeline-renewal", move_instants(700, "at")),
    "more renewals than there were": ("timeline-renewals", says(count=100_000)),
    "another duration": ("timeline-duration", says(seconds=17)),
    "another duration in a table": ("row-duration", says(seconds=17)),
    "a handover too many": ("timeline-handovers", says(count=77)),
    "a change too many": ("row-changes", says(count=77)),
    "a handover of a kind too many": ("json-handovers", says(count=77)),
    "one that replaced no other pod": ("json-handovers", says(how="replaced", count=5)),
    "it was created at another time": ("timeline-created", move_instants(600, "at")),
    "it was stolen, and had expired": ("timeline-takeover-by-expiry", move_instants(600, "at")),
    "it was taken after a release by somebody else": ("timeline-takeover-by-release", names_another("identity")),
    "a write was denied at another time": ("timeline-denied", move_instants(900, "at")),
    "it holds a lease that it lost": ("row-holder", names_another("identity")),
    "it was renewed long before": ("row-renewed", only(is_dated, move_instants(-40, "at"))),
    "it has expired while it is live": (
        "row-state",
        only(lambda _, facts: facts.is_surely_live(facts.now + 3 * SECOND), swap_value("state", live="expired")),
    ),
    "it can be taken before it expires": (
        "row-takeable",
        only(lambda claim, facts: claim["state"] == "live" and is_dated(claim, facts), move_instants(-8, "from")),
    ),
    "it was taken at another time": ("json-tenure-since", move_instants(900, "at")),
}


@pytest.mark.parametrize(("kind", "defect"), PLANTED.values(), ids=PLANTED)
def test_a_planted_defect_of_what_is_shown_is_noticed(kind: str, defect: Defect) -> None:
    check_noticed(true_statements().get(kind, []), defect, SHOWN[kind])
