"""The topics of `make e2e`, in the order of the table. A new topic is a module of `topics` and a line here."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from tests.lab.e2e.topics import (
    attacks_on_leases,
    audit,
    client_certificates,
    conditions,
    cost,
    counts,
    depth,
    elections,
    fence,
    kubectl,
    live_timeline,
    manifests,
    outage,
    policies,
    recorder,
    rotation,
    stamp,
    stamp_arsenal,
    static_manifests,
    suggestions,
    token,
)
from tests.lab.e2e.world import Row, World


class Topic(Struct, frozen=True):
    """One thing to prove.

    Phases follow each other. Within a phase, topics of one lane follow each other, and lanes run side by side.
    `everywhere`: also on the versions that are not run in full.
    """

    name: str
    title: str
    run: Callable[[World], Iterator[Row]]
    phase: int
    lane: int = 0
    everywhere: bool = False


TOPICS: Final = (
    Topic("manifests", "Manifests", manifests.run, phase=0),
    Topic("kubectl", "kubectl", kubectl.run, phase=2),
    Topic("elections", "Elections", elections.run, phase=2, lane=1),
    Topic("outage", "Our outage", outage.run, phase=1),
    Topic("counts", "What reaches us", counts.run, phase=2),
    Topic("conditions", "The match condition", conditions.run, phase=2, everywhere=True),
    Topic("depth", "Depth policy", depth.run, phase=3, everywhere=True),
    Topic("attacks", "Standing attacks", attacks_on_leases.run, phase=2, lane=2, everywhere=True),
    Topic("fence", "A fence", fence.run, phase=2, lane=3, everywhere=True),
    Topic("rotation", "Rotation and restart", rotation.run, phase=1, lane=1),
    Topic("audit", "Audit log and warnings", audit.run, phase=2),
    Topic("suggestions", "Suggestions", suggestions.run, phase=3, lane=1),
    Topic("live-timeline", "The live timeline", live_timeline.run, phase=3, lane=4),
    Topic("static-manifests", "Static manifests", static_manifests.run, phase=3, lane=2, everywhere=True),
    Topic("client-certificates", "Client certificates", client_certificates.run, phase=3, lane=3),
    Topic("stamp", "Stamps", stamp.run, phase=3, lane=5, everywhere=True),
    Topic("stamp-arsenal", "Stamps and the standing attacks", stamp_arsenal.run, phase=3, lane=5),
    Topic("recorder", "The recorder", recorder.run, phase=1, lane=2),
    Topic("token", "A fence with a token", token.run, phase=3, lane=6),
    Topic("policies", "Policies only", policies.run, phase=4, everywhere=True),
    Topic("cost", "Cost per write", cost.run, phase=5),
)
"""The outage and the rotations take three minutes, so they share a phase. The policy against depth would refuse what
the standing attacks plant, and policies what other topics write, so they come later. The cost is measured alone."""

BY_NAME: Final = {topic.name: topic for topic in TOPICS}
