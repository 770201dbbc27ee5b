"""Plays a plan: everybody comes, elects, fails and is interfered with; what happened is the history."""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final

from msgspec.structs import replace

from tests.model.api_server import User, service_account
from tests.truth.coordination import Coordinator
from tests.truth.electors import Election
from tests.truth.outsiders import act
from tests.truth.parties import Party
from tests.truth.plans import (
    LEASE,
    START,
    ElectorPlan,
    Fault,
    FaultKind,
    Habit,
    OutsiderPlan,
    Plan,
    Role,
)
from tests.truth.pods import PodDeed, list_pod_deeds
from tests.truth.records import History
from tests.truth.servers import Servers
from tests.truth.stage import MILLISECOND, SECOND, Actor, Agenda

_MASTERS: Final = ("system:masters", "system:authenticated")
_OF_SERVERS: Final = {
    FaultKind.RIGHTS,
    FaultKind.GET_RIGHT,
    FaultKind.WEBHOOK_REFUSES,
    FaultKind.WEBHOOK_FAILS,
    FaultKind.WEBHOOK_SLOW,
    FaultKind.POLICY_REFUSES,
    FaultKind.FAIRNESS,
    FaultKind.SERVER_ERROR,
    FaultKind.SERVERS_DOWN,
    FaultKind.SERVER_DOWN,
    FaultKind.SERVER_HANGS,
    FaultKind.SERVER_SLOW,
    FaultKind.ETCD_SLOW,
    FaultKind.MUTATE,
    FaultKind.MUTATE_LABELS,
    FaultKind.MUTATE_TIMES,
    FaultKind.MUTATE_HOLDER,
    FaultKind.MUTATE_RENEWAL,
}


def play(plan: Plan) -> History:
    """Return what happens."""
    return _Cast(plan).play()


class _Cast:
    """Everybody in a history, and the faults that befall them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._agenda = Agenda(START)
        self._servers = Servers(self._agenda, plan)
        self._parties: list[Party] = []
        self._now: dict[str, tuple[Party, Election]] = {}
        """The process that runs in each pod."""
        self._beside: dict[str, tuple[Party, Election]] = {}
        """The election of the second lease that the same process takes part in."""
        self._starts: dict[str, int] = {}
        self._uids: dict[str, str] = {}

    def play(self) -> History:
        agenda, plan = self._agenda, self._plan
        if plan.is_coordinated:
            self._coordinate()
        for number, elector in enumerate(plan.electors):
            agenda.plan(START + elector.begins * MILLISECOND, self._starting(elector, number))
        for number, outsider in enumerate(plan.outsiders):
            self._add_outsider(outsider, number)
        for number, deed in enumerate(list_pod_deeds(plan)):
            # Before the fault of the same moment: a request ends the process.
            agenda.plan(START + deed.at * MILLISECOND, partial(self._do_to_pod, deed, number))
        for fault in plan.faults:
            self._add_fault(fault)
        end = START + plan.length * MILLISECOND
        agenda.run_until(end)
        return History(
            plan=plan,
            begin=START,
            end=end,
            processes=tuple(one.record() for one in self._parties),
            requests=tuple(sorted(self._servers.requests, key=lambda request: (request.answered, request.number))),
        )

    # ---- who takes part ----

    def _starting(self, elector: ElectorPlan, number: int) -> "_Start":
        return _Start(self, elector, number)

    def start(self, elector: ElectorPlan, number: int, *, is_new_pod: bool, is_beside: bool = False) -> None:
        """Begin a process of a pod, which is the first one, another one of the pod, or one of another pod's name.

        The one before is gone by then, unless this one begins beside it.
        """
        if elector.pod in self._now and not is_beside:
            self._now[elector.pod][0].kill()
        starts = self._starts[elector.pod] = self._starts.get(elector.pod, 0) + 1
        if is_new_pod:
            self._uids[elector.pod] = _uid(self._plan.seed, elector.pod, starts)
        uid = self._uids[elector.pod]
        namespace, _, account = elector.account.partition(":")
        user = service_account(namespace, account, uid)
        is_renamed = starts > 1 and elector.has_new_identity and elector.identity != elector.pod

        def begun(lease: str, name: str) -> Party:
            party = Party(
                self._agenda,
                self._servers.ask,
                name=name,
                role=Role.ELECTOR,
                user=user,
                pod=elector.pod,
                uid=uid,
                lease=lease,
                manager=elector.manager,
                address=f"10.244.{number % 3}.{10 + number * 7 + int(uid[:2], 16) % 7}",
                agent=f"{account}/v1.4.2 (linux/amd64) kubernetes/$Format",
                server=elector.server % len(self._plan.offsets),
            )
            party.identity = f"{elector.identity}-{starts}" if is_renamed else elector.identity
            party.skew = elector.skew * MILLISECOND
            self._parties.append(party)
            return party

        party = begun(elector.lease, f"{elector.pod}/{starts}")
        election = Election(party, elector, self._servers, f"{self._plan.seed}/{party.name}")
        after_loss = _Restart(self, elector, number, party)
        if elector.is_restarted or (elector.beside and not elector.is_rerun):
            election.on_loss.append(after_loss)
        self._now[elector.pod] = party, election
        if elector.habit is Habit.COORDINATED:
            child = Actor(self._agenda, lambda _, call, reply: self._servers.ask(party, call, reply))
            party.children.append(child)
            child.follow(election.be_candidate())
        self._beside.pop(elector.pod, None)
        if elector.beside:
            other = begun(elector.beside, f"{elector.pod}/{starts}, second lease")
            habit = Habit.CLIENT_GO if elector.habit is Habit.COORDINATED else elector.habit
            plan = replace(elector, lease=elector.beside, habit=habit)
            second = Election(other, plan, self._servers, f"{self._plan.seed}/{other.name}")
            if not elector.is_rerun:
                second.on_loss.append(after_loss)
            party.children.append(other)
            self._beside[elector.pod] = other, second
            other.follow(second.run())
        party.follow(election.run())

    def _coordinate(self) -> None:
        party = Party(
            self._agenda,
            self._servers.ask,
            name="kube-apiserver",
            role=Role.API_SERVER,
            user=User("system:apiserver", _MASTERS),
            lease="",
            manager="kube-apiserver",
            address="127.0.0.1",
            agent="kube-apiserver/v1.37.1 (linux/amd64) kubernetes/$Format/leader-election",
        )
        self._parties.append(party)
        namespace, _, name = LEASE.partition("/")
        party.follow(Coordinator(party, self._servers, namespace, name).run())

    def _add_outsider(self, plan: OutsiderPlan, number: int) -> None:
        groups = _MASTERS if plan.is_master else ("system:authenticated",)
        uid = _uid(self._plan.seed, plan.name, 0) if plan.pod else ""
        if plan.role is Role.POD:
            uid = self._uids.setdefault(plan.pod, _uid(self._plan.seed, plan.pod, 1))
        party = Party(
            self._agenda,
            self._servers.ask,
            name=plan.name,
            role=plan.role,
            user=User(plan.user, groups, uid),
            pod=plan.pod,
            uid=uid,
            manager=plan.manager or plan.name,
            address=f"10.0.7.{20 + number}",
            agent=plan.agent or f"{plan.name}/v1.0 (linux/amd64)",
            server=plan.server % len(self._plan.offsets),
        )
        party.identity = plan.pod or plan.name
        self._parties.append(party)
        party.follow(act(party, plan, self._servers))

    def _do_to_pod(self, deed: PodDeed, number: int) -> None:
        if deed.has_own_uid and deed.target not in self._uids:
            return
        uid = self._uids[deed.target] if deed.has_own_uid else _uid(self._plan.seed, f"another {deed.pod}", number)
        self._servers.log_pod_request(deed, uid, number)

    # ---- what fails ----

    def _add_fault(self, fault: Fault) -> None:
        begin = START + fault.at * MILLISECOND
        end = begin + fault.length * MILLISECOND
        if fault.kind in _OF_SERVERS:
            self._agenda.plan(begin, lambda: self._servers.begin(fault))
            self._agenda.plan(end, lambda: self._servers.end(fault))
        else:
            self._agenda.plan(begin, lambda: self._befall(fault, end))

    def _befall(self, fault: Fault, end: int) -> None:
        if fault.target not in self._now:
            return
        both = [self._now[fault.target]]
        if fault.target in self._beside:
            both.append(self._beside[fault.target])
        self._befall_process(fault, end, both)
        later = self._agenda.plan
        if fault.kind is FaultKind.KILL and fault.length:
            later(end, self._again(fault.target, is_new_pod=False))
        elif fault.kind is FaultKind.REPLACE:
            later(end, self._again(fault.target, is_new_pod=True))
        elif fault.kind is FaultKind.DUPLICATE:
            later(end, self._again(fault.target, is_new_pod=True, is_beside=True))

    def _befall_process(  # noqa: C901, PLR0912 - one case for each fault
        self, fault: Fault, end: int, both: Sequence[tuple[Party, Election]]
    ) -> None:
        """Have a fault befall a process, which may elect for two leases."""
        party, _ = both[0]
        later = self._agenda.plan

        def put(name: str, value: object) -> None:
            for elector, _ in both:
                setattr(elector, name, value)

        def put_until_end(name: str, during: object, afterwards: object) -> None:
            put(name, during)
            later(end, lambda: put(name, afterwards))

        match fault.kind:
            case FaultKind.KILL | FaultKind.REPLACE:
                party.kill()
            case FaultKind.STOP if party.is_alive:
                for child in party.children:
                    if not isinstance(child, Party):
                        child.kill()
                for elector, election in both:
                    elector.follow(election.stop())
            case FaultKind.PAUSE:
                party.pause()
                later(end, party.resume)
            case FaultKind.BLOCK:
                for elector, _ in both:
                    elector.block()
                    later(end, elector.unblock)
            case FaultKind.THROTTLE:
                put_until_end("slowness", max(2, fault.amount), 1)
            case FaultKind.CUT:
                put_until_end("is_cut", True, False)
            case FaultKind.DUPLICATE:
                later(end + fault.amount * SECOND, lambda: put("has_bad_token", True))
            case FaultKind.CLOCK_STEP:
                for _, election in both:
                    election.step_clock(fault.amount * SECOND)
            case FaultKind.TOKEN:
                put_until_end("has_bad_token", True, False)
            case FaultKind.INVALID:
                put_until_end("is_sending_invalid", True, False)

    def _again(self, pod: str, *, is_new_pod: bool, is_beside: bool = False) -> "_Start":
        number, elector = next((n, one) for n, one in enumerate(self._plan.electors) if one.pod == pod)
        return _Start(self, elector, number, is_new_pod=is_new_pod, is_beside=is_beside)


class _Start:
    """Starts a process of a pod when it is called."""

    def __init__(
        self, cast: _Cast, elector: ElectorPlan, number: int, *, is_new_pod: bool = True, is_beside: bool = False
    ) -> None:
        self._cast = cast
        self._elector = elector
        self._number = number
        self._is_new_pod = is_new_pod
        self._is_beside = is_beside

    def __call__(self) -> None:
        self._cast.start(self._elector, self._number, is_new_pod=self._is_new_pod, is_beside=self._is_beside)


class _Restart:
    """Ends a process that lost the lease, and starts the next one of its pod."""

    def __init__(self, cast: _Cast, elector: ElectorPlan, number: int, party: Party) -> None:
        self._cast = cast
        self._elector = elector
        self._number = number
        self._party = party

    def __call__(self) -> None:
        if self._party.is_alive:
            self._party.kill()
            agenda = self._party.agenda
            if not self._elector.is_restarted:
                return
            agenda.plan(
                agenda.now + 2 * SECOND, lambda: self._cast.start(self._elector, self._number, is_new_pod=False)
            )


def _uid(seed: int, name: str, number: int) -> str:
    drawn = Random(f"{seed}/{name}/{number}")
    return f"{drawn.getrandbits(32):08x}-{drawn.getrandbits(16):04x}-4000-8000-{drawn.getrandbits(48):012x}"
