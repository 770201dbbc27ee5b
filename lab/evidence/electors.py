"""Honest electors: they create the lease, renew it, release it, and take it over after its end."""

import copy
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from lab.evidence.world import World, format_micro_time
from tests.evidence.laws import BOUND
from tests.evidence.records import SECOND, Elector
from tests.evidence.reviews import elector
from tests.evidence.stored_lease import Lease

TRIES: Final = 5
"""How often an elector tries to take over; the last try comes after one duration and the bound."""


def copy_lease(lease: Lease) -> dict[str, Any]:
    """Return a copy of the object to change, with a spec."""
    copy_: dict[str, Any] = copy.deepcopy(lease.object)
    copy_.setdefault("spec", {})
    return copy_


def write_lease(
    world: World, random: Random, update: dict[str, Any], manager: str, style: str, owned: dict[str, Any] | None = None
) -> Lease:
    """Return the lease that the field manager makes of a write in one of three styles; `owned` is sent by an apply.

    `list`: the stored managedFields are sent along, as in a patch. `bare`: a PUT leaves them out.
    """
    lease = world.lease
    assert lease is not None
    seconds = world.draw_server_time(random)
    if style == "apply":
        return world.manager.apply(lease, make_apply_body(owned or {"spec": update["spec"]}), manager, seconds)
    entries = None if style == "bare" else lease.entries or None
    return world.manager.update(lease, Lease(update, entries), manager, seconds)


def make_apply_body(content: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a server-side apply."""
    metadata = {"name": "checkout", "namespace": "shop", **content.get("metadata", {})}
    spec = {"spec": content["spec"]} if "spec" in content else {}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, **spec}


def renew(world: World, random: Random) -> None:
    """Renew as the holder; if nobody holds the lease, somebody takes it half of the time."""
    holder, lease = world.holder, world.lease
    if holder is None or lease is None:
        if random.random() < 0.5:
            succeed(world, random)
        return
    update = copy_lease(lease)
    update["spec"]["renewTime"] = format_micro_time(world.at + holder.skew)
    new = write_lease(world, random, update, holder.manager, holder.style)
    world.send(new, honest=True, kind="renewal", manager=holder.manager, user=elector(holder.identity))


def succeed(world: World, random: Random) -> None:
    """Wait as an elector that saw the last change for the whole duration, then try until it holds the lease."""
    lease = world.lease
    if lease is None:
        return
    world.at = max(world.at, world.moved + lease.duration * SECOND + random.randint(1000, SECOND))
    candidate = random.choice(world.electors)
    if not lease.holder:
        kind = "claim"
    else:
        kind = "return" if lease.holder == candidate.identity else "takeover"
    duration = lease.duration
    if not 1 < duration < 4000 or random.random() < 0.3:
        duration = random.choice((5, 10, 15, 15, 30, 40, 60, 137))
    for attempt in range(1, TRIES + 1):
        new = write_lease(
            world, random, make_claim(world, lease, candidate, duration), candidate.manager, candidate.style
        )
        final, user = attempt == TRIES, elector(candidate.identity)
        if world.send(new, honest=True, kind=kind, manager=candidate.manager, user=user, final_try=final):
            return
        world.at += (lease.duration + BOUND + 2) * SECOND if attempt == TRIES - 1 else random.randint(1, 3) * SECOND


def make_claim(world: World, lease: Lease, candidate: Elector, duration: int) -> dict[str, Any]:
    """Return the object by which an elector takes the lease."""
    update = copy_lease(lease)
    clock = format_micro_time(world.at + candidate.skew)
    transitions = min(int(lease.spec.get("leaseTransitions") or 0), 1 << 30) + 1
    update["spec"] |= {
        "holderIdentity": candidate.identity,
        "leaseDurationSeconds": duration,
        "acquireTime": clock,
        "renewTime": clock,
        "leaseTransitions": transitions,
    }
    return update


def release(world: World, random: Random) -> None:
    """Release the lease as the holder, as client-go does (empty holder, one second) or by removing the holder."""
    holder, lease = world.holder, world.lease
    if holder is None or lease is None:
        return
    update = copy_lease(lease)
    if random.random() < 0.7 or holder.style == "apply":
        clock = format_micro_time(world.at + holder.skew)
        update["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": clock, "acquireTime": clock}
    else:
        del update["spec"]["holderIdentity"]
    new = write_lease(world, random, update, holder.manager, holder.style)
    world.send(new, honest=True, kind="release", manager=holder.manager, user=elector(holder.identity))


def create(world: World, random: Random, *, honest: bool = True, lease: Lease | None = None, **more: Any) -> None:
    """Create the lease as the first elector; `lease` is created by somebody else instead."""
    holder = world.electors[0]
    clock = format_micro_time(world.at + holder.skew)
    duration = random.choice((5, 10, 15, 15, 15, 30, 40, 60, 137, 600, 3600))
    spec = {
        "holderIdentity": holder.identity,
        "leaseDurationSeconds": duration,
        "acquireTime": clock,
        "renewTime": clock,
        "leaseTransitions": 0,
    }
    new_lease = lease or Lease(make_apply_body({"spec": spec}))
    seconds = world.draw_server_time(random)
    new = world.manager.create(new_lease, more.get("manager", holder.manager), seconds)
    metadata = {
        **new.object["metadata"],
        "uid": "6a1d4c52-8f4e-4d53-9d0c-5a2f5f0c7e11",
        "creationTimestamp": format_micro_time(seconds * SECOND)[:19] + "Z",
    }
    new = replace(new, object={**new.object, "metadata": metadata})
    options = {"manager": holder.manager, "user": elector(holder.identity), **more}
    world.send(new, honest=honest, kind="create", **options)
