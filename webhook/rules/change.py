"""One write as the rules see it: the request, both objects, the event, and what the stamps prove."""

from collections.abc import Sequence

from msgspec import Struct

from webhook.api.cached import cached
from webhook.api.managed_fields import Entry, entries_of
from webhook.api.objects import (
    NO_CANDIDATE_SPEC,
    NO_ENTRIES,
    NO_LEASE_SPEC,
    NO_METADATA,
    Lease,
    LeaseCandidate,
    LeaseCandidateSpec,
    LeaseSpec,
    ObjectMeta,
)
from webhook.api.request import AdmissionRequest, Operation, Resource
from webhook.api.spec_fields import spec_fields
from webhook.api.user import UserInfo
from webhook.rules.binding import Binding
from webhook.rules.events import Event, is_candidate_untouched, is_lease_untouched, is_renewal
from webhook.rules.expiry import HOLDER, RENEW_TIME, Expiry, expiry_of, stamp_of_write, whole_seconds
from webhook.rules.limits import DEFAULT_LIMITS, Limits
from webhook.rules.set_fields import SetFields, set_fields
from webhook.rules.times import instant, normalized

UNKNOWN_USER = UserInfo()


class Change(Struct, frozen=True, dict=True):
    """What a rule may look at; `now` is in microseconds since 1970; metadata is empty if there is no object.

    `dict=True` keeps what several rules need, which is computed once, on first use.
    """

    request: AdmissionRequest
    now: int
    limits: Limits = DEFAULT_LIMITS
    binding: Binding | None = None
    new_metadata: ObjectMeta = NO_METADATA
    old_metadata: ObjectMeta = NO_METADATA
    new_renew_time: int | str | None = None
    old_renew_time: int | str | None = None

    @cached
    def user(self) -> UserInfo:
        """The writer; empty if the review names none."""
        return self.request.user or UNKNOWN_USER

    @property
    def is_create(self) -> bool:
        """Whether the object comes into being."""
        return self.request.operation is Operation.CREATE

    @cached
    def new_entries(self) -> Sequence[Entry]:
        """Entries of managedFields in object."""
        return _entries(self.new_metadata)

    @cached
    def old_entries(self) -> Sequence[Entry]:
        """Entries of managedFields in oldObject."""
        return _entries(self.old_metadata)

    @cached
    def renewed_at(self) -> int:
        """The stamp of spec.renewTime in object, else `now`: what a written renewTime is measured against."""
        return stamp_of_write(self.new_entries, self.old_entries, RENEW_TIME, self.now)

    @cached
    def was_set(self) -> SetFields:
        """What this write added or changed."""
        new, old = spec_fields(self.request.body)
        return set_fields(new, old, self.new_metadata, self.old_metadata)


class LeaseChange(Change, frozen=True, dict=True):
    """A write to a Lease: both specs (empty if there is no object), and what most rules compare, normalized."""

    new_spec: LeaseSpec = NO_LEASE_SPEC
    old_spec: LeaseSpec = NO_LEASE_SPEC
    new_holder: str = ""
    old_holder: str = ""

    @cached
    def event(self) -> Event:
        """What the write does."""
        if self.request.operation is not Operation.UPDATE:
            return Event.CREATE if self.is_create else Event.DELETE
        if self._completes_deletion:
            return Event.DELETE
        if self.new_holder == self.old_holder:
            renewed = self.new_renew_time != self.old_renew_time
            if not renewed and is_lease_untouched(self.old_spec, self.new_spec):
                return Event.UNTOUCHED
            kept = self.new_renew_time is not None or self.old_renew_time is None
            return Event.RENEWAL if kept and is_renewal(self.old_spec, self.new_spec) else Event.EDIT
        if not self.new_holder:
            return Event.RELEASE
        if not self.old_holder:
            return Event.CLAIM
        return Event.TAKEOVER if self.expiry.expired else Event.STEAL

    @property
    def _completes_deletion(self) -> bool:
        """Whether an UPDATE removes the last finalizer of a lease that was deleted before.

        The API server then deletes it without a review of a DELETE (ShouldDeleteDuringUpdate in
        `pkg/registry/generic/registry/store.go` of apiserver); its holder may have changed since the DELETE.
        """
        old = self.old_metadata
        return old.deletion_timestamp is not None and bool(old.finalizers) and not self.new_metadata.finalizers

    @cached
    def expiry(self) -> Expiry:
        """Whether the old lease had expired at this write."""
        if self.new_holder != self.old_holder and self.new_spec.holder_identity is not None:
            written_at = stamp_of_write(self.new_entries, self.old_entries, HOLDER, self.now)
        else:
            # A removed field has no owner, so whoever claims to own it was invented.
            written_at = whole_seconds(self.now)
        return expiry_of(
            held=bool(self.old_holder),
            duration_seconds=self.old_spec.lease_duration_seconds,
            renew_time=instant(self.old_renew_time),
            entries=self.old_entries,
            written_at=written_at,
            now=self.now,
        )


class CandidateChange(Change, frozen=True, dict=True):
    """A write to a LeaseCandidate: both specs (empty if there is no object), and renewTime, normalized."""

    new_spec: LeaseCandidateSpec = NO_CANDIDATE_SPEC
    old_spec: LeaseCandidateSpec = NO_CANDIDATE_SPEC

    @cached
    def event(self) -> Event:
        """What the write does."""
        if self.request.operation is not Operation.UPDATE:
            return Event.CREATE if self.is_create else Event.DELETE
        return Event.UNTOUCHED if is_candidate_untouched(self.old_spec, self.new_spec) else Event.UPDATE


def change_made_by(
    request: AdmissionRequest, now: int, limits: Limits = DEFAULT_LIMITS, binding: Binding | None = None
) -> LeaseChange | CandidateChange:
    """The change that a request about a Lease or a LeaseCandidate makes."""
    new, old = request.new, request.old
    new_metadata = NO_METADATA if new is None else new.metadata
    old_metadata = NO_METADATA if old is None else old.metadata
    if request.resource == Resource.LEASES.value:
        new_spec = new.spec if isinstance(new, Lease) else NO_LEASE_SPEC
        old_spec = old.spec if isinstance(old, Lease) else NO_LEASE_SPEC
        return LeaseChange(
            request,
            now,
            limits,
            binding,
            new_metadata,
            old_metadata,
            normalized(new_spec.renew_time),
            normalized(old_spec.renew_time),
            new_spec,
            old_spec,
            new_spec.holder_identity or "",
            old_spec.holder_identity or "",
        )
    new_candidate = new.spec if isinstance(new, LeaseCandidate) else NO_CANDIDATE_SPEC
    old_candidate = old.spec if isinstance(old, LeaseCandidate) else NO_CANDIDATE_SPEC
    return CandidateChange(
        request,
        now,
        limits,
        binding,
        new_metadata,
        old_metadata,
        normalized(new_candidate.renew_time),
        normalized(old_candidate.renew_time),
        new_candidate,
        old_candidate,
    )


def _entries(metadata: ObjectMeta) -> Sequence[Entry]:
    return () if metadata.managed_fields is NO_ENTRIES else entries_of(metadata.managed_fields)
