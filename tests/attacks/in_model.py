"""A lease in the model API server: the same writes, without a cluster and without waiting."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from tests.attacks.play import Outcome
from tests.attacks.recorded import outcome_of
from tests.attacks.requests import Clock, merged
from tests.model import api_server
from tests.model.api_server import Lease, User, Write, review, service_account
from tests.model.managed_fields import APPLY, SECOND, Entry
from tests.model.recordings import as_entry, as_lease
from webhook.admission.policy.model import Policy
from webhook.server.reviewer import respond

START: Final = 1_800_000_000 * SECOND
BETWEEN_WRITES: Final = SECOND // 10
OLDEST: Final = 31
"""The oldest minor version of Kubernetes that is supported."""

ACTORS: Final[Mapping[str, User]] = {
    "keeper": service_account("shop", "checkout-0", "checkout-0"),
    "successor": service_account("shop", "checkout-1", "checkout-1"),
    "neighbor": service_account("shop", "mallory-0", "mallory-0"),
    "stranger": service_account("other", "mallory-0", "mallory-0"),
    "namesake": service_account("other", "checkout-0", "checkout-0"),
    "shorter": service_account("shop", "checkout", "checkout"),
    "person": User("mallory", ("people", "system:authenticated")),
    "admin": User("admin", ("system:masters", "system:authenticated")),
}


class ModelWorld:
    """One lease, and the webhook under one policy; `lease` is what is stored. `minor` is the version of Kubernetes."""

    def __init__(self, policy: Policy, minor: int) -> None:
        self.lease: Lease | None = None
        self._policy = policy
        self._minor = minor
        self._now = START

    def clock(self) -> Clock:
        """The one clock of the model."""
        return Clock(self._now)

    def read(self) -> dict[str, Any]:
        """The stored object."""
        assert self.lease is not None
        return api_server.document(self.lease)

    def send(self, by: str, method: str, manager: str, body: dict[str, Any] | None, /) -> Outcome:
        """One write, stored where the webhook allows it."""
        after = None if body is None else written(self.lease, method, manager, body, self._now, self._minor)
        sent = review(ACTORS[by], self.lease, after)
        if method == "create" and body is not None and (version := body["metadata"].get("resourceVersion")):
            sent = sent.replace(b'"creationTimestamp":', f'"resourceVersion":"{version}","creationTimestamp":'.encode())
        outcome = outcome_of(respond(sent, self._policy, self._now))
        if outcome.stored:
            self.lease = _left(self.lease, after, self._now)
        self._now += BETWEEN_WRITES
        return outcome

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self._now += int(seconds * SECOND)


def _left(before: Lease | None, after: Lease | None, now: int) -> Lease | None:
    """Return what is stored in the end: a lease with finalizers outlives its deletion until the last one is removed."""
    if after is None:
        return replace(before, deleted=now) if before and before.finalizers else None
    return after if after.deleted is None or after.finalizers else None


def written(
    old: Lease | None, method: str, manager: str, body: dict[str, Any], clock: int, minor: int = OLDEST
) -> Lease:
    """Return what the model API server makes of one request; `clock` in microseconds since 1970."""
    sent = body["metadata"].get("managedFields") if "metadata" in body else None
    if old is None:
        new = as_lease(body)
        write = Write(manager, new.spec, new.labels, entries=_entries(sent), owners=new.owners)
        return api_server.created(write, clock, new.name, new.namespace)
    if method == "apply":
        applied = as_lease({"spec": {}, **body})
        fields = api_server.values(applied.spec, applied.labels, applied.owners).keys() - {"labels", "owners"}
        write = Write(manager, applied.spec, applied.labels, APPLY, frozenset(fields), owners=applied.owners)
        return api_server.stored(old, write, clock)
    whole = merged(api_server.document(old), body) if method == "merge" else body
    new = as_lease(merged(whole, {"metadata": {"managedFields": None}}))
    write = Write(
        manager,
        new.spec,
        new.labels,
        entries=_entries(sent),
        owners=new.owners,
        finalizers=new.finalizers,
        minor=minor,
    )
    return api_server.stored(old, write, clock)


def _entries(sent: list[dict[str, Any]] | None) -> tuple[Entry, ...] | None:
    """The list that was sent; one empty entry stands for an empty list."""
    return None if sent is None else tuple(as_entry(entry) for entry in sent if entry)
