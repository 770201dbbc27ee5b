"""The topics of `make e2e`, in the order of the table. A new topic is a module of `topics` and a line here."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from lab.e2e.topics import (
    attacks_on_leases,
    audit,
    client_certificates,
    conditions,
    conformance,
    cost,
    counts,
    depth,
    elections,
    fence,
    harmless,
    identity,
    kubectl,
    live_timeline,
    manifests,
    outage,
    owners,
    policies,
    primaries,
    python_client,
    recorder,
    rotation,
    stamp,
    stamp_arsenal,
    static_manifests,
    suggestions,
    token,
)
from lab.e2e.world import Row, World


class Topic(Struct, frozen=True):
    """One thing to prove.

    Each `plane` is an API server of its own, and runs beside others, in their order here; only `ALONE` runs when all
    others have ended. On it phases follow each other. Within a phase, topics of one lane follow each other, and lanes
    run side by side.
    `everywhere`: also on the versions that are not run in full.
    """

    name: str
    title: str
    run: Callable[[World], Iterator[Row]]
    plane: str
    phase: int = 0
    lane: int = 0
    everywhere: bool = False


ALONE: Final = "alone"
TOPICS: Final = (
    Topic("manifests", "Manifests", manifests.run, "shipped"),
    Topic("kubectl", "kubectl", kubectl.run, "shipped", phase=1),
    Topic("elections", "Elections", elections.run, "shipped", phase=1, lane=1),
    Topic("outage", "Our outage", outage.run, "outages"),
    Topic("counts", "What reaches us", counts.run, "shipped", phase=1),
    Topic("conditions", "The match condition", conditions.run, "shipped", phase=1, everywhere=True),
    Topic("depth", "Depth policy", depth.run, "shipped", phase=2, everywhere=True),
    Topic("attacks", "Standing attacks", attacks_on_leases.run, "shipped", phase=1, lane=2, everywhere=True),
    Topic("fence", "A fence", fence.run, "shipped", phase=1, lane=3, everywhere=True),
    Topic("rotation", "Rotation and restart", rotation.run, "outages", lane=1),
    Topic("audit", "Audit log and warnings", audit.run, "shipped", phase=1),
    Topic("conformance", "Conformance", conformance.run, "shipped", phase=2, lane=5),
    Topic("suggestions", "Suggestions", suggestions.run, "shipped", phase=2, lane=1),
    Topic("live-timeline", "The live timeline", live_timeline.run, "shipped", phase=2, lane=4),
    Topic("static-manifests", "Static manifests", static_manifests.run, "shipped", phase=2, lane=2, everywhere=True),
    Topic("client-certificates", "Client certificates", client_certificates.run, "shipped", phase=2, lane=3),
    Topic("stamp", "Stamps", stamp.run, "stamps", everywhere=True),
    Topic("stamp-arsenal", "Stamps and the standing attacks", stamp_arsenal.run, "stamps"),
    Topic("owners", "Owners and the right to delete", owners.run, "metadata", lane=1),
    Topic("harmless", "What others write", harmless.run, "metadata"),
    Topic("primaries", "PostgreSQL primaries", primaries.run, "metadata"),
    Topic("python-client", "The Python client", python_client.run, "outages", lane=3),
    Topic("identity", "An API server ends", identity.run, "outages", lane=4),
    Topic("recorder", "The recorder", recorder.run, "outages", lane=2),
    Topic("token", "A fence with a token", token.run, "stamps", lane=1),
    Topic("policies", "Policies only", policies.run, "policies", everywhere=True),
    Topic("cost", "Cost per write", cost.run, ALONE),
)
"""The policy against depth would refuse what the standing attacks plant, so it comes later; other policies would refuse
what other topics write, and have API servers of their own."""

BY_NAME: Final = {topic.name: topic for topic in TOPICS}
