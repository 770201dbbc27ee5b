"""Describe a history before it is played: who takes part, what fails, and what outsiders do. A plan is a value.

A plan is JSON, so one that shows a false claim can be stored; and a part that is dropped leaves what the others draw
as it was, so it can be shrunk. Times are milliseconds since the beginning unless their name says otherwise.
"""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

NAMESPACE: Final = "shop"
LEASE: Final = "shop/checkout"
SECOND_LEASE: Final = "shop/checkout-jobs"
"""The lease that some processes hold besides LEASE."""
START: Final = 1_750_000_000_000_000
"""When every history begins, in microseconds since 1970: 2025-06-15T15:06:40Z."""
SUFFIX: Final = "9f3c1a7be2d45608"
"""The suffix of the stamps, in stamped histories."""


class Habit(StrEnum):
    """How a client elects."""

    CLIENT_GO = "client-go"
    CONTROLLER_RUNTIME = "controller-runtime"
    FABRIC8 = "fabric8"
    PYTHON = "kubernetes (Python)"
    ASYNCIO = "kubernetes_asyncio"
    COORDINATED = "client-go, coordinated"
    UNELECTED = "works without an election"


class ElectorPlan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod, which runs one program that elects.

    `skew` is its clock minus the true time in milliseconds, `server` the API server that it is connected to.
    `is_local_time`: it writes its own time zone's time, in whole seconds. `lingers`: it works on for so long after it
    has released the lease. `is_restarted`: a new process of the pod begins after the one that lost the lease.
    `is_rerun`: the process elects again instead. `emulated` is the minor version that a coordinated candidate
    emulates. `has_no_deadline`: it never gives up. `waits`: a follower tries again only after so long. `beside`: the
    same process elects for this lease, too.
    """

    pod: str
    habit: Habit = Habit.CLIENT_GO
    identity: str
    lease: str = LEASE
    account: str = "shop:checkout"
    manager: str = "checkout"
    begins: int = 0
    skew: int = 0
    duration: int = 15
    server: int = 0
    emulated: int = 33
    lingers: int = 0
    waits: int = 0
    beside: str = ""
    releases: bool = False
    is_restarted: bool = False
    is_rerun: bool = False
    is_idle: bool = False
    is_local_time: bool = False
    has_no_deadline: bool = False
    has_new_identity: bool = True
    """Whether a restarted process calls itself anew."""


class FaultKind(StrEnum):
    """What fails. Most last from `at` for `length`; the target is a pod, an account or an API server's number."""

    KILL = "the process is killed"
    STOP = "the process is stopped in order"
    PAUSE = "the process is paused"
    BLOCK = "the loop of the process is blocked by its work"
    THROTTLE = "the process gets little CPU"
    CUT = "the process is cut off the network"
    REPLACE = "the pod is killed and replaced under its name"
    DUPLICATE = "the pod is replaced under its name, and its process lives on"
    CLOCK_STEP = "the clock of the process is set"
    RIGHTS = "the account loses its rights"
    GET_RIGHT = "the account loses the right to get"
    TOKEN = "the token of the process is not accepted"
    WEBHOOK_REFUSES = "a webhook refuses the writes of the account"
    WEBHOOK_FAILS = "a webhook that must answer does not"
    WEBHOOK_SLOW = "a webhook is slow"
    POLICY_REFUSES = "a policy refuses the writes of the account"
    FAIRNESS = "priority and fairness refuses the requests of the account"
    SERVER_ERROR = "the API server answers with 500"
    SERVERS_DOWN = "all API servers are down"
    SERVER_DOWN = "one API server is down"
    SERVER_HANGS = "one API server hangs"
    SERVER_SLOW = "one API server is slow"
    ETCD_SLOW = "etcd is slow"
    INVALID = "the writes of the process are not valid"
    MUTATE = "a webhook raises leaseDurationSeconds"
    MUTATE_LABELS = "a webhook labels each write with its time"
    MUTATE_TIMES = "a webhook cuts the fractions off renewTime and acquireTime"
    MUTATE_HOLDER = "a webhook writes another holderIdentity: one for all, or one that has more after each's own"
    MUTATE_RENEWAL = "a webhook sets renewTime back by minutes"


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fault.

    `amount` is seconds of a clock's step, the factor of a slow process, the duration of a mutator, or 1 if a mutator
    writes one holder for all.
    """

    kind: FaultKind
    at: int
    length: int = 0
    target: str = ""
    amount: int = 0


class Deed(StrEnum):
    """What an outsider does to the lease."""

    GET = "reads it"
    STEAL = "writes its own identity"
    WRITE_IN = "writes another's identity"
    KEEP_ALIVE = "renews it as it stands"
    ECHO = "patches in what it has"
    RENAME = "renews it as it stands, and counts leaseTransitions up"
    RELEASE = "empties holderIdentity"
    EDIT_DURATION = "changes leaseDurationSeconds"
    DELETE = "deletes it"
    CLEAN = "deletes it if it has expired"
    LABEL = "labels it"
    WIPE = "replaces it by one without spec"
    APPLY = "applies a committed holder"
    PATCH = "patches in a committed holder"
    APPLY_LABELS = "applies labels alone"
    RESTORE = "restores an old copy where there is none"
    RESTORE_OVER = "replaces it by an old copy"
    PREFER = "sets preferredHolder"
    UNPREFER = "clears preferredHolder"
    FUTURE = "sets renewTime far ahead"
    PAST = "sets renewTime far back"
    FORGE_STAMPS = "sends managedFields that date the renewal"
    PLANT_STAMPS = "writes annotations that look like stamps"
    INVALID = "sends what is refused as invalid, in the name of the holder"
    FORBIDDEN = "tries to delete without the right"
    WRONG_TOKEN = "writes with a wrong token"
    DRY_RUN = "steals it in a dry run"


class Role(StrEnum):
    """What kind of party writes."""

    ELECTOR = "elector"
    API_SERVER = "API server"
    TOOL = "tool"
    PERSON = "person"
    ATTACKER = "attacker"
    POD = "command in a pod"


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something done `times` times every `every` milliseconds; `identity` is the text written, `amount` seconds."""

    deed: Deed
    at: int
    every: int = 2000
    times: int = 1
    identity: str = ""
    amount: int = 0


class OutsiderPlan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody who is no elector of the lease. `is_master`: of the group system:masters."""

    name: str
    role: Role
    user: str
    pod: str = ""
    manager: str = ""
    agent: str = ""
    server: int = 0
    is_master: bool = False
    steps: tuple[Step, ...] = ()


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A history to be played: `offsets` are the API servers' clocks minus the true time, in milliseconds."""

    seed: int
    length: int
    offsets: tuple[int, ...] = (0,)
    electors: tuple[ElectorPlan, ...] = ()
    faults: tuple[Fault, ...] = ()
    outsiders: tuple[OutsiderPlan, ...] = ()
    is_stamped: bool = False
    is_coordinated: bool = False
    hole: tuple[int, int] = (0, 0)
    """What inputs with a hole lack."""
    late: int = 0
    """When inputs that begin late begin."""

    @property
    def parts(self) -> int:
        """How many parts there are to drop."""
        return len(self.electors) + len(self.faults) + sum(1 + len(one.steps) for one in self.outsiders)


def to_json(plan: Plan) -> bytes:
    """A plan as JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=1)


def from_json(data: bytes) -> Plan:
    """Return the plan that is stored."""
    return msgspec.json.decode(data, type=Plan)
