"""The checks in their order, which matters: each leaves the cluster as the next needs it."""

import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

from msgspec import Struct

from lab.cluster.checks import (
    alerts,
    causes,
    changes,
    chart,
    disruption,
    installed,
    overlays,
    recorded,
    static,
    together,
    tried,
    upgraded,
    whole,
)
from lab.cluster.node import Node
from lab.cluster.previous import build_previous
from lab.cluster.programs import build_neighbors
from lab.cluster.world import CLOSED, World
from lab.e2e.definitions import find_definitions
from lab.e2e.world import Row
from tools.rendered.chart import find_helm

Run = Callable[[World], Iterator[Row]]


def check_failing_closed(world: World) -> Iterator[Row]:
    """Check that writes in a labeled namespace fail unless reviewed, with the component strict."""
    world.create_namespace(CLOSED, {"lease-webhook/fail": "closed"})
    seconds = world.apply("self-signed", "strict")
    # API servers take a new webhook configuration after some seconds.
    time.sleep(5)
    yield Row("component strict: failurePolicy Fail for what follows", f"applied in {seconds:.0f} s", passed=True)


class Check(Struct, frozen=True):
    """A claim to prove.

    `run` needs a cluster; `run_beside` also the node, next to which it runs programs. `needs` is prepared beforehand,
    since nothing can be fetched in the node's namespaces. `short`: part of the short form.
    """

    title: str
    run: Run | None = None
    run_beside: Callable[[Node], Run] | None = None
    needs: tuple[Callable[[], object], ...] = ()
    short: bool = False


CHECKS: Final = {
    "installed": Check("From nothing", installed.install, short=True),
    "confined": Check("Confinement", installed.check_confinement, short=True),
    "closed": Check("Fail closed", check_failing_closed, short=True),
    "rolled": Check("Disruptions under load", disruption.run_short_disruptions, short=True),
    "disrupted": Check("Disruptions under load", disruption.run_long_disruptions),
    "drained": Check("Disruptions under load", disruption.drain),
    "renewed": Check("Changes", changes.renew_secret),
    "changed": Check("Changes", changes.change_policy),
    "network": Check("Network", whole.check_network),
    "together": Check("With a fence and the audit", together.check_together),
    "recorded": Check("With a recorder", recorded.check_recorder, needs=(find_definitions,)),
    "alerts": Check("Alerts", run_beside=alerts.check_alerts, needs=(build_neighbors, find_definitions)),
    "cold": Check("Cold cluster", run_beside=whole.check_cold_start),
    "upgraded": Check("Upgrade", run_beside=upgraded.check_upgrade, needs=(build_previous,)),
    "components": Check("Components", whole.check_components),
    "causes": Check("What status says", causes.check_causes, short=True),
    "removed": Check("Removal", whole.check_removal, short=True),
    "tried": Check("Five minutes", tried.try_script, short=True),
    "static": Check("Static manifests", run_beside=static.check_static_pod),
    "cert-manager": Check(
        "Overlays", run_beside=overlays.check_cert_manager, needs=(build_neighbors, find_definitions)
    ),
    "openshift": Check("Overlays", overlays.check_openshift),
    "chart": Check("Helm chart", chart.check_lifetime, needs=(find_helm,)),
}


def choose_checks(only: Collection[str], *, short: bool) -> list[str]:
    """Return the names of the checks of a run."""
    return [name for name, check in CHECKS.items() if (name in only if only else check.short or not short)]


def prepare(names: Collection[str]) -> None:
    """Build and fetch what the checks need beside the cluster."""
    for need in dict.fromkeys(need for name in names for need in CHECKS[name].needs):
        need()


def list_runs(names: Collection[str], node: Node | None) -> dict[str, Run]:
    """Return what to run; without a node of our own the checks that need it are left out."""
    runs = {}
    for name in names:
        check = CHECKS[name]
        if check.run:
            runs[name] = check.run
        elif check.run_beside and node:
            runs[name] = check.run_beside(node)
    return runs
