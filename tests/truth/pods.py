"""Deletions and evictions of pods, and requests that look like them and end no process.

It follows from the faults of a plan, drawn apart for each, so that everything else is as it was.
"""

from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import Final

from msgspec import Struct

from tests.factories import Document
from tests.truth.plans import Fault, FaultKind, Plan
from tests.truth.records import Refusal

_SECOND: Final = 1000
_CONTROLLER: Final = "system:serviceaccount:kube-system:replicaset-controller"
_DELETERS: Final = (_CONTROLLER, "system:serviceaccount:kube-system:pod-garbage-collector", "alice")


class PodDeedKind(StrEnum):
    """The kinds of requests about a pod."""

    DELETE = "deletes the pod"
    EVICT = "evicts the pod"
    TIDY = "deletes the pod long after its process had ended"
    BEFORE = "deletes the pod that had the name before"
    ELSEWHERE = "deletes a pod of that name in another namespace"
    OTHER = "deletes another pod of the namespace"
    FORBIDDEN = "may not delete the pod"
    BUDGET = "may not evict the pod, by its disruption budget"
    DRY_RUN = "deletes the pod in a dry run"


POD_REFUSALS: Final = {
    PodDeedKind.FORBIDDEN: Refusal(
        403, "RBAC", 'pods is forbidden: User "mallory" cannot delete resource', "Forbidden"
    ),
    PodDeedKind.BUDGET: Refusal(
        429, "API server", "Cannot evict pod as it would violate the pod's disruption budget.", "TooManyRequests"
    ),
}
_NOISE: Final = (
    PodDeedKind.ELSEWHERE,
    PodDeedKind.OTHER,
    PodDeedKind.FORBIDDEN,
    PodDeedKind.BUDGET,
    PodDeedKind.DRY_RUN,
)
_OF_RUNNING: Final = (FaultKind.PAUSE, FaultKind.BLOCK, FaultKind.THROTTLE, FaultKind.CUT, FaultKind.TOKEN)


class PodDeed(Struct, frozen=True, kw_only=True):
    """A request about a pod at a time in milliseconds since the beginning; `target` is the pod that it is meant for."""

    at: int
    kind: PodDeedKind
    target: str
    user: str

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return "infra" if self.kind is PodDeedKind.ELSEWHERE else "shop"

    @property
    def pod(self) -> str:
        """The pod that it names."""
        return "cart-6c9d8-x7w2p" if self.kind is PodDeedKind.OTHER else self.target

    @property
    def is_eviction(self) -> bool:
        """True for a request of the eviction API."""
        return self.kind in (PodDeedKind.EVICT, PodDeedKind.BUDGET)

    @property
    def has_own_uid(self) -> bool:
        """True if it is about the pod that has the target's name at that time."""
        return self.kind not in (PodDeedKind.ELSEWHERE, PodDeedKind.OTHER, PodDeedKind.BEFORE)

    @property
    def body(self) -> Document:
        """The object of the request."""
        if self.is_eviction:
            return {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": self.pod}}
        options: Document = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        return options | ({"dryRun": ["All"]} if self.kind is PodDeedKind.DRY_RUN else {})


def list_pod_deeds(plan: Plan) -> Iterator[PodDeed]:
    """Yield what is done to pods while the history lasts."""
    for fault in plan.faults:
        draw = Random(f"pods {plan.seed} {fault.kind.name} {fault.at} {fault.target}")
        yield from (one for one in _list_of_fault(fault, draw) if 0 <= one.at < plan.length - _SECOND)
    for elector in plan.electors:
        if elector.begins > 2 * _SECOND and elector.identity == elector.pod:
            yield PodDeed(at=elector.begins - _SECOND, kind=PodDeedKind.BEFORE, target=elector.pod, user=_CONTROLLER)


def _list_of_fault(fault: Fault, draw: Random) -> Iterator[PodDeed]:
    kind = PodDeedKind.EVICT if draw.random() < 0.25 else PodDeedKind.DELETE
    user, part = draw.choice(_DELETERS), draw.random()
    grace = draw.choice((0, 0, 0, 2, 10, 29)) * _SECOND
    if fault.kind in (FaultKind.REPLACE, FaultKind.DUPLICATE):
        yield PodDeed(at=fault.at - grace, kind=kind, target=fault.target, user=user)
    elif fault.kind is FaultKind.STOP and part < 0.6:
        yield PodDeed(at=fault.at, kind=kind, target=fault.target, user=user)
    elif fault.kind is FaultKind.KILL and not fault.length and part < 0.4:
        yield PodDeed(at=fault.at - grace, kind=kind, target=fault.target, user=user)
    elif fault.kind is FaultKind.KILL and not fault.length and part < 0.8:
        later = fault.at + draw.choice((15, 25, 45)) * _SECOND
        yield PodDeed(at=later, kind=PodDeedKind.TIDY, target=fault.target, user=user)
    elif fault.kind in _OF_RUNNING or fault.kind is FaultKind.KILL:
        before = draw.choice((0, 1, 5)) * _SECOND
        yield PodDeed(at=fault.at - before, kind=draw.choice(_NOISE), target=fault.target, user="mallory")
