"""Long random histories: many electors, scripts, API servers and an attacker on one Lease, every law at each write."""

from typing import Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from tests.model import arsenal, attacker, electors, world
from tests.model.api_server import User, Write
from tests.model.depth import MORE
from tests.model.electors import Elector, Kind, elector
from tests.model.managed_fields import APPLY, SECOND
from tests.model.world import HOUR, Late, World

KINDS: Final = (electors.CLIENT_GO, electors.FABRIC8, electors.ASYNCIO, electors.KUBERT, electors.UNGUARDED)
INDEX: Final = st.integers(0, 2)
SERVER: Final = st.integers(0, 2)
MANAGER: Final = st.sampled_from(["checkout", "kubectl-label", *(f"script{number}" for number in range(12))])


@st.composite
def some_elector(draw: st.DrawFn, pod: str, duration: int) -> Elector:
    kind: Kind = draw(st.sampled_from(KINDS))
    skew = draw(st.sampled_from([0, 1, -1])) * draw(st.integers(0, 12 * HOUR))
    return elector(kind, pod, skew=skew, duration=duration)


class LeaseWorld(RuleBasedStateMachine):
    """A step is a rule; each raises LawBrokenError where the webhook breaks a law."""

    @initialize(
        data=st.data(), duration=st.sampled_from([2, 5, 15, 40]), policy=st.sampled_from([world.STANDARD, world.STRICT])
    )
    def begin(self, data: st.DataObject, duration: int, policy: str) -> None:
        self.policy = policy
        apart = world.whole_tolerance(duration)
        if apart:
            offsets = (0, *(data.draw(st.integers(-apart, 0)) for _ in range(2)))
        else:
            offsets = (data.draw(st.integers(-SECOND, SECOND)),) * 3
        some = tuple(data.draw(some_elector(f"checkout-{letter}", duration)) for letter in "abc")
        if data.draw(st.booleans()):
            some = (
                some[0],
                elector(electors.controller("checkout-c_1f0e"), ""),
                elector(electors.COORDINATED, "checkout-c"),
            )
        self.here = World(world.START, offsets, some)

    @rule(micros=st.one_of(st.integers(0, 3 * SECOND), st.integers(0, 50 * SECOND), st.integers(0, 30 * HOUR)))
    def time_passes(self, micros: int) -> None:
        self.here = world.waited(self.here, micros)

    @rule(index=INDEX, server=SERVER)
    def acts(self, index: int, server: int) -> None:
        self.here = world.acted(self.here, index, server, self.policy)

    @rule(index=INDEX, server=SERVER, times=st.integers(1, 5))
    def keeps_renewing(self, index: int, server: int, times: int) -> None:
        for _ in range(times):
            self.here = world.acted(world.waited(self.here, 2 * SECOND), index, server, self.policy)

    @rule(index=INDEX, server=SERVER)
    def sends(self, index: int, server: int) -> None:
        self.here, write = world.intended(self.here, index, server)
        if write is not None:
            self.here = replace(self.here, late=(*self.here.late, Late(index, write, self.here.now)))

    @precondition(lambda self: self.here.late)
    @rule(server=SERVER)
    def arrives(self, server: int) -> None:
        self.here = world.delivered(self.here, server, self.policy)

    @rule(index=INDEX)
    def dies_and_comes_back(self, index: int) -> None:
        self.here = world.crashed(self.here, index)
        self._restart(index)

    @rule(index=INDEX, server=SERVER)
    def stops_and_comes_back(self, index: int, server: int) -> None:
        self.here = world.released(self.here, index, server, self.policy)
        self._restart(index)

    def _restart(self, index: int) -> None:
        elector = replace(self.here.electors[index], crashed=False, seen=None)
        some = self.here.electors
        self.here = replace(self.here, electors=(*some[:index], elector, *some[index + 1 :]))

    @precondition(lambda self: self.here.lease)
    @rule(manager=MANAGER, server=SERVER, value=st.sampled_from(["", "1", "2"]))
    def labels(self, manager: str, server: int, value: str) -> None:
        assert self.here.lease is not None
        labels = {key: old for key, old in self.here.lease.labels if key != manager} | (
            {manager: value} if value else {}
        )
        write = Write(manager, self.here.lease.spec, tuple(sorted(labels.items())))
        self.here = world.noted(self.here, write, server, self.policy)

    @precondition(lambda self: self.here.lease and self.here.lease.spec.renewed is not None)
    @rule(server=SERVER, label=st.sampled_from(["", "1", "2"]))
    def applies(self, server: int, label: str) -> None:
        assert self.here.lease is not None
        labels = (("applied", label),) if label else ()
        fields = frozenset({"renewed", *(f"labels.{key}" for key, _ in labels)})
        write = Write("gitops", self.here.lease.spec, labels, APPLY, fields)
        self.here = world.noted(self.here, write, server, self.policy)

    @rule(server=SERVER, micros=st.one_of(st.integers(1, 20 * SECOND), st.integers(1, 2 * HOUR)))
    def a_clock_falls(self, server: int, micros: int) -> None:
        self.here = world.stepped_back(self.here, server, micros)

    @precondition(lambda self: self.here.lease)
    @rule(
        attack=st.sampled_from(arsenal.ATTACKS), server=SERVER, who=st.sampled_from(list(attacker.ATTACKERS.values()))
    )
    def attacks(self, attack: arsenal.Attack, server: int, who: User) -> None:
        """Whatever a binding would have to refuse is checked; what the policy lets through is stored."""
        assert self.here.lease is not None
        write = attack.send(self.here.lease, self.here.now)
        policies = (self.policy, "standard, bound", "strict, bound")
        outcome = None if write is None else world.evaluate(self.here, who, write, server, policies)
        if outcome is None:
            return
        world.check_bound(self.here, outcome)
        if outcome.verdicts[self.policy].allowed:
            self.here = replace(world.settled(self.here, outcome), forged=True)

    @invariant()
    def nobody_leads_twice(self) -> None:
        """Check that at most one elector believes that it leads, where nobody stole, forged or set a clock."""
        here = self.here
        if not (here.steals or here.forged):
            assert len({one.identity for one in here.leaders}) <= 1


TestLeaseWorld = LeaseWorld.TestCase
TestLeaseWorld.settings = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    max_examples=60 if not MORE else 1500,
    stateful_step_count=25 if not MORE else 60,
    suppress_health_check=list(HealthCheck),
)
