"""An attacker from another namespace with `update` and `delete` on the lease, who sends any managedFields."""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from lab.evidence.electors import copy_lease, create, make_apply_body
from lab.evidence.history import Forgery
from lab.evidence.inventions import Moment
from lab.evidence.mutations import MUTATIONS
from lab.evidence.world import World, format_micro_time
from tests.evidence.records import SECOND
from tests.evidence.stored_lease import Entry, Lease

IDENTITY: Final = "mallory-0_1"


def forge_entries(world: World, entries: tuple[Entry, ...], forgeries: Sequence[Forgery]) -> tuple[Entry, ...]:
    """Return the list after each mutation."""
    moment = Moment(world.at // SECOND, world.duration, world.electors[0].manager)
    for forgery in forgeries:
        entries = MUTATIONS[forgery.mutation](entries, Random(forgery.seed), moment)
    return entries


def steal(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Take the lease in one write."""
    if world.lease is not None:
        _put(world, random, forgeries, "steal", _make_stolen(world, world.lease))


def _make_stolen(world: World, lease: Lease) -> dict[str, Any]:
    update = copy_lease(lease)
    clock = format_micro_time(world.at)
    update["spec"] |= {
        "holderIdentity": IDENTITY,
        "leaseDurationSeconds": 15,
        "acquireTime": clock,
        "renewTime": clock,
        "leaseTransitions": int(lease.spec.get("leaseTransitions") or 0) + 1,
    }
    return update


def steal_by_apply(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Take the lease by a forced apply."""
    if world.lease is not None:
        _apply(world, random, "steal", _make_stolen(world, world.lease)["spec"])


def renew(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Renew for the holder, with some renewTime and now and then another duration."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    ahead = random.choice((0, 0, 0, -3600, -48 * 3600, 30, 20 * 3600))
    update["spec"]["renewTime"] = format_micro_time(world.at + ahead * SECOND)
    if random.random() < 0.2:
        update["spec"]["leaseDurationSeconds"] = random.choice((1, 2, 600))
    _put(world, random, forgeries, "renewal", update)


def renew_by_apply(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Renew for the holder by a forced apply of renewTime."""
    _apply(world, random, "renewal", {"renewTime": format_micro_time(world.at)})


def label(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Set a label, to have a write."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    key = random.choice(("touched", f"l{random.randrange(14)}"))
    update["metadata"].setdefault("labels", {})[key] = str(world.draw_number())
    _put(world, random, forgeries, "label", update)


def remove_labels(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Remove every label: a write that is not stamped."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    update["metadata"].pop("labels", None)
    _put(world, random, forgeries, "labels removed", update)


def change_the_list_only(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Send nothing but another list."""
    if world.lease is not None:
        _put(world, random, forgeries, "list only", copy_lease(world.lease))


def release(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Empty the holder, or remove it."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    update["spec"]["holderIdentity"] = random.choice((None, ""))
    _put(world, random, forgeries, "release", update)


def change_the_duration(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Change the duration and nothing else."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    update["spec"]["leaseDurationSeconds"] = random.choice((1, 600))
    _put(world, random, forgeries, "duration", update)


def remove_renew_time(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Remove renewTime, or set it to the zero time."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    update["spec"]["renewTime"] = random.choice((None, "0001-01-01T00:00:00.000000Z"))
    _put(world, random, forgeries, "renewTime removed", update)


def change_metadata(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Set an owner, a finalizer, an annotation or generateName, to own something with a stamp."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    number = world.draw_number()
    metadata = update["metadata"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"c{number}", "uid": random.choice(("u1", f"u{number}"))}
    match random.randrange(4):
        case 0:
            metadata.setdefault("ownerReferences", []).append(owner)
        case 1:
            metadata.setdefault("finalizers", []).append(f"example.com/f{number}")
        case 2:
            metadata.setdefault("annotations", {})["note"] = str(number)
        case _:
            metadata["generateName"] = f"g{number}-"
    _put(world, random, forgeries, "metadata", update)


def delete(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Delete the lease."""
    if world.lease is not None:
        world.send(None, honest=False, kind="delete", manager="", user=world.attacker)


def be_first(world: World, random: Random, forgeries: Sequence[Forgery]) -> None:
    """Create the lease before its first elector does, mostly without a spec."""
    spec = {"leaseDurationSeconds": 15} if random.random() < 0.3 else {}
    labels = {"labels": {"a": "b"}} if random.random() < 0.5 else {}
    entries = forge_entries(world, (), forgeries) if forgeries else None
    lease = Lease(make_apply_body({"metadata": labels, "spec": spec}), entries)
    names = tuple(forgery.mutation for forgery in forgeries)
    create(world, random, honest=False, lease=lease, manager="mallory", user=world.attacker, mutations=names)


def _draw_manager(world: World, random: Random) -> str:
    number = random.randrange(14)
    others = ("ancient-changes", "", "kubectl-label", "tool-1", "zzz", f"m{number}", f"a{number}")
    return random.choice(("mallory", "mallory", "mallory", world.electors[0].manager, *others))


def _put(world: World, random: Random, forgeries: Sequence[Forgery], kind: str, update: dict[str, Any]) -> None:
    lease, manager = world.lease, _draw_manager(world, random)
    assert lease is not None
    entries = forge_entries(world, lease.entries or (), forgeries)
    new = world.manager.update(lease, Lease(update, entries), manager, world.draw_server_time(random))
    names = tuple(forgery.mutation for forgery in forgeries)
    world.send(new, honest=False, kind=kind, manager=manager, user=world.attacker, mutations=names)


def _apply(world: World, random: Random, kind: str, spec: dict[str, Any]) -> None:
    if world.lease is None:
        return
    manager = random.choice(("mallory", world.electors[0].manager))
    new = world.manager.apply(world.lease, make_apply_body({"spec": spec}), manager, world.draw_server_time(random))
    world.send(new, honest=False, kind=kind, manager=manager, user=world.attacker)
