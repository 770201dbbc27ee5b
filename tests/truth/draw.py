"""Draws plans: who elects how, what fails, and who interferes."""

from collections.abc import Iterator
from random import Random
from typing import Final

from msgspec.structs import replace

from tests.truth.plans import (
    SECOND_LEASE,
    Deed,
    ElectorPlan,
    Fault,
    FaultKind,
    Habit,
    OutsiderPlan,
    Plan,
    Role,
    Step,
)

_SECOND: Final = 1000
_NEIGHBORS: Final = ("infra/dns", "infra/mailer", "shop/reports")
_ACCOUNT: Final = "shop:checkout"

_OF_PROCESSES: Final = (
    FaultKind.KILL,
    FaultKind.KILL,
    FaultKind.STOP,
    FaultKind.PAUSE,
    FaultKind.BLOCK,
    FaultKind.THROTTLE,
    FaultKind.CUT,
    FaultKind.REPLACE,
    FaultKind.DUPLICATE,
    FaultKind.CLOCK_STEP,
    FaultKind.TOKEN,
    FaultKind.INVALID,
)
_OF_ACCOUNTS: Final = (
    FaultKind.RIGHTS,
    FaultKind.GET_RIGHT,
    FaultKind.WEBHOOK_REFUSES,
    FaultKind.WEBHOOK_FAILS,
    FaultKind.POLICY_REFUSES,
    FaultKind.FAIRNESS,
    FaultKind.SERVER_ERROR,
)
_OF_ALL: Final = (
    FaultKind.SERVERS_DOWN,
    FaultKind.ETCD_SLOW,
    FaultKind.WEBHOOK_SLOW,
    FaultKind.WEBHOOK_FAILS,
    FaultKind.MUTATE,
    FaultKind.MUTATE_LABELS,
    FaultKind.MUTATE_TIMES,
)
_OF_SERVERS: Final = (FaultKind.SERVER_DOWN, FaultKind.SERVER_HANGS, FaultKind.SERVER_SLOW)

_TOOLS: Final = (
    (Deed.APPLY, Role.TOOL, "argocd-controller", "system:serviceaccount:argocd:argocd-application-controller"),
    (Deed.APPLY_LABELS, Role.TOOL, "kustomize-controller", "system:serviceaccount:flux-system:kustomize-controller"),
    (Deed.PATCH, Role.TOOL, "platform-team", "system:serviceaccount:ops:platform"),
    (Deed.RESTORE, Role.TOOL, "velero-server", "system:serviceaccount:velero:velero"),
    (Deed.RESTORE_OVER, Role.TOOL, "velero-server", "system:serviceaccount:velero:velero"),
    (Deed.CLEAN, Role.TOOL, "lease-cleaner", "system:serviceaccount:ops:lease-cleaner"),
    (Deed.EDIT_DURATION, Role.PERSON, "kubectl-edit", "alice"),
    (Deed.RELEASE, Role.PERSON, "kubectl-patch", "alice"),
    (Deed.RELEASE, Role.POD, "kubectl-patch", ""),
    (Deed.DELETE, Role.PERSON, "kubectl", "alice"),
    (Deed.DELETE, Role.TOOL, "namespace-cleaner", "system:serviceaccount:ops:namespace-cleaner"),
    (Deed.WRITE_IN, Role.PERSON, "kubectl-patch", "alice"),
    (Deed.LABEL, Role.PERSON, "kubectl-label", "alice"),
    (Deed.WIPE, Role.PERSON, "kubectl-replace", "alice"),
    (Deed.UNPREFER, Role.PERSON, "kubectl-patch", "alice"),
    (Deed.GET, Role.PERSON, "kubectl", "alice"),
    (Deed.DRY_RUN, Role.PERSON, "kubectl-patch", "alice"),
)

_ATTACKS: Final = (
    (Deed.STEAL,),
    (Deed.STEAL,),
    (Deed.WRITE_IN,),
    (Deed.WRITE_IN, Deed.WRITE_IN),
    (Deed.KEEP_ALIVE,),
    (Deed.KEEP_ALIVE, Deed.RELEASE),
    (Deed.ECHO,),
    (Deed.RENAME,),
    (Deed.WRITE_IN, Deed.RENAME),
    (Deed.RELEASE,),
    (Deed.PREFER,),
    (Deed.FUTURE,),
    (Deed.PAST,),
    (Deed.FORGE_STAMPS,),
    (Deed.FORGE_STAMPS, Deed.STEAL),
    (Deed.PLANT_STAMPS,),
    (Deed.PLANT_STAMPS, Deed.STEAL),
    (Deed.INVALID,),
    (Deed.FORBIDDEN,),
    (Deed.WRONG_TOKEN,),
    (Deed.EDIT_DURATION,),
    (Deed.WIPE,),
    (Deed.GET,),
)


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    return _Drawing(seed).plan()


class _Drawing:
    """One plan in the making."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = Random(f"plan {seed}")
        pick = self._random.random
        self._is_coordinated = pick() < 0.2
        self._is_stamped = pick() < 0.25
        self._servers = self._random.choice((1, 1, 1, 2, 3))
        self._length = self._random.randrange(70, 200) * _SECOND

    def plan(self) -> Plan:
        electors = self._habits_of(self._electors())
        pods = [one.pod for one in electors]
        faults = tuple(sorted((*self._faults(pods), *self._further_faults(pods)), key=lambda fault: fault.at))
        outsiders = self._outsiders(electors)
        moments = [one.at for one in faults] + [step.at for one in outsiders for step in one.steps]
        middle = self._random.choice(moments) if moments else self._length // 2
        hole_begin = max(1, middle - self._random.randrange(1, 8) * _SECOND)
        return Plan(
            seed=self._seed,
            length=self._length,
            offsets=self._offsets(),
            electors=(*electors, *self._neighbors()),
            faults=faults,
            outsiders=outsiders,
            is_stamped=self._is_stamped,
            is_coordinated=self._is_coordinated,
            hole=(hole_begin, hole_begin + self._random.randrange(10, 40) * _SECOND),
            late=max(1, middle + self._random.randrange(-6, 12) * _SECOND),
        )

    def _offsets(self) -> tuple[int, ...]:
        widest = self._random.choice((0, 0, 0, 40, 300, 1200))
        return tuple(self._random.randint(-widest, widest) if widest else 0 for _ in range(self._servers))

    # ---- electors ----

    def _electors(self) -> tuple[ElectorPlan, ...]:
        draw = self._random
        count = draw.choice((1, 2, 2, 2, 3, 3, 4))
        style = draw.choice(("deployment", "deployment", "statefulset", "uuid", "plain"))
        shared = draw.random() < 0.07
        habit = self._habit()
        duration = draw.choice((15, 15, 15, 30, 10, 60 if habit is Habit.COORDINATED else 15))
        releases = draw.random() < 0.5
        restarts = draw.random() < 0.6
        reruns = not restarts and draw.random() < 0.6
        electors = []
        for number in range(count):
            token = f"{draw.getrandbits(24):06x}"
            pod = f"checkout-{number}" if style == "statefulset" else f"checkout-5b7d-{token[:5]}"
            identity = {
                "deployment": f"{pod}_{draw.getrandbits(32):08x}",
                "statefulset": pod,
                "uuid": f"{draw.getrandbits(32):08x}-{token[:4]}-4a00-9000-{draw.getrandbits(48):012x}",
                "plain": pod,
            }[style]
            if shared:
                identity = "export-leader"
            mixed = self._habit() if draw.random() < 0.1 else habit
            electors.append(
                ElectorPlan(
                    pod=pod,
                    habit=mixed,
                    identity=pod if mixed is Habit.COORDINATED else identity,
                    begins=draw.choice((0, 0, 1, 3, 30)) * number * _SECOND + draw.randrange(2000),
                    skew=self._skew(),
                    duration=duration if draw.random() < 0.95 else draw.choice((15, 30, 60)),
                    server=draw.randrange(self._servers),
                    emulated=draw.choice((33, 33, 32)),
                    lingers=draw.choice((0, 0, 0, 8000)) if mixed is Habit.CONTROLLER_RUNTIME else 0,
                    releases=releases,
                    is_restarted=restarts,
                    is_rerun=reruns,
                    is_idle=draw.random() < 0.03,
                    is_local_time=mixed in (Habit.PYTHON, Habit.ASYNCIO) and draw.random() < 0.3,
                    has_no_deadline=draw.random() < 0.04,
                    has_new_identity=draw.random() < 0.7,
                    manager="checkout" if draw.random() < 0.95 else "checkout-canary",
                )
            )
        return tuple(electors)

    def _habits_of(self, electors: tuple[ElectorPlan, ...]) -> tuple[ElectorPlan, ...]:
        """Return electors of which followers may wait for long, and all may elect for a second lease."""
        draw = self._random
        if draw.random() < 0.12:
            waits = draw.choice((12, 20, 45)) * _SECOND
            electors = (electors[0], *(replace(one, waits=waits) for one in electors[1:]))
        if draw.random() < 0.12:
            electors = tuple(replace(one, beside=SECOND_LEASE) for one in electors)
        return electors

    def _habit(self) -> Habit:
        if self._is_coordinated and self._random.random() < 0.9:
            return Habit.COORDINATED
        return self._random.choice(
            (
                Habit.CLIENT_GO,
                Habit.CLIENT_GO,
                Habit.CLIENT_GO,
                Habit.CONTROLLER_RUNTIME,
                Habit.CONTROLLER_RUNTIME,
                Habit.FABRIC8,
                Habit.PYTHON,
                Habit.ASYNCIO,
            )
        )

    def _skew(self) -> int:
        draw = self._random
        if draw.random() < 0.8:
            return draw.randint(-60, 60)
        return draw.choice((-90_000, -20_000, -3000, 3000, 20_000, 90_000, 3_600_000, -7_200_000))

    def _neighbors(self) -> tuple[ElectorPlan, ...]:
        return tuple(
            ElectorPlan(
                pod=f"{lease.partition('/')[2]}-7c9-{number}",
                identity=f"{lease.partition('/')[2]}-7c9-{number}_{self._random.getrandbits(32):08x}",
                lease=lease,
                account=lease.replace("/", ":"),
                manager=lease.partition("/")[2],
                begins=self._random.randrange(1500),
                server=self._random.randrange(self._servers),
            )
            for number, lease in enumerate(_NEIGHBORS[: self._random.choice((1, 2, 3))])
        )

    # ---- faults ----

    def _faults(self, pods: list[str]) -> tuple[Fault, ...]:
        count = self._random.choice((0, 1, 1, 1, 1, 2, 2, 3))
        return tuple(sorted((self._fault(pods) for _ in range(count)), key=lambda fault: fault.at))

    def _fault(self, pods: list[str]) -> Fault:
        draw = self._random
        at = draw.randrange(15 * _SECOND, self._length - 12 * _SECOND)
        length = draw.choice((4, 8, 13, 18, 25, 40, 90)) * _SECOND + draw.randrange(1000)
        group = draw.random()
        if group < 0.6:
            return self._fault_of_a_process(draw.choice(pods), at, length)
        if group < 0.8:
            return Fault(kind=draw.choice(_OF_ACCOUNTS), at=at, length=length, target=_ACCOUNT)
        if group < 0.93 or self._servers == 1:
            kind = draw.choice(_OF_ALL)
            amount = 300 if kind is FaultKind.MUTATE else draw.choice((1, 3, 6, 12))
            return Fault(kind=kind, at=at, length=length, amount=amount)
        target = str(draw.randrange(self._servers))
        return Fault(kind=draw.choice(_OF_SERVERS), at=at, length=length, target=target, amount=draw.choice((1, 3, 6)))

    def _fault_of_a_process(self, pod: str, at: int, length: int) -> Fault:
        draw = self._random
        kind = draw.choice(_OF_PROCESSES)
        amount = 0
        if kind is FaultKind.KILL:
            length = draw.choice((0, 0, 3, 25)) * _SECOND
        elif kind in (FaultKind.REPLACE, FaultKind.DUPLICATE):
            length = draw.choice((2, 4, 20)) * _SECOND
            amount = draw.choice((5, 12, 60))
        elif kind is FaultKind.CLOCK_STEP:
            amount = draw.choice((-3600, -40, -5, 5, 40, 3600))
        elif kind is FaultKind.THROTTLE:
            amount = draw.choice((2, 4, 8))
        return Fault(kind=kind, at=at, length=length, target=pod, amount=amount)

    def _further_faults(self, pods: list[str]) -> Iterator[Fault]:
        """Yield rarer faults, drawn apart, so that the others are as they were."""
        draw = Random(f"further {self._seed}")
        at = draw.randrange(5 * _SECOND, self._length - 30 * _SECOND)
        if draw.random() < 0.08:
            kind = draw.choice((FaultKind.MUTATE_HOLDER, FaultKind.MUTATE_HOLDER, FaultKind.MUTATE_RENEWAL))
            length = draw.choice((10, 40, 200)) * _SECOND
            yield Fault(kind=kind, at=draw.choice((0, at)), length=length, amount=draw.choice((0, 1)))
        if draw.random() < 0.06:
            every, length = draw.choice((20, 30)) * _SECOND, draw.choice((5, 6, 9)) * _SECOND
            kind, target = draw.choice((FaultKind.PAUSE, FaultKind.CUT)), draw.choice(pods)
            for moment in range(at, self._length - 12 * _SECOND, every):
                yield Fault(kind=kind, at=moment, length=length + draw.randrange(300), target=target)

    # ---- outsiders ----

    def _outsiders(self, electors: tuple[ElectorPlan, ...]) -> tuple[OutsiderPlan, ...]:
        outsiders = []
        if self._random.random() < 0.45:
            outsiders.append(self._tool(electors))
        if self._random.random() < 0.35:
            outsiders.append(self._attacker(electors))
        return tuple(outsiders)

    def _identity(self, electors: tuple[ElectorPlan, ...]) -> str:
        if self._random.random() < 0.3:
            return "checkout-6f5c9d8b7d-old11"
        return self._random.choice(electors).identity

    def _tool(self, electors: tuple[ElectorPlan, ...]) -> OutsiderPlan:
        draw = self._random
        deed, role, name, user = draw.choice(_TOOLS)
        pod = ""
        if role is Role.POD:
            pod = draw.choice(electors).pod
            user = f"system:serviceaccount:{_ACCOUNT}"
        elif role is Role.TOOL and draw.random() < 0.8:
            pod = f"{name}-0"
        is_master = role is Role.PERSON and draw.random() < 0.6
        if deed in (Deed.APPLY, Deed.APPLY_LABELS, Deed.CLEAN, Deed.GET):
            every, times = draw.choice((3, 10, 30)) * _SECOND, draw.choice((1, 3, 12))
        else:
            every, times = draw.choice((3, 10)) * _SECOND, draw.choice((1, 1, 1, 2))
        amount = draw.choice((5, 30, 120)) if deed is Deed.EDIT_DURATION else 0
        at = draw.randrange(2 * _SECOND, self._length - 12 * _SECOND)
        identity = self._identity(electors)
        step = Step(deed=deed, at=at, every=every, times=times, identity=identity, amount=amount)
        return OutsiderPlan(
            name=f"{name} ({deed.name})",
            role=role,
            user=user,
            pod=pod,
            manager=name,
            agent=f"{name.partition('-')[0]}/v2.3 (linux/amd64)",
            server=draw.randrange(self._servers),
            is_master=is_master,
            steps=(step,),
        )

    def _attacker(self, electors: tuple[ElectorPlan, ...]) -> OutsiderPlan:
        draw = self._random
        deeds = (Deed.PREFER,) if self._is_coordinated and draw.random() < 0.2 else draw.choice(_ATTACKS)
        at = draw.randrange(12 * _SECOND, self._length - 12 * _SECOND)
        steps = []
        for deed in deeds:
            every, times = draw.choice((1, 2, 2, 5)) * _SECOND, draw.choice((1, 3, 6, 20))
            amount = draw.choice((2, 20, 3600)) if deed is not Deed.FORGE_STAMPS else draw.choice((-30, 0, 30))
            if deed is Deed.EDIT_DURATION:
                amount = draw.choice((1, 3600))
            steps.append(
                Step(deed=deed, at=at, every=every, times=times, identity=self._identity(electors), amount=amount)
            )
            at += every * times + 500
        has_pod = draw.random() < 0.7
        is_disguised = draw.random() < 0.5
        leader = draw.choice(electors)
        user = "system:serviceaccount:shop:mallory" if draw.random() < 0.8 else "mallory"
        if draw.random() < 0.15:
            user = f"system:serviceaccount:{_ACCOUNT}"
        return OutsiderPlan(
            name="mallory",
            role=Role.ATTACKER,
            user=user,
            pod="mallory-r7wg" if has_pod else "",
            manager=draw.choice((leader.manager, "kube-apiserver", "kubectl-edit")) if is_disguised else "mallory",
            agent="checkout/v1.4.2 (linux/amd64) kubernetes/$Format" if is_disguised else "python-requests/2.32",
            server=draw.randrange(self._servers),
            steps=tuple(steps),
        )
