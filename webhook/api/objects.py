"""Lease and LeaseCandidate as frozen values, with the JSON types that the API server's decoder insists on.

Times stay text here: a webhook is shown years -0001 and 10000, which rules must be able to name.
Explicit null and an absent key are one value, as in Go, so every field may be None.
"""

from typing import Annotated, Final

from msgspec import Meta, Raw, Struct, field

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
NO_ENTRIES = Raw(b"null")


class OwnerReference(Struct, frozen=True, gc=False, rename="camel"):
    """One owner of an object."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, gc=False, rename="camel"):
    """`metadata`; managedFields stay undecoded bytes because broken ones never matter to a verdict."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    owner_references: list[OwnerReference | None] | None = None
    finalizers: list[str | None] | None = None
    managed_fields: Raw = NO_ENTRIES


class LeaseSpec(Struct, frozen=True, gc=False, rename="camel"):
    """`spec` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class LeaseCandidateSpec(Struct, frozen=True, gc=False, rename="camel"):
    """`spec` of a LeaseCandidate of any version: v1alpha1 has `preferredStrategies`, the later ones `strategy`."""

    lease_name: str | None = None
    ping_time: str | None = None
    renew_time: str | None = None
    binary_version: str | None = None
    emulation_version: str | None = None
    strategy: str | None = None
    preferred_strategies: list[str | None] | None = None


NO_METADATA = ObjectMeta()
NO_LEASE_SPEC = LeaseSpec()
NO_CANDIDATE_SPEC = LeaseCandidateSpec()


class Lease(Struct, frozen=True, gc=False, rename="camel"):
    """A Lease, v1 or v1beta1."""

    api_version: str | None = None
    kind: str | None = None
    metadata_or_none: ObjectMeta | None = field(default=NO_METADATA, name="metadata")
    spec_or_none: LeaseSpec | None = field(default=NO_LEASE_SPEC, name="spec")

    @property
    def metadata(self) -> ObjectMeta:
        """`metadata`, empty if the document has none."""
        return self.metadata_or_none or NO_METADATA

    @property
    def spec(self) -> LeaseSpec:
        """`spec`, empty if the document has none."""
        return self.spec_or_none or NO_LEASE_SPEC


class LeaseCandidate(Struct, frozen=True, gc=False, rename="camel"):
    """A LeaseCandidate, v1alpha1, v1alpha2 or v1beta1."""

    api_version: str | None = None
    kind: str | None = None
    metadata_or_none: ObjectMeta | None = field(default=NO_METADATA, name="metadata")
    spec_or_none: LeaseCandidateSpec | None = field(default=NO_CANDIDATE_SPEC, name="spec")

    @property
    def metadata(self) -> ObjectMeta:
        """`metadata`, empty if the document has none."""
        return self.metadata_or_none or NO_METADATA

    @property
    def spec(self) -> LeaseCandidateSpec:
        """`spec`, empty if the document has none."""
        return self.spec_or_none or NO_CANDIDATE_SPEC


FORMS: Final[dict[str, type[Lease] | type[LeaseCandidate]]] = {"Lease": Lease, "LeaseCandidate": LeaseCandidate}
"""By kind."""
