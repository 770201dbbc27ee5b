"""A fence with a token: two API servers of which one has a late watch, and whoever tampers with tokens."""

from collections.abc import Iterator

from lab.e2e.fence.plane import TwoServers
from lab.e2e.fence.token import check_tokens
from lab.e2e.kubectl import Kubectl
from lab.e2e.stamp_cases import FIRST_MINOR
from lab.e2e.world import Row, World, make_absent_row


def run(world: World) -> Iterator[Row]:
    """Check the tokens on a separate control plane, from the first version that can stamp."""
    binaries = world.plane.binaries
    if binaries.minor < FIRST_MINOR:
        yield make_absent_row("tokens", binaries.version)
        return
    directory = world.directory / "token"
    directory.mkdir()
    with TwoServers(binaries, directory) as plane:
        plane.start_stalling()
        for fact in check_tokens(plane, Kubectl(binaries.kubectl, plane.admin_kubeconfig)):
            yield Row(fact.claim, "as it must be" if fact.passed else fact.observation, fact.passed)
