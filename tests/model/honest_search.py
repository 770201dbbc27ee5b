"""An exhaustive search of small honest worlds: every order of a few steps, every law checked at each write."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.model import electors, world
from tests.model.api_server import Write
from tests.model.electors import Elector, Kind, elector
from tests.model.managed_fields import APPLY, SECOND
from tests.model.world import HOUR, Late, World

HOLDER_MANAGER: Final = "checkout"


class Place(Struct, frozen=True):
    """A small world to search: its electors, and the API servers' clocks in seconds off the true time."""

    text: str
    electors: tuple[Elector, ...]
    offsets: tuple[float, ...] = (0.0, 0.3)
    policy: str = world.STRICT
    depth: int = 2

    def world(self) -> World:
        """Nobody holds the lease yet; the true time is not a whole second."""
        offsets = tuple(int(offset * SECOND) for offset in self.offsets)
        return World(world.START + SECOND * 7 // 10, offsets, self.electors)


def _two(first: Kind, second: Kind, *, skew: int = 0, duration: int = electors.DURATION) -> tuple[Elector, ...]:
    return (
        elector(first, "checkout-a", duration=duration),
        elector(second, "checkout-b", skew=skew, duration=duration),
    )


PLACES: Final = (
    Place(
        "client-go against client-go, API servers two seconds apart",
        _two(electors.CLIENT_GO, electors.CLIENT_GO),
        (0.0, -2.0),
        depth=3,
    ),
    Place(
        "a duration of 5 s, API servers a second apart",
        _two(electors.CLIENT_GO, electors.CLIENT_GO, duration=5),
        (0.0, -1.0),
    ),
    Place("a duration of 3 s, one clock", _two(electors.CLIENT_GO, electors.CLIENT_GO, duration=3), (0.2, 0.2)),
    Place("fabric8 hours ahead against client-go", _two(electors.CLIENT_GO, electors.FABRIC8, skew=5 * HOUR)),
    Place("fabric8 hours behind against kubert", _two(electors.KUBERT, electors.FABRIC8, skew=-5 * HOUR)),
    Place("kubernetes_asyncio far east of Greenwich", _two(electors.FABRIC8, electors.ASYNCIO, skew=14 * HOUR)),
    Place("a client without resourceVersions", _two(electors.UNGUARDED, electors.UNGUARDED, skew=7 * SECOND)),
    Place("standard, a fast clock", _two(electors.CLIENT_GO, electors.UNGUARDED, skew=HOUR), policy=world.STANDARD),
    Place(
        "a coordinated election",
        (
            elector(electors.controller("checkout-a_1f0e"), "election"),
            elector(electors.COORDINATED, "checkout-a", skew=-2 * SECOND),
        ),
    ),
    Place("a kubelet two hours behind", (elector(electors.KUBELET, "n1", skew=-2 * HOUR, duration=40),)),
)

Step = tuple[str, Callable[[World, str], World]]


def steps(place: Place) -> Iterator[Step]:
    """Every step that this place offers, with its name."""
    duration = max(one.duration for one in place.electors)
    for micros in dict.fromkeys((SECOND, (duration - 2) * SECOND, duration * SECOND)):
        yield f"wait {micros // SECOND} s", _waits(micros)
    for index, candidate in enumerate(place.electors):
        for server in range(len(place.offsets)):
            yield f"{candidate.identity} acts on server {server}", _acts(index, server)
        yield f"{candidate.identity} sends a write", _sends(index)
        yield f"{candidate.identity} stops", _stops(index)
    yield f"{place.electors[0].identity} dies", _first_dies
    yield "the oldest write on its way arrives", _arrives
    yield "a label under the holder's manager name", _labels(HOLDER_MANAGER)
    yield "a label under another manager name", _labels("kubectl-label")
    yield "eleven scripts label", _eleven_label
    yield "an apply repeats renewTime", _applies
    yield "the last server's clock falls an hour", _falls(HOUR)
    yield "the last server's clock falls four seconds", _falls(4 * SECOND)


def _waits(micros: int) -> Callable[[World, str], World]:
    def waits(here: World, policy: str) -> World:
        return world.waited(here, micros)

    return waits


def _falls(micros: int) -> Callable[[World, str], World]:
    def falls(here: World, policy: str) -> World:
        return world.stepped_back(here, len(here.offsets) - 1, micros)

    return falls


def _first_dies(here: World, policy: str) -> World:
    return world.crashed(here, 0)


def _stops(index: int) -> Callable[[World, str], World]:
    return lambda here, policy: world.released(here, index, 0, policy)


def _acts(index: int, server: int) -> Callable[[World, str], World]:
    return lambda here, policy: world.acted(here, index, server, policy)


def _sends(index: int) -> Callable[[World, str], World]:
    def sent(here: World, policy: str) -> World:
        there, write = world.intended(here, index, 0)
        return (
            there if write is None or there.late else replace(there, late=(*there.late, Late(index, write, there.now)))
        )

    return sent


def _arrives(here: World, policy: str) -> World:
    return world.delivered(here, len(here.offsets) - 1, policy)


def _labels(manager: str) -> Callable[[World, str], World]:
    def labeled(here: World, policy: str) -> World:
        if here.lease is None:
            return here
        labels = {**dict(here.lease.labels), "touched": str(len(here.lease.labels))}
        write = Write(manager, here.lease.spec, tuple(sorted(labels.items())))
        return world.noted(here, write, len(here.offsets) - 1, policy)

    return labeled


def _eleven_label(here: World, policy: str) -> World:
    for number in range(11):
        if here.lease is None:
            return here
        labels = {**dict(here.lease.labels), f"script{number}": "here"}
        here = world.noted(here, Write(f"script{number}", here.lease.spec, tuple(sorted(labels.items()))), 0, policy)
    return here


def _applies(here: World, policy: str) -> World:
    if here.lease is None or here.lease.spec.renewed is None:
        return here
    return world.noted(here, Write("gitops", here.lease.spec, (), APPLY, frozenset({"renewed"})), 0, policy)


class Found(Struct):
    """What a search has seen: worlds, and the early takeovers on the way there."""

    worlds: int = 0
    steals: int = 0


def explore(place: Place, depth: int) -> Found:
    """Visit every world within `depth` steps of one where the first elector holds the lease.

    Raises LawBrokenError, with the trace as a note, at the first write that breaks a law.
    """
    start = world.acted(place.world(), 0, 0, place.policy)
    offered = tuple(steps(place))
    traces: dict[World, tuple[str, ...]] = {start: ()}
    frontier = [start]
    for _ in range(depth):
        reached = []
        for here in frontier:
            for text, take in offered:
                trace = (*traces[here], text)
                try:
                    there = take(here, place.policy)
                except world.LawBrokenError as broken:
                    broken.add_note(f"in {place.text}, after: {'; '.join(trace)}")
                    raise
                if there not in traces:
                    traces[there] = trace
                    reached.append(there)
        frontier = reached
    return Found(len(traces), sum(1 for here in traces if here.steals > 0))
