"""A fence: what it does to single requests. What it holds back of an old leader is `make fence`."""

from collections.abc import Iterator

from lab.e2e.fence.facts import PLACE, facts
from lab.e2e.fence.trial import allow_service_accounts
from lab.e2e.world import Row, World


def run(world: World) -> Iterator[Row]:
    """One fence in a namespace of its own."""
    allow_service_accounts(world.admin, PLACE)
    for fact in facts(world.plane, world.admin, world.kubectl):
        yield Row(fact.claim, "as it must be" if fact.passed else fact.seen, fact.passed)
