"""Each alert fires in the fault that it is for and clears after it, in a real Prometheus that scrapes real pods."""

import time
from collections.abc import Callable, Iterator

from lab.cluster import dashboard
from lab.cluster.faults import FAULTS, OPEN, Fault, apply_monitored
from lab.cluster.load import Load
from lab.cluster.monitoring import WATCHED, Monitoring, apply_definitions
from lab.cluster.node import Node
from lab.cluster.shortened import FACTOR
from lab.cluster.world import CLOSED, World
from lab.e2e.world import Row
from tests.waiting import wait_for

QUIET = 40
"""Seconds; longer than the longest look back into the past: what was counted before is over."""
MAX_SECONDS_TO_FIRE, MAX_SECONDS_TO_CLEAR = 300.0, 180.0


def check_alerts(node: Node) -> Callable[[World], Iterator[Row]]:
    """Return the check, which needs the node: the operator and Prometheus run beside it."""

    def check(world: World) -> Iterator[Row]:
        apply_definitions(world, *WATCHED)
        for namespace, labels in ((CLOSED, {"lease-webhook/fail": "closed"}), (OPEN, {})):
            world.create_namespace(namespace, labels)
        apply_monitored(world)
        wait_for("two ready pods", world.is_ready, 120, 0.5)
        begin = time.time()
        with Monitoring(world, node) as prometheus, Load(world), Load(world, OPEN):
            for _ in range(QUIET):
                # Something for the panels of refusals to show.
                world.is_enforced()
                time.sleep(1)
            others = prometheus.list_firing()
            observation = f"{', '.join(sorted(others)) or 'none'} under load, before any fault"
            yield Row("alerts that fire without a fault", observation, passed=not others)
            for fault in FAULTS:
                yield from _prove(world, prometheus, fault)
            yield from dashboard.run_queries(prometheus, begin, time.time())

    return check


def _prove(world: World, prometheus: Monitoring, fault: Fault) -> Iterator[Row]:
    wait_for("no alert fires", lambda: not prometheus.list_firing(), MAX_SECONDS_TO_CLEAR, 0.2)
    fired: dict[str, float] = {}
    others: set[str] = set()
    begin = time.monotonic()

    def has_fired() -> bool:
        firing = prometheus.list_firing()
        for name in firing - fired.keys():
            fired[name] = time.monotonic() - begin
        others.update(firing - {*fault.alerts, *fault.also})
        return set(fault.alerts) <= fired.keys()

    with fault.during(world):
        wait_for(f"{', '.join(fault.alerts)} fire", has_fired, MAX_SECONDS_TO_FIRE, 0.2)
    repaired = time.monotonic()
    cleared: dict[str, float] = {}

    def has_cleared() -> bool:
        firing = prometheus.list_firing()
        others.update(firing - {*fault.alerts, *fault.also})
        for name in fired.keys() - firing - cleared.keys():
            cleared[name] = time.monotonic() - repaired
        return not firing

    wait_for(f"{', '.join(fault.alerts)} clear", has_cleared, MAX_SECONDS_TO_CLEAR, 0.2)
    for name in fault.alerts:
        observation = f"{fault.what}: fired after {fired[name]:.0f} s, cleared {cleared[name]:.0f} s after the repair"
        if others:
            observation += f"; fired too: {', '.join(sorted(others))}"
        yield Row(f"{name} (time divided by {FACTOR})", observation, passed=not others)
