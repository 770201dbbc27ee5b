"""PostgreSQL primaries as CloudNativePG 1.30 elects them: an operator owns the lease, instances hold it."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from lab.e2e.electors import Elector, start_client_go
from lab.e2e.world import Account, World, build_lease_path
from tests.waiting import wait_for

LEASE: Final = "database"
"""The name of the cluster, of its lease and of the service account of its instances."""
OPERATOR: Final = "cnpg-system"
"""The namespace of the operator."""
SECONDS: Final = 6
TIMES: Final = (f"-duration={SECONDS}s", "-deadline=4s", "-retry=1s")
PATIENCE_SECONDS: Final = 30.0


class Database:
    """One PostgreSQL cluster with its operator, in one namespace."""

    def __init__(self, world: World, stack: ExitStack, namespace: str) -> None:
        self._world, self._stack, self.namespace = world, stack, namespace
        self.operator = world.create_account(OPERATOR, "cnpg-manager", f"manager-{namespace}")

    def reconcile(self, uid: str) -> Elector:
        """Start the operator, which looks after the lease of a Cluster of this uid."""
        return self._run(self.operator, "cluster", uid)

    def start(self, pod: str, *flags: str) -> Elector:
        """Start an instance in a new pod of this name; the previous one is gone."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}"
        self._world.admin.send("DELETE", path, gracePeriodSeconds=0).expect(200, 404)
        account = self._world.create_account(self.namespace, LEASE, pod)
        return self._run(account, "primary", pod, *flags)

    def _run(self, account: Account, mode: str, identity: str, *flags: str) -> Elector:
        return start_client_go(
            self._stack,
            self._world.plane.binaries,
            account.kubeconfig,
            *TIMES,
            *flags,
            namespaces=[self.namespace],
            lease=LEASE,
            identity=identity,
            mode=mode,
        )

    def wait_for_write(self, pod: str, what: str) -> float:
        """Return the seconds until a pod of this name has renewed the lease once more; raises TimeoutError."""
        begin = time.monotonic()
        before = self.read_spec().get("renewTime")

        def has_written() -> bool:
            spec = self.read_spec()
            return spec.get("holderIdentity") == pod and spec.get("renewTime") != before

        wait_for(what, has_written, PATIENCE_SECONDS, 0.05)
        return time.monotonic() - begin

    def read_spec(self) -> dict[str, object]:
        """Return the spec of the lease, {} if there is none."""
        reply = self._world.admin.send("GET", build_lease_path(self.namespace, LEASE))
        spec: dict[str, object] = reply.body.get("spec", {}) if reply.status == 200 else {}
        return spec

    def list_owners(self) -> list[str]:
        """Return the uids of the owners of the lease."""
        metadata = self._world.admin.get(build_lease_path(self.namespace, LEASE))["metadata"]
        return [owner["uid"] for owner in metadata.get("ownerReferences", [])]


def list_rounds(operator: Elector) -> Iterator[str]:
    """Yield the outcome of each round of the operator: `created`, `found`, `adopted` or `failed`."""
    for line in operator.list_reports():
        if line["event"] in {"created", "found", "adopted", "failed"}:
            yield line["event"]


def elect_primary(world: World, stack: ExitStack, namespace: str) -> str:
    """Run a cluster: created, renewed, switched over, failed over, adopted; return what happened, with times."""
    database = Database(world, stack, namespace)
    operator = database.reconcile("cluster-1")
    wait_for("the lease of the operator", lambda: "created" in set(list_rounds(operator)), PATIENCE_SECONDS)
    first = database.start("database-1", "-release")
    database.wait_for_write("database-1", "the first primary")
    second = database.start("database-2", "-release")
    time.sleep(2)
    first.process.stop()
    switched = database.wait_for_write("database-2", "the switchover")
    second.process.kill()
    third = database.start("database-3", "-release")
    failed_over = database.wait_for_write("database-3", "the failover")
    operator.process.stop()
    adopter = database.reconcile("cluster-2")
    wait_for("an adoption", lambda: "adopted" in set(list_rounds(adopter)), PATIENCE_SECONDS)
    adopter.process.stop()
    third.process.stop()
    return f"switched over in {switched:.1f} s, failed over in {failed_over:.1f} s, adopted"
