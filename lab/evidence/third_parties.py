"""Honest writes of people, deployment tools, and kubectl's migration to server-side apply."""

from random import Random
from typing import Any

from lab.evidence.electors import copy_lease, write_lease
from lab.evidence.world import World
from tests.evidence.reviews import PERSON


def label(world: World, random: Random) -> None:
    """Set a label by one of many managers."""
    manager = random.choice(("kubectl-label", "kubectl-edit", "helm", f"tool-{random.randrange(14)}"))
    _label(world, random, "label", manager, f"l{random.randrange(16)}")


def label_by_the_electors_manager(world: World, random: Random) -> None:
    """Set a label under the name under which the holder renews: it moves the stamp of the last renewal."""
    _label(world, random, "label by the electors' manager", world.electors[0].manager, "self")


def client_side_apply(world: World, random: Random) -> None:
    """Set a label as `kubectl apply` does."""
    _label(world, random, "client-side apply", "kubectl-client-side-apply", "app")


def _label(world: World, random: Random, kind: str, manager: str, key: str) -> None:
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    update["metadata"].setdefault("labels", {})[key] = str(world.draw_number())
    _send(world, random, kind, manager, update)


def remove_a_label(world: World, random: Random) -> None:
    """Remove a label as `kubectl label name-` does."""
    labels = world.lease.object["metadata"].get("labels") if world.lease else None
    if world.lease is None or not labels:
        return
    update = copy_lease(world.lease)
    del update["metadata"]["labels"][random.choice(sorted(labels))]
    _send(world, random, "label removed", "kubectl-label", update)


def annotate(world: World, random: Random) -> None:
    """Set an annotation."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    key = random.choice(("a/b", "note", "kubectl.kubernetes.io/last-applied-configuration"))
    update["metadata"].setdefault("annotations", {})[key] = str(world.draw_number())
    _send(world, random, "annotation", "kubectl-annotate", update)


def toggle_a_finalizer(world: World, random: Random) -> None:
    """Add or remove a finalizer."""
    if world.lease is None:
        return
    update = copy_lease(world.lease)
    if not update["metadata"].pop("finalizers", None):
        update["metadata"]["finalizers"] = ["example.com/keep"]
    _send(world, random, "finalizer", "controller", update)


def raise_the_duration(world: World, random: Random) -> None:
    """Raise the duration as `kubectl edit` does."""
    if world.lease is None or not 0 < world.lease.duration < 3000:
        return
    update = copy_lease(world.lease)
    update["spec"]["leaseDurationSeconds"] += 5
    _send(world, random, "duration raised", "kubectl-edit", update)


def write_nothing(world: World, random: Random) -> None:
    """Send a PUT of the stored lease, as a storage migration does."""
    if world.lease is not None:
        _send(world, random, "no change", "migrator", copy_lease(world.lease))


def _send(world: World, random: Random, kind: str, manager: str, update: dict[str, Any]) -> None:
    new = write_lease(world, random, update, manager, random.choice(("list", "list", "bare")))
    world.send(new, honest=True, kind=kind, manager=manager, user=PERSON)


def apply_labels(world: World, random: Random) -> None:
    """Apply a label server-side, as a deployment tool does."""
    labels = {random.choice(("app", "env", "l1")): random.choice("abc")}
    manager = random.choice(("argocd-controller", "kubectl", "flux"))
    _apply(world, random, "labels applied", manager, {"metadata": {"labels": labels}})


def apply_the_same_renew_time(world: World, random: Random) -> None:
    """Apply the manifest that a tool read, renewTime included: it joins the owners."""
    if world.lease is not None and world.lease.renew_time is not None:
        _apply(world, random, "same renewTime applied", "gitops", {"spec": {"renewTime": world.lease.renew_time}})


def apply_the_name_only(world: World, random: Random) -> None:
    """Apply the documented cure for a lease without stamps."""
    _apply(world, random, "name applied", "kubectl", {})


def _apply(world: World, random: Random, kind: str, manager: str, content: dict[str, Any]) -> None:
    if world.lease is None:
        return
    new = write_lease(world, random, {}, manager, "apply", owned=content or {"metadata": {}})
    world.send(new, honest=True, kind=kind, manager=manager, user=PERSON)


def upgrade_to_server_side_apply(world: World, random: Random) -> None:
    """Move the fields that kubectl owns from client-side to server-side apply."""
    if world.lease is None or not world.lease.entries:
        return
    new = world.manager.upgrade(world.lease, "kubectl-client-side-apply", world.draw_server_time(random))
    world.send(new, honest=True, kind="upgraded", manager="kubectl-client-side-apply", user=PERSON)
