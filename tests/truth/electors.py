"""What electors do, second by second: when they read, write, believe that they lead, and give up.

Sources: client-go `tools/leaderelection/leaderelection.go`, controller-runtime `pkg/leaderelection`, fabric8
`LeaderElector`, the Python clients' `leaderelection.py`. What each writes is the model's (`tests/model/electors.py`).
"""

from collections.abc import Generator
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from tests.model import electors
from tests.model.api_server import Lease, Write
from tests.model.electors import Elector
from tests.truth.parties import PATIENCE, Answer, Call, Party
from tests.truth.plans import ElectorPlan, Habit
from tests.truth.records import State
from tests.truth.servers import Servers
from tests.truth.stage import MILLISECOND, SECOND, Wait
from webhook.kubernetes.times import format_micro_time

RETRY: Final = 2 * SECOND
DEADLINE: Final = 10 * SECOND
_KINDS: Final = {
    Habit.CLIENT_GO: electors.CLIENT_GO,
    Habit.CONTROLLER_RUNTIME: electors.CLIENT_GO,
    Habit.FABRIC8: electors.FABRIC8,
    Habit.PYTHON: electors.ASYNCIO,
    Habit.ASYNCIO: electors.ASYNCIO,
    Habit.COORDINATED: electors.COORDINATED,
    Habit.UNELECTED: electors.CLIENT_GO,
}
_WRITES_WHAT_IT_KNOWS: Final = {Habit.CLIENT_GO, Habit.CONTROLLER_RUNTIME}
"""Those that renew without a read before."""

Yields = Generator[Any, Any, bool]


class Election:
    """The election of one process. `on_loss` is called when it has lost the lease and ends."""

    def __init__(self, party: Party, plan: ElectorPlan, servers: Servers, seed: str) -> None:
        self._party = party
        self._plan = plan
        self._servers = servers
        self._random = Random(seed)
        self._namespace, _, self._name = plan.lease.partition("/")
        self._me = Elector(
            _KINDS[plan.habit], party.identity, party.user, plan.manager, plan.skew * MILLISECOND, plan.duration
        )
        self._last: State | None = None
        self.on_loss: list[Any] = []

    def run(self) -> Generator[Any, Any, None]:
        """Elect until the lease is lost, or forever."""
        party = self._party
        if self._plan.habit is Habit.UNELECTED:
            party.starts("works")
            while True:
                yield Wait(3600 * SECOND)
        is_first = True
        while is_first or self._plan.is_rerun:
            is_first = False
            yield from self._lead_once()
        for deed in self.on_loss:
            party.agenda.plan(party.agenda.now, deed)

    def _lead_once(self) -> Generator[Any, Any, None]:
        """Wait for the lease, and lead until it is lost."""
        party = self._party
        while not (yield from self._attempt(PATIENCE)):
            yield Wait(self._plan.waits * MILLISECOND or RETRY + int(self._random.random() * 1.2 * RETRY))
        if not self._plan.is_idle:
            party.starts("works")
        while (yield from self._renew()):
            yield Wait(RETRY)
        party.ends("works")
        if self._plan.releases:
            yield from self._release()

    def stop(self) -> Generator[Any, Any, None]:
        """End in order."""
        party = self._party
        was_leading = party.is_working or self._holds()
        if not self._plan.lingers:
            party.ends("works")
        if was_leading and self._plan.releases:
            yield from self._release()
        if self._plan.lingers and party.is_working:
            yield Wait(self._plan.lingers * MILLISECOND)
            party.ends("works")
        party.agenda.plan(party.agenda.now, party.kill)
        yield Wait(SECOND)

    def be_candidate(self) -> Generator[Any, Any, None]:
        """Say that it would lead, and answer the pings of the API server."""
        key = ("LeaseCandidate", self._namespace, self._party.identity)
        ping = ""
        while True:
            now = format_micro_time(self._party.clock())
            known = self._servers.states.get(key)
            if known is None or (ping := _ping_of(known)) > _renewed_of(known):
                spec = {
                    "leaseName": self._name,
                    **({"pingTime": ping} if known and ping else {}),
                    "renewTime": max(now, ping) if known else now,
                    "binaryVersion": "1.33.0",
                    "emulationVersion": f"1.{self._plan.emulated}.0",
                    "strategy": "OldestEmulationVersion",
                }
                verb = "update" if known else "create"
                yield Call(
                    verb=verb,
                    kind="LeaseCandidate",
                    namespace=self._namespace,
                    name=self._party.identity,
                    candidate=spec,
                    guard=known.revision if known else None,
                )
            yield Wait(250 * MILLISECOND)

    def step_clock(self, micros: int) -> None:
        """Set the clock of the process."""
        self._party.skew += micros
        self._me = replace(self._me, skew=self._me.skew + micros)

    # ---- renewing ----

    def _renew(self) -> Yields:
        """Try to renew until the deadline; return whether it succeeded."""
        agenda = self._party.agenda
        deadline = agenda.now + DEADLINE
        while True:
            left = deadline - agenda.now
            has_time = left > 0 or self._plan.has_no_deadline
            if not has_time:
                return False
            if (yield from self._attempt(PATIENCE if self._plan.has_no_deadline else min(PATIENCE, left))):
                return True
            left = deadline - agenda.now
            if self._plan.has_no_deadline:
                yield Wait(RETRY)
            elif left <= RETRY:
                yield Wait(max(0, left))
                return False
            else:
                yield Wait(RETRY)

    def _attempt(self, patience: int) -> Yields:
        """Acquire or renew once; return whether it holds the lease then."""
        if self._plan.habit in _WRITES_WHAT_IT_KNOWS and self._last is not None and self._is_valid():
            write = self._intention(self._last.lease)
            if write is not None and (yield from self._write(write, self._last, patience)):
                return True
        answer: Answer | None = yield self._call("get", None, None, patience)
        if answer is None or not (answer.is_good or answer.code == 404):
            return False
        state = answer.state if answer.is_good else None
        lease = state.lease if state else None
        self._last = state
        self._me = electors.observed(self._me, lease, self._party.agenda.now)
        if self._plan.habit is Habit.COORDINATED and not self._holds():
            return False
        write = self._intention(lease)
        return write is not None and (yield from self._write(write, state, patience))

    def _write(self, write: Write, read: State | None, patience: int) -> Yields:
        call = self._call("update" if read else "create", write, read.revision if read else None, patience)
        answer: Answer | None = yield call
        if answer is None or not answer.is_good or answer.state is None:
            return False
        self._last = answer.state
        self._me = electors.observed(self._me, answer.state.lease, self._party.agenda.now)
        return self._holds()

    def _release(self) -> Generator[Any, Any, None]:
        known = self._last
        write = electors.release(self._me, known.lease if known else None, self._party.agenda.now)
        if write is None or known is None:
            return
        answer: Answer | None = yield self._call("update", self._round(write), known.revision, PATIENCE)
        if answer is not None and answer.is_good:
            self._last = answer.state

    def _intention(self, lease: Lease | None) -> Write | None:
        now = self._party.agenda.now
        write = electors.intention(self._me, lease, now, now)
        return None if write is None else self._round(write)

    def _round(self, write: Write) -> Write:
        """Return what a program writes that has no fractions of a second."""
        if not self._plan.is_local_time:
            return write
        spec = write.spec
        whole = {name: getattr(spec, name) for name in ("acquired", "renewed") if getattr(spec, name) is not None}
        whole = {name: value // SECOND * SECOND for name, value in whole.items()}
        return replace(write, spec=replace(spec, **whole))

    def _holds(self) -> bool:
        lease = self._last.lease if self._last else None
        return lease is not None and lease.spec.holder == self._party.identity

    def _is_valid(self) -> bool:
        """Return whether it may renew what it wrote last without a read."""
        return self._holds() and self._party.agenda.now < self._me.seen_since + self._plan.duration * SECOND

    def _call(self, verb: str, write: Write | None, guard: int | None, patience: int) -> Call:
        return Call(
            verb=verb,
            namespace=self._namespace,
            name=self._name,
            write=None if write is None else lambda _: write,
            guard=guard,
            patience=max(MILLISECOND, patience),
        )


def _ping_of(state: State) -> str:
    return str(state.candidate.get("pingTime", ""))


def _renewed_of(state: State) -> str:
    return str(state.candidate["renewTime"])
