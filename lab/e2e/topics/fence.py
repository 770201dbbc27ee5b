"""The effect of a fence on single requests. `make fence` shows the writes of an old leader that it holds back."""

from collections.abc import Iterator

from lab.e2e.fence.facts import PLACE, check_facts
from lab.e2e.fence.trial import allow_service_accounts
from lab.e2e.world import Row, World


def run(world: World) -> Iterator[Row]:
    """Check one fence in a namespace of its own."""
    allow_service_accounts(world.admin, PLACE)
    for fact in check_facts(world.plane, world.admin, world.kubectl):
        yield Row(fact.claim, "as it must be" if fact.passed else fact.observation, fact.passed)
