"""The coordinated election of an API server: it pings candidates, chooses one, and asks holders to step down.

Source: kube-apiserver `pkg/controlplane/controller/leaderelection/leaderelection_controller.go`. It creates the lease
first; of one that exists it replaces a holder that is gone by another, never by the same name, so an election stalls
whose only candidate stepped down in vain.
"""

from collections.abc import Generator
from typing import Any, Final

from msgspec.structs import replace

from tests.factories import Document
from tests.model.api_server import Lease, Spec, Write
from tests.truth.parties import Answer, Call, Party
from tests.truth.records import State
from tests.truth.servers import Servers
from tests.truth.stage import MILLISECOND, SECOND, Wait
from webhook.kubernetes.times import format_micro_time

STRATEGY: Final = "OldestEmulationVersion"
CHOSEN_DURATION: Final = 5
_ELECTION: Final = 5 * SECOND
_TICK: Final = 500 * MILLISECOND


class Coordinator:
    """The election of one lease by the API server."""

    def __init__(self, party: Party, servers: Servers, namespace: str, name: str) -> None:
        self._party = party
        self._servers = servers
        self._namespace = namespace
        self._name = name

    def run(self) -> Generator[Any, Any, None]:
        """Elect, forever."""
        while True:
            if self._is_needed():
                yield from self._elect()
            yield Wait(_TICK)

    def _candidates(self) -> list[State]:
        candidates = (
            one for key, one in self._servers.states.items() if key[:2] == ("LeaseCandidate", self._namespace)
        )
        return sorted((one for one in candidates if one.candidate["leaseName"] == self._name), key=_rank)

    def _lease(self) -> Lease | None:
        state = self._servers.states.get(("Lease", self._namespace, self._name))
        return state.lease if state else None

    def _is_needed(self) -> bool:
        candidates = self._candidates()
        if not candidates:
            return False
        lease = self._lease()
        if lease is None or not lease.spec.holder or self._is_expired(lease):
            return True
        return lease.spec.holder != candidates[0].key[2]

    def _is_expired(self, lease: Lease) -> bool:
        spec = lease.spec
        if spec.renewed is None or spec.duration is None:
            return True
        return spec.renewed + spec.duration * SECOND < self._clock()

    def _clock(self) -> int:
        return self._party.agenda.now + self._servers.offsets[self._party.server]

    def _elect(self) -> Generator[Any, Any, None]:
        pinged = format_micro_time(self._clock())
        for candidate in self._candidates():
            yield self._call(
                "update", candidate.key[2], kind="LeaseCandidate", candidate={**candidate.candidate, "pingTime": pinged}
            )
        until = self._party.agenda.now + _ELECTION
        while self._party.agenda.now < until and any(_is_waiting(one, pinged) for one in self._candidates()):
            yield Wait(_TICK // 5)
        answered = [one for one in self._candidates() if not _is_waiting(one, pinged)]
        if not answered:
            yield Wait(_ELECTION)
            return
        best = answered[0].key[2]
        now = self._clock()
        chosen = Spec(holder=best, duration=CHOSEN_DURATION, renewed=now, strategy=STRATEGY)
        answer: Answer | None = yield self._call("create", self._name, write=Write("kube-apiserver", chosen))
        lease = self._lease()
        if (answer is not None and answer.is_good) or lease is None:
            return
        spec = lease.spec
        if not spec.holder or (self._is_expired(lease) and spec.holder != best):
            after = replace(
                spec,
                holder=best,
                duration=CHOSEN_DURATION,
                renewed=now,
                acquired=None,
                preferred=None,
                strategy=STRATEGY,
            )
        elif best not in (spec.holder, spec.preferred) and not self._is_expired(lease):
            after = replace(spec, preferred=best, strategy=STRATEGY)
        else:
            yield Wait(_ELECTION)
            return
        guard = self._servers.states[("Lease", self._namespace, self._name)].revision
        yield self._call("update", self._name, write=Write("kube-apiserver", after, lease.labels), guard=guard)
        yield Wait(SECOND)

    def _call(
        self,
        verb: str,
        name: str,
        *,
        kind: str = "Lease",
        write: Write | None = None,
        candidate: Document | None = None,
        guard: int | None = None,
    ) -> Call:
        return Call(
            verb=verb,
            kind=kind,
            namespace=self._namespace,
            name=name,
            write=None if write is None else lambda _: write,
            candidate=candidate,
            guard=guard,
        )


def _rank(state: State) -> tuple[str, str, str]:
    candidate = state.candidate
    return candidate["emulationVersion"], candidate["binaryVersion"], state.key[2]


def _is_waiting(state: State, pinged: str) -> bool:
    return str(state.candidate["renewTime"]) < str(state.candidate.get("pingTime", pinged))
