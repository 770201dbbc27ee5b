"""Leases with an owner where only those who may delete an object change its owners, as on OpenShift."""

import time
from collections.abc import Iterator
from typing import Any, Final

from lab.e2e.api_client import ApiClient, Reply
from lab.e2e.control_plane import ControlPlane
from lab.e2e.manifests import format_micro_time
from lab.e2e.one_lease import OWNER, OneLease
from lab.e2e.stamp_cases import FIRST_MINOR
from lab.e2e.stamping import OTHERS, STAMP, add_suffix, apply, install, label, wait_until_stamped
from lab.e2e.world import Row, World, make_absent_row

PLUGIN: Final = "OwnerReferencesPermissionEnforcement"
PLACE: Final = "owners"
ELECTORS: Final = "electors"
RIGHT: Final = "delete-its-lease"
TAKEN: Final = ("with-the-right", "without-the-right")
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_GROUP: Final = "rbac.authorization.k8s.io"


def run(world: World) -> Iterator[Row]:
    """Start an API server with the plugin; let an elector take a lease that has an owner, with and without `delete`."""
    if world.plane.binaries.minor < FIRST_MINOR:
        yield make_absent_row("the policies of the stamps", world.plane.binaries.version)
        return
    directory = world.directory / "owners"
    directory.mkdir()
    flags = [f"--enable-admission-plugins=NodeRestriction,{PLUGIN}"]
    with ControlPlane(world.plane.binaries, directory, flags=flags) as plane:
        owners = World(plane)
        owners.create_namespace(PLACE)
        _grant(owners)
        first, second = (plane.create_client(name, ELECTORS) for name in ("first", "second"))
        yield _show_plugin(first)
        install(owners, (*STAMP, *OTHERS))
        label(owners, PLACE)
        wait_until_stamped(first, PLACE)
        yield _apply_as_another_manager(owners)
        yield from _take_over(first, second)
        yield _delete_held(first)


def _grant(world: World) -> None:
    """Let the electors write leases, as most may: without `delete`, which they have for one lease by its name."""
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    verbs = ["get", "list", "watch", "create", "update", "patch"]
    rules: dict[str, list[dict[str, Any]]] = {
        ELECTORS: [lease | {"verbs": verbs}],
        RIGHT: [lease | {"verbs": ["delete"], "resourceNames": [TAKEN[0]]}],
    }
    for name, those in rules.items():
        place = f"{_RBAC}/namespaces/{PLACE}"
        world.admin.send("POST", f"{place}/roles", {"metadata": {"name": name}, "rules": those}).expect()
        binding = {
            "metadata": {"name": name},
            "subjects": [{"apiGroup": _GROUP, "kind": "Group", "name": ELECTORS}],
            "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": name},
        }
        world.admin.send("POST", f"{place}/rolebindings", binding).expect()


def _show_plugin(elector: ApiClient) -> Row:
    """Try the dry run by which docs/stamp.md finds out whether the plugin is on."""
    lease = OneLease(elector, PLACE, "plain")
    lease.create().expect()
    reply = lease.put({"ownerReferences": [OWNER]}, dry=True)
    claim = "an elector that may not delete a lease cannot give it an owner: the dry run shows that the plugin is on"
    return Row(claim, _describe(reply), passed=_is_refused_for_owner(reply))


def _apply_as_another_manager(world: World) -> Row:
    """Apply what is applied already, as `deploy/protect` does where Flux installed the policies."""
    replies = [apply(world, add_suffix(document), "another", forced=False) for document in (*STAMP, *OTHERS)]
    claim = "another field manager applies the same policies without a conflict"
    seen = ", ".join(f"HTTP {reply.status}" for reply in replies)
    return Row(claim, seen, passed=all(reply.status == 200 for reply in replies))


def _take_over(first: ApiClient, second: ApiClient) -> Iterator[Row]:
    """Let each lease expire with an owner that its first holder set when it created it, and be taken and released."""
    for name in TAKEN:
        created = OneLease(first, PLACE, name).create(
            {"ownerReferences": [OWNER]}, leaseDurationSeconds=1, renewTime=format_micro_time()
        )
        created.expect()
    time.sleep(4)
    granted, lacking = (OneLease(second, PLACE, name) for name in TAKEN)
    taken = granted.put(holderIdentity="b", leaseDurationSeconds=60, renewTime=format_micro_time())
    passed = taken.status == 200 and "ownerReferences" not in taken.body["metadata"]
    yield Row("an elector that may delete it takes over a lease that has an owner", _describe(taken), passed=passed)
    refused = lacking.put(holderIdentity="b", renewTime=format_micro_time())
    claim = "an elector that may not is refused by the plugin: the takeover removes the owner"
    yield Row(claim, _describe(refused), passed=_is_refused_for_owner(refused))
    released = OneLease(first, PLACE, lacking.name).put(holderIdentity="", renewTime=format_micro_time())
    claim = "nor can the first holder release such a lease"
    yield Row(claim, _describe(released), passed=_is_refused_for_owner(released))


def _delete_held(first: ApiClient) -> Row:
    """Delete a held lease as an elector that has the right, and is not its writer."""
    reply = OneLease(first, PLACE, TAKEN[0]).delete()
    passed = reply.status == 403 and "lease is held by" in reply.message
    return Row("with that right, the guard still refuses the deletion of a held lease", _describe(reply), passed=passed)


def _is_refused_for_owner(reply: Reply) -> bool:
    return reply.status == 403 and "cannot set an ownerRef" in reply.message


def _describe(reply: Reply) -> str:
    return f"HTTP {reply.status} {reply.message}".strip()
