"""From the version before to this one and back, manifests and image, under load and failing closed."""

import time
from collections.abc import Callable, Iterator

from lab.cluster.load import Load
from lab.cluster.node import Node
from lab.cluster.previous import NAME, build_previous
from lab.cluster.world import World
from lab.e2e.world import Row
from tests.waiting import wait_for


def check_upgrade(node: Node) -> Callable[[World], Iterator[Row]]:
    """Return the check, which needs the node: it is given the image of the previous version."""

    def check(world: World) -> Iterator[Row]:
        version = build_previous()
        if version is None:
            # A checkout without history cannot know what came before; that is said and is not a failure.
            reason = "this checkout has no history to take a version from"
            yield Row("upgrade and back", reason, passed=True, was_run=False)
            return
        node.load(version.archive)
        before = world.with_checkout(version.tree, NAME)
        before.apply("self-signed", "strict")
        # API servers take a changed webhook configuration after some seconds.
        time.sleep(5)
        for claim, to in (
            (f"upgrade from {version.label} to this version", world),
            (f"back to {version.label}", before),
            ("and again to this version", world),
        ):
            with Load(world) as load:
                time.sleep(2)
                seconds = to.apply("self-signed", "strict")
                wait_for("two ready pods", world.is_ready, 120, 0.5)
                report = load.report()
            yield Row(claim, f"rolled out in {seconds:.0f} s; {report}", passed=report.passed and world.is_enforced())

    return check
