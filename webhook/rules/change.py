"""One write as the rules see it: the request, both objects, the event, and what the stamps prove."""

from functools import cached_property

from msgspec import Struct

from webhook.api.objects import (
    NO_CANDIDATE_SPEC,
    NO_LEASE_SPEC,
    NO_METADATA,
    Lease,
    LeaseCandidate,
    LeaseCandidateSpec,
    LeaseSpec,
    ObjectMeta,
)
from webhook.api.request import AdmissionRequest, UserInfo
from webhook.rules.binding import Binding
from webhook.rules.limits import DEFAULT_LIMITS, Limits


class Change(Struct, frozen=True, dict=True):
    """What a rule may look at; `now` is in microseconds since 1970.

    `dict=True` lets facts that several rules need be worked out once, on first use.
    """

    request: AdmissionRequest
    now: int
    limits: Limits = DEFAULT_LIMITS
    binding: Binding | None = None

    @property
    def user(self) -> UserInfo:
        """The writer; empty where the review names none."""
        return self.request.user or NOBODY

    @property
    def new_metadata(self) -> ObjectMeta:
        """`metadata` of object."""
        return self.request.new.metadata if self.request.new else NO_METADATA

    @property
    def old_metadata(self) -> ObjectMeta:
        """`metadata` of oldObject."""
        return self.request.old.metadata if self.request.old else NO_METADATA


class LeaseChange(Change, frozen=True, dict=True):
    """A write to a Lease."""

    @cached_property
    def new(self) -> LeaseSpec:
        """`spec` of object; empty on DELETE."""
        return self.request.new.spec if isinstance(self.request.new, Lease) else NO_LEASE_SPEC

    @cached_property
    def old(self) -> LeaseSpec:
        """`spec` of oldObject; empty on CREATE."""
        return self.request.old.spec if isinstance(self.request.old, Lease) else NO_LEASE_SPEC


class CandidateChange(Change, frozen=True, dict=True):
    """A write to a LeaseCandidate."""

    @cached_property
    def new(self) -> LeaseCandidateSpec:
        """`spec` of object; empty on DELETE."""
        return self.request.new.spec if isinstance(self.request.new, LeaseCandidate) else NO_CANDIDATE_SPEC

    @cached_property
    def old(self) -> LeaseCandidateSpec:
        """`spec` of oldObject; empty on CREATE."""
        return self.request.old.spec if isinstance(self.request.old, LeaseCandidate) else NO_CANDIDATE_SPEC


NOBODY = UserInfo()
