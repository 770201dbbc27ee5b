"""PostgreSQL primaries: the writes of CloudNativePG's operator and its instances pass, and those of a stranger fail."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from lab.e2e.api_client import MERGE
from lab.e2e.manifests import format_micro_time
from lab.e2e.primaries import LEASE, OPERATOR, SECONDS, Database, list_rounds
from lab.e2e.stamp_cases import FIRST_MINOR, SUFFIX
from lab.e2e.stamping import OTHERS, STAMP, install, label, remove, wait_until_stamped
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import Row, World, build_lease_path
from tests.waiting import wait_for

STRICT: Final = "primaries-strict"
BOUND: Final = "primaries-bound"
STAMPED: Final = "primaries-stamped"
BOTH: Final = "primaries-both"
BY_USER: Final = "primaries-by-user"
ADOPTER: Final = f"system:serviceaccount:{OPERATOR}:cnpg-manager"
POLICY: Final = f"""\
apiVersion: lease-webhook/v1
preset: strict
bindings:
- {{namespace: {BOUND}, lease: {LEASE}, writers: [{BOUND}/{LEASE}, {OPERATOR}/cnpg-manager], holder: ["${{pod}}"]}}
- {{namespace: {BOTH}, lease: {LEASE}, writers: [{BOTH}/{LEASE}, {OPERATOR}/cnpg-manager], holder: ["${{pod}}"]}}
stamps: [{{suffix: {SUFFIX}, namespaces: [{BOTH}]}}]
"""
OWNER: Final = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": LEASE, "uid": "no-such-uid"}


def run(world: World) -> Iterator[Row]:
    """Check that `strict` refuses an adoption; with a binding, or stamps that name the operator, it is stored."""
    is_stamped = world.plane.binaries.minor >= FIRST_MINOR
    policy = world.directory / "primaries.yaml"
    policy.write_text(POLICY)
    world.create_namespace(OPERATOR)
    with ExitStack() as stack:
        server = stack.enter_context(WebhookServer(world.directory, world.certs, policy=str(policy)))
        world.register("primaries", server.port, failure_policy="Fail")
        places = {STRICT: "primaries", BOUND: "primaries"}
        if is_stamped:
            places |= {STAMPED: "", BY_USER: "", BOTH: "primaries"}
        for name, route in places.items():
            world.create_namespace(name, route=route)
        if is_stamped:
            install(world, (*STAMP, *OTHERS), manager="kubectl")
            for name in (STAMPED, BY_USER, BOTH):
                label(world, name, **({"stamp_writer": "user"} if name == BY_USER else {}))
                notes = {"metadata": {"annotations": {"lease-webhook/stamp-adopters": ADOPTER}}}
                world.admin.send("PATCH", f"/api/v1/namespaces/{name}", notes, media=MERGE).expect()
                wait_until_stamped(world.create_account(name, "prober").client, name)
        world.settle()
        for name in places:
            yield from _check_life(world, stack, name)
        if is_stamped:
            remove(world, (*STAMP, *OTHERS))


def _check_life(world: World, stack: ExitStack, place: str) -> Iterator[Row]:
    database = Database(world, stack, place)
    operator = database.reconcile("cluster-1")
    wait_for("the operator's lease", lambda: "created" in set(list_rounds(operator)), 30)
    first = database.start(f"{LEASE}-1", "-release")
    database.wait_for_write(f"{LEASE}-1", "a primary")
    second = database.start(f"{LEASE}-2", "-release")
    first.process.stop()
    switched = database.wait_for_write(f"{LEASE}-2", "a switchover")
    second.process.kill()
    database.start(f"{LEASE}-2", "-release")
    came_back = database.wait_for_write(f"{LEASE}-2", "a pod of the same name")
    wait_for("the owner", lambda: database.list_owners() == ["cluster-1"], 15)
    yield Row(
        f"{place}: a switchover; a pod that died and came back under its name",
        f"{switched:.1f} s; {came_back:.1f} s (the lease lasts {SECONDS} s)",
        passed=True,
    )
    yield _check_strangers(world, place)
    operator.process.stop()
    adopter = database.reconcile("cluster-2")
    wait_for("three rounds", lambda: len(list(list_rounds(adopter))) >= 3, 30)
    outcomes = list(list_rounds(adopter))
    passed = set(outcomes) == {"failed"} if place == STRICT else outcomes[-1] == "found" and "adopted" in outcomes
    yield Row(f"{place}: the lease of a Cluster that was made again", ", ".join(outcomes[:3]), passed)
    adopter.process.stop()


def _check_strangers(world: World, place: str) -> Row:
    """Write as another account of the namespace, which may update leases."""
    stranger = world.create_account(place, "stranger").client
    path = build_lease_path(place, LEASE)
    writes = {
        "takes it": {"spec": {"holderIdentity": "stranger", "renewTime": format_micro_time()}},
        "owner": {"metadata": {"ownerReferences": [OWNER]}},
    }
    replies = {name: stranger.send("PATCH", path, body, media=MERGE).status for name, body in writes.items()}
    is_refused = all(status in {403, 422} for status in replies.values())
    return Row(f"{place}: a stranger with update on leases", str(replies), is_refused)
