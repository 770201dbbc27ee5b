"""The request inside an AdmissionReview, as a frozen value."""

from enum import StrEnum
from typing import Final

from msgspec import Raw, Struct

from webhook.api.cached import cached
from webhook.api.field import FieldError
from webhook.api.objects import Lease, LeaseCandidate
from webhook.api.user import NO_USER, UserInfo, user_of

GROUP: Final = "coordination.k8s.io"


class Operation(StrEnum):
    """What the caller asked the API server to do; PATCH and apply arrive as UPDATE or CREATE."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Resource(StrEnum):
    """The resources that this webhook validates."""

    LEASES = "leases"
    LEASECANDIDATES = "leasecandidates"


KIND_OF: Final = {Resource.LEASES: "Lease", Resource.LEASECANDIDATES: "LeaseCandidate"}
DECODED_VERSIONS: Final = {
    Resource.LEASES: ("v1", "v1beta1"),
    Resource.LEASECANDIDATES: ("v1beta1", "v1alpha2", "v1alpha1"),
}
"""The versions that this webhook decodes and evaluates, for Leases more than API servers still serve."""


def decodes(group: str | None, version: str | None, resource: str) -> bool:
    """Whether this webhook decodes the resource in this version."""
    return group == GROUP and version in _VERSIONS.get(resource, ())


_VERSIONS: Final = {resource.value: versions for resource, versions in DECODED_VERSIONS.items()}


class Options(Struct, frozen=True, gc=False, rename="camel"):
    """CreateOptions, UpdateOptions or DeleteOptions; absent and null are one value."""

    dry_run: list[str] | None = None
    field_manager: str | None = None
    field_validation: str | None = None
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: dict[str, str | None] | None = None


NO_OPTIONS = Options()


class AdmissionRequest(Struct, frozen=True, dict=True):
    """One write, as the API server describes it in a review.

    `name` and `namespace` are those of the object if the request leaves them empty.
    `contradiction` is set for a request that contradicts itself (a verdict with code 400).
    `object_errors` are wrong JSON types inside object or oldObject; rules then do not run.
    `api_version` is that of the review, repeated in the response. `body` is the review, for what only some rules read.
    """

    uid: str
    operation: Operation = Operation.CREATE
    resource: str = ""
    kind: str = ""
    version: str = ""
    group: str = ""
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    user_info: Raw = NO_USER
    new: Lease | LeaseCandidate | None = None
    old: Lease | LeaseCandidate | None = None
    options: Options = NO_OPTIONS
    object_errors: tuple[FieldError, ...] = ()
    contradiction: str = ""
    api_version: str = "admission.k8s.io/v1"
    body: bytes = b""

    @cached
    def user(self) -> UserInfo | None:
        """Who writes; None if userInfo is absent or unreadable."""
        return user_of(self.user_info)

    @property
    def is_ours(self) -> bool:
        """Whether the request is about a resource, in a version, that this webhook decodes."""
        return self.group == GROUP and self.version in _VERSIONS.get(self.resource, ())
