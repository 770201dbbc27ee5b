"""A fence as the rest of the program sees it: only the holder of a lease may make some writes."""

from msgspec import Struct

from webhook.policy.fences.holder_template import HolderTemplate
from webhook.policy.fences.resource import FencedResource
from webhook.policy.fences.schema_types import Choice, FenceMode


class Fence(Struct, frozen=True):
    """Of the writers, only the holder of the lease may make these writes.

    `writers` are (namespace, name) of service accounts, all of one namespace. `namespaces` are those of the objects
    that are written, empty for all.
    """

    name: str
    namespace: str
    lease: str
    writers: tuple[tuple[str, str], ...]
    holders: tuple[HolderTemplate, ...]
    resources: tuple[FencedResource, ...]
    operations: tuple[str, ...]
    namespaces: tuple[str, ...]
    mode: FenceMode
    when_unheld: Choice
    missing_lease: Choice

    @property
    def usernames(self) -> tuple[str, ...]:
        """The user names that the writers' tokens authenticate as."""
        return tuple(f"system:serviceaccount:{namespace}:{name}" for namespace, name in self.writers)

    @property
    def lease_text(self) -> str:
        """`namespace/name` of the lease."""
        return f"{self.namespace}/{self.lease}"

    @property
    def denies_if_lease_is_missing(self) -> bool:
        """Whether all writes of the writers are denied while the lease does not exist."""
        # If the parameter is not found, the API server denies the write as an error of the configuration, whatever the
        # actions of the binding are. So only a fence in mode deny may set that.
        return self.mode == "deny" and self.missing_lease == "deny"
