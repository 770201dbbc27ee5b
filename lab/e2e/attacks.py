"""What a writer with update rights can try in one write against a live lease."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from lab.e2e.api_client import APPLY, MERGE, ApiClient, Reply
from lab.e2e.manifests import micro_time, sample_lease
from lab.e2e.world import Account, leases

THIEF = "mallory_1"


class Victim(Struct, frozen=True):
    """A lease and the account that holds it."""

    keeper: Account
    name: str

    @property
    def path(self) -> str:
        """Where the lease is."""
        return leases(self.keeper.namespace, self.name)

    def hold(self, seconds: int) -> None:
        """Create the lease, held by the keeper and renewed now."""
        body = sample_lease(self.name, holderIdentity=f"{self.keeper.name}_1", leaseDurationSeconds=seconds)
        self.keeper.client.send("POST", leases(self.keeper.namespace), body).expect(201)

    def change(self, client: ApiClient, **spec: Any) -> Reply:
        """A merge patch of the spec."""
        return client.send("PATCH", self.path, {"spec": spec}, media=MERGE)


class Attack(Struct, frozen=True):
    """One write, the rule that is about it, and what each preset does."""

    name: str
    rule: str
    write: Callable[[Victim, ApiClient], Reply]
    standard: str
    strict: str
    from_elsewhere: bool = False

    def expected(self, policy: str) -> str:
        """Return what is to happen under a preset."""
        return self.strict if policy == "strict" else self.standard


def takeover(victim: Victim, client: ApiClient) -> Reply:
    """GET and PUT, as an election client takes an expired lease over."""
    lease = client.get(victim.path)
    lease["spec"] |= {"holderIdentity": THIEF, "acquireTime": micro_time(), "renewTime": micro_time()}
    lease["spec"]["leaseTransitions"] = lease["spec"].get("leaseTransitions", 0) + 1
    return client.send("PUT", victim.path, lease)


def _patched_holder(victim: Victim, client: ApiClient) -> Reply:
    return victim.change(client, holderIdentity=THIEF)


def _applied_holder(victim: Victim, client: ApiClient) -> Reply:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": victim.name},
        "spec": {"holderIdentity": THIEF, "renewTime": micro_time()},
    }
    return client.send("PATCH", victim.path, body, media=APPLY, fieldManager=THIEF, force=True)


def _wiped_stamps(victim: Victim, client: ApiClient) -> Reply:
    body = {"metadata": {"managedFields": [{}]}, "spec": {"holderIdentity": THIEF}}
    return client.send("PATCH", victim.path, body, media=MERGE)


def _backdated_stamps(victim: Victim, client: ApiClient) -> Reply:
    lease = client.get(victim.path)
    for entry in lease["metadata"]["managedFields"]:
        entry["time"] = "2020-01-01T00:00:00Z"
    lease["metadata"]["labels"] = {"harmless": "yes"}
    return client.send("PUT", victim.path, lease)


ATTACKS = (
    Attack("takeover by PUT", "takeover-before-expiry", takeover, "warned", "denied"),
    Attack("takeover by patch", "takeover-before-expiry", _patched_holder, "warned", "denied"),
    Attack("takeover by apply", "takeover-before-expiry", _applied_holder, "warned", "denied"),
    Attack(
        "duration cut",
        "duration-shortened",
        lambda victim, client: victim.change(client, leaseDurationSeconds=1),
        "warned",
        "denied",
    ),
    Attack(
        "release for the holder",
        "foreign-release",
        lambda victim, client: victim.change(client, holderIdentity=None),
        "audited",
        "denied",
    ),
    Attack(
        "delete",
        "live-lease-deleted",
        lambda victim, client: client.send("DELETE", victim.path),
        "audited",
        "denied",
    ),
    Attack("takeover from another namespace", "takeover-across-namespaces", takeover, "denied", "denied", True),
    Attack("stamps wiped", "renewal-stamp-tampered", _wiped_stamps, "denied", "denied"),
    Attack("stamps backdated", "renewal-stamp-tampered", _backdated_stamps, "denied", "denied"),
)
