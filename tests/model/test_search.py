"""Every short trace of honest actors in small worlds: no law is broken at any write."""

import pytest
from msgspec.structs import replace

from tests.model import electors, world
from tests.model.api_server import Write
from tests.model.depth import MORE
from tests.model.honest_search import PLACES, Place, explore
from tests.model.managed_fields import APPLY, SECOND
from tests.model.world import World

FAST = "fabric8 hours ahead against client-go"


def named(text: str) -> Place:
    return next(place for place in PLACES if place.text == text)


@pytest.mark.parametrize("place", [pytest.param(place, id=place.text) for place in PLACES])
def test_no_honest_trace_breaks_a_law(place: Place) -> None:
    result = explore(place, place.depth + MORE)
    assert result.worlds >= 150


def test_only_fast_absolute_clocks_steal() -> None:
    assert explore(named(FAST), 2).steals > 0
    assert explore(named("client-go against client-go, API servers two seconds apart"), 2).steals == 0


@pytest.mark.parametrize(
    ("policy", "leaders"),
    [pytest.param(world.STANDARD, 2, id="standard warns"), pytest.param(world.STRICT, 1, id="strict denies")],
)
def test_a_fast_clock_makes_two_leaders_only_where_it_is_warned_about(policy: str, leaders: int) -> None:
    here = world.acted(named(FAST).world(), 0, 0, policy)
    here = world.acted(world.waited(here, SECOND), 1, 0, policy)
    assert here.steals == 1
    assert len(here.leaders) == leaders


def test_a_takeover_at_the_first_moment_passes_on_the_slowest_server() -> None:
    """The duration has passed on the true clock; the server's clock is as far behind as the tolerance allows."""
    here = world.acted(named("client-go against client-go, API servers two seconds apart").world(), 0, 0, world.STRICT)
    here, waits = world.intended(here, 1, 1)
    here = world.acted(world.waited(here, electors.DURATION * SECOND), 1, 1, world.STRICT)
    assert waits is None
    assert here.lease is not None
    assert here.lease.spec.holder == "checkout-b_1f0e"


def test_below_five_seconds_the_tolerance_excuses_no_clock() -> None:
    """Stamps are whole seconds and the tolerance of 3 s is 0.6 s: servers 0.3 s apart may cost a retry period."""
    place = Place("", named("a duration of 3 s, one clock").electors, (0.0, -0.3))
    here = World(world.START, (0, -SECOND * 3 // 10), place.electors)
    here = world.acted(here, 0, 0, world.STRICT)
    here, _waits = world.intended(here, 1, 1)
    assert here.lease is not None
    late = world.waited(here, 3 * SECOND)
    write = electors.intention(late.electors[1], late.lease, late.now, late.clock(1))
    assert write is not None
    refused = world.evaluate(late, late.electors[1].user, write, 1, (world.STRICT,))
    later = world.evaluate(world.waited(late, SECOND), late.electors[1].user, write, 1, (world.STRICT,))
    assert refused is not None
    assert later is not None
    assert not refused.verdicts[world.STRICT].allowed
    assert later.verdicts[world.STRICT].allowed


@pytest.mark.parametrize("seconds", [1, 3600], ids=["clocks differ by a second", "a clock fell by an hour"])
def test_metadata_is_free_whatever_the_clock_says_but_for_an_apply_that_only_removes(seconds: int) -> None:
    """The one honest write of the model that standard denies: it looks exactly like a forged time."""
    first = Place("", named("a duration of 3 s, one clock").electors, (0.0, 0.0))
    here = world.acted(first.world(), 0, 0, world.STANDARD)
    assert here.lease is not None
    applied = Write("gitops", here.lease.spec, (("a", "1"),), APPLY, frozenset({"renewed", "labels.a"}))
    here = world.noted(here, applied, 0, world.STANDARD)
    here = world.acted(world.waited(here, 2 * SECOND), 0, 0, world.STANDARD)
    assert here.lease is not None
    here = world.noted(here, replace(applied, spec=here.lease.spec), 0, world.STANDARD)
    here = world.stepped_back(here, 0, 2 * SECOND + seconds * SECOND)
    assert here.lease is not None
    label = Write("checkout", here.lease.spec, (*here.lease.labels, ("b", "1")))
    assert rules_of(here, label) == set()
    removal = Write("gitops", here.lease.spec, (), APPLY, frozenset({"renewed"}))
    assert rules_of(here, removal) == {"renewal-stamp-tampered"}


def rules_of(here: World, write: Write) -> set[str]:
    outcome = world.evaluate(here, world.SCRIPT, write, 0, (world.STANDARD,))
    assert outcome is not None
    return {finding.rule for finding in outcome.verdicts[world.STANDARD].findings}
