"""Attacks that a writer with update rights can try in one write against a live lease."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from lab.e2e.api_client import APPLY, MERGE, ApiClient, Reply
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.world import Account, build_lease_path

THIEF = "mallory_1"


class Victim(Struct, frozen=True):
    """A lease and the account that holds it."""

    keeper: Account
    name: str

    @property
    def path(self) -> str:
        """Path of the lease."""
        return build_lease_path(self.keeper.namespace, self.name)

    def hold(self, seconds: int) -> None:
        """Create the lease, held by the keeper and renewed now."""
        body = make_lease(self.name, holderIdentity=f"{self.keeper.name}_1", leaseDurationSeconds=seconds)
        self.keeper.client.send("POST", build_lease_path(self.keeper.namespace), body).expect(201)

    def change(self, client: ApiClient, **spec: Any) -> Reply:
        """Send a merge patch of the spec."""
        return client.send("PATCH", self.path, {"spec": spec}, media=MERGE)


class Attack(Struct, frozen=True):
    """One write, the rule that is about it, and the outcome under each preset."""

    name: str
    rule: str
    write: Callable[[Victim, ApiClient], Reply]
    standard: str
    strict: str
    from_elsewhere: bool = False

    def get_expected(self, policy: str) -> str:
        """Return the expected outcome under a preset."""
        return self.strict if policy == "strict" else self.standard


def take_over(victim: Victim, client: ApiClient) -> Reply:
    """Send a GET and a PUT, as an election client takes over an expired lease."""
    lease = client.get(victim.path)
    lease["spec"] |= {"holderIdentity": THIEF, "acquireTime": format_micro_time(), "renewTime": format_micro_time()}
    lease["spec"]["leaseTransitions"] = lease["spec"].get("leaseTransitions", 0) + 1
    return client.send("PUT", victim.path, lease)


def _patch_holder(victim: Victim, client: ApiClient) -> Reply:
    return victim.change(client, holderIdentity=THIEF)


def _apply_holder(victim: Victim, client: ApiClient) -> Reply:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": victim.name},
        "spec": {"holderIdentity": THIEF, "renewTime": format_micro_time()},
    }
    return client.send("PATCH", victim.path, body, media=APPLY, fieldManager=THIEF, force=True)


def _wipe_stamps(victim: Victim, client: ApiClient) -> Reply:
    body = {"metadata": {"managedFields": [{}]}, "spec": {"holderIdentity": THIEF}}
    return client.send("PATCH", victim.path, body, media=MERGE)


def _backdate_stamps(victim: Victim, client: ApiClient) -> Reply:
    lease = client.get(victim.path)
    for entry in lease["metadata"]["managedFields"]:
        entry["time"] = "2020-01-01T00:00:00Z"
    lease["metadata"]["labels"] = {"harmless": "yes"}
    return client.send("PUT", victim.path, lease)


ATTACKS = (
    Attack("takeover by PUT", "takeover-before-expiry", take_over, "warned", "denied"),
    Attack("takeover by patch", "takeover-before-expiry", _patch_holder, "warned", "denied"),
    Attack("takeover by apply", "takeover-before-expiry", _apply_holder, "warned", "denied"),
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
    Attack("takeover from another namespace", "takeover-across-namespaces", take_over, "denied", "denied", True),
    Attack("stamps wiped", "renewal-stamp-tampered", _wipe_stamps, "denied", "denied"),
    Attack("stamps backdated", "renewal-stamp-tampered", _backdate_stamps, "denied", "denied"),
)
