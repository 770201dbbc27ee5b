"""Electors as they are published: what each writes, when it thinks it may, and how long it believes that it leads.

Sources: client-go `tools/leaderelection`, fabric8 `LeaderElector`, kubernetes_asyncio `leaderelection.py`, kubert
`lease.rs`, kube-leader-election, kubelet `nodelease.go`, kube-apiserver's `leaderelection_controller.go`.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.model.api_server import Lease, Spec, User, Write, service_account
from tests.model.managed_fields import APPLY, SECOND

DURATION: Final = 15
ACQUIRED_FIELDS: Final = frozenset({"holder", "duration", "acquired", "renewed", "transitions"})


class Kind(Struct, frozen=True):
    """How one client elects.

    `expires_by`: what tells it that another's lease has run out. "observation": the record has not changed for its
    duration on the own monotonic clock, or for the "own duration". "own clock": renewTime + duration lies behind the
    own wall clock. "server": the same on the API server's clock. "never": it takes no lease from anybody.
    `release`: "empty" holder and duration 1; holder "kept" and duration 1; all "removed"; or "none".
    """

    name: str
    expires_by: str
    release: str
    counts: bool = True
    guarded: bool = True
    acquires_by_apply: bool = False
    keeps_coordination: bool = False
    coordinated: bool = False
    elects: str = ""


CLIENT_GO: Final = Kind("client-go", "observation", "empty")
FABRIC8: Final = Kind("fabric8", "own clock", "kept", keeps_coordination=True)
ASYNCIO: Final = Kind("kubernetes_asyncio", "own duration", "none", counts=False, keeps_coordination=True)
KUBERT: Final = Kind("kubert", "own clock", "removed", acquires_by_apply=True, keeps_coordination=True)
UNGUARDED: Final = Kind("kube-leader-election", "own clock", "empty", guarded=False, keeps_coordination=True)
KUBELET: Final = Kind("kubelet", "never", "none", counts=False, keeps_coordination=True)
COORDINATED: Final = Kind("coordinated client", "never", "empty", keeps_coordination=True, coordinated=True)


def controller(electee: str) -> Kind:
    """kube-apiserver's election controller, which writes its candidate's name."""
    return Kind("election controller", "server", "none", elects=electee)


class Elector(Struct, frozen=True):
    """One instance. `skew` is its wall clock minus the true time; all instants are true time, in microseconds.

    `seen` is the spec it last read and `seen_since` when that first looked like this; `led_at` is when it sent its last
    successful write as the holder.
    """

    kind: Kind
    identity: str
    user: User
    manager: str
    skew: int = 0
    duration: int = DURATION
    seen: Spec | None = None
    seen_since: int = 0
    led_at: int | None = None
    crashed: bool = False

    def believes(self, now: int) -> bool:
        """Return whether it acts as the leader: until two thirds of its duration, whatever the lease says by then."""
        return not self.crashed and self.led_at is not None and now < self.led_at + self.duration * SECOND * 2 // 3


def elector(kind: Kind, pod: str, *, skew: int = 0, duration: int = DURATION) -> Elector:
    """An elector in a pod of the lease's namespace, with the identity that most clients make."""
    if kind.elects:
        return Elector(kind, kind.elects, User("system:apiserver", ("system:masters",)), "kube-apiserver", skew, 5)
    if kind is KUBELET:
        node = User(f"system:node:{pod}", ("system:nodes", "system:authenticated"))
        return Elector(kind, pod, node, "kubelet", skew, duration)
    return Elector(kind, f"{pod}_1f0e", service_account("shop", "checkout", pod), "checkout", skew, duration)


def observed(elector: Elector, lease: Lease | None, now: int) -> Elector:
    """The elector after a read."""
    spec = None if lease is None else lease.spec
    if spec == elector.seen:
        return elector
    return replace(elector, seen=spec, seen_since=now)


def intention(elector: Elector, lease: Lease | None, now: int, server_clock: int) -> Write | None:
    """Return what it writes after it has read `lease`; None where it waits."""
    if lease is None:
        return _create(elector, now)
    spec = lease.spec
    if elector.kind.elects:
        return _elect(elector, lease, server_clock)
    if spec.holder == elector.identity:
        return _renewal(elector, lease, now)
    if elector.kind.expires_by == "never":
        return None
    if spec.holder and not _run_out(elector, spec, now, server_clock):
        return None
    return acquisition(elector, lease, now)


def release(elector: Elector, lease: Lease | None, now: int) -> Write | None:
    """Return what it writes when it stops in order; None where it does not hold the lease, or just leaves."""
    if lease is None or lease.spec.holder != elector.identity:
        return None
    local = now + elector.skew
    if elector.kind.release == "empty":
        spec = replace(lease.spec, holder="", duration=1, acquired=local, renewed=local)
        return _sent(elector, lease, replace(spec, strategy=None, preferred=None))
    if elector.kind.release == "kept":
        return _sent(elector, lease, replace(lease.spec, duration=1, acquired=local, renewed=local))
    if elector.kind.release == "removed":
        return _sent(elector, lease, replace(lease.spec, holder=None, duration=None, acquired=None, renewed=None))
    return None


def _create(elector: Elector, now: int) -> Write | None:
    local = now + elector.skew
    if elector.kind.elects:
        strategy = "OldestEmulationVersion"
        return Write(
            elector.manager, Spec(holder=elector.identity, duration=elector.duration, renewed=local, strategy=strategy)
        )
    if elector.kind.coordinated:
        return None
    if elector.kind is KUBELET:
        return Write(elector.manager, Spec(holder=elector.identity, duration=elector.duration, renewed=local))
    count = 0 if elector.kind.counts else None
    return Write(
        elector.manager,
        Spec(holder=elector.identity, duration=elector.duration, acquired=local, renewed=local, transitions=count),
    )


def _renewal(elector: Elector, lease: Lease, now: int) -> Write | None:
    spec = lease.spec
    if elector.kind.coordinated and spec.preferred:
        return None
    renewed = replace(spec, renewed=now + elector.skew, duration=elector.duration)
    if elector.kind.coordinated and renewed.transitions is None:
        renewed = replace(renewed, transitions=0)
    if not elector.kind.keeps_coordination:
        renewed = replace(renewed, strategy=None, preferred=None)
    return _sent(elector, lease, renewed)


def acquisition(elector: Elector, lease: Lease, now: int) -> Write:
    """Return what it writes to take a lease over."""
    local = now + elector.skew
    spec = lease.spec
    count = (spec.transitions or 0) + 1 if elector.kind.counts else spec.transitions
    taken = replace(
        spec, holder=elector.identity, duration=elector.duration, acquired=local, renewed=local, transitions=count
    )
    if elector.kind.acquires_by_apply:
        return Write(elector.manager, taken, lease.labels, APPLY, ACQUIRED_FIELDS, version=lease.version)
    if not elector.kind.keeps_coordination:
        taken = replace(taken, strategy=None, preferred=None)
    return _sent(elector, lease, taken)


def _elect(elector: Elector, lease: Lease, server_clock: int) -> Write | None:
    spec = lease.spec
    live = (
        spec.holder
        and spec.renewed is not None
        and spec.duration is not None
        and spec.renewed + spec.duration * SECOND > server_clock
    )
    if not live:
        elected = replace(
            spec,
            holder=elector.identity,
            duration=elector.duration,
            renewed=server_clock,
            acquired=None,
            preferred=None,
        )
        return _sent(elector, lease, replace(elected, strategy="OldestEmulationVersion"))
    if elector.identity in (spec.holder, spec.preferred):
        return None
    return _sent(elector, lease, replace(spec, preferred=elector.identity, strategy="OldestEmulationVersion"))


def _run_out(elector: Elector, spec: Spec, now: int, server_clock: int) -> bool:
    if spec.renewed is None or spec.duration is None:
        return True
    if elector.kind.expires_by == "observation":
        return now >= elector.seen_since + spec.duration * SECOND
    if elector.kind.expires_by == "own duration":
        return now >= elector.seen_since + elector.duration * SECOND
    clock = server_clock if elector.kind.expires_by == "server" else now + elector.skew
    return clock > spec.renewed + spec.duration * SECOND


def _sent(elector: Elector, lease: Lease, spec: Spec) -> Write:
    return Write(elector.manager, spec, lease.labels, version=lease.version if elector.kind.guarded else None)
