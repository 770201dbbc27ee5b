"""One write as the rules see it: the request, both objects, the event, and what the stamps prove."""

from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from webhook.api.cached import fact
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
from webhook.rules.evidence import HOLDER, RENEW_TIME, Expiry, expiry_of, stamp_of_write, whole_seconds
from webhook.rules.limits import DEFAULT_LIMITS, Limits
from webhook.rules.set_fields import SetFields, set_fields
from webhook.rules.times import fold, instant

UNKNOWN_USER = UserInfo()


class Change(Struct, frozen=True, dict=True):
    """What a rule may look at; `now` is in microseconds since 1970; metadata is empty where there is no object.

    `dict=True` lets facts that several rules need be worked out once, on first use.
    """

    request: AdmissionRequest
    now: int
    limits: Limits = DEFAULT_LIMITS
    binding: Binding | None = None
    new_metadata: ObjectMeta = NO_METADATA
    old_metadata: ObjectMeta = NO_METADATA

    @fact
    def user(self) -> UserInfo:
        """The writer; empty if the review names none."""
        return self.request.user or UNKNOWN_USER

    @property
    def is_create(self) -> bool:
        """Whether the object comes into being."""
        return self.request.operation is Operation.CREATE

    @fact
    def new_entries(self) -> Sequence[Entry]:
        """Entries of managedFields in object."""
        return _entries(self.new_metadata)

    @fact
    def old_entries(self) -> Sequence[Entry]:
        """Entries of managedFields in oldObject."""
        return _entries(self.old_metadata)

    @fact
    def renewed_at(self) -> int:
        """The stamp of spec.renewTime in object, else `now`: what a written renewTime is measured against."""
        return stamp_of_write(self.new_entries, RENEW_TIME, self.now)

    @fact
    def was_set(self) -> SetFields:
        """What this write added or changed."""
        new, old = spec_fields(self.request.body)
        return set_fields(new, old, self.new_metadata, self.old_metadata)


class LeaseChange(Change, frozen=True, dict=True):
    """A write to a Lease: both specs (empty where there is no object), and what most rules compare, folded."""

    new: LeaseSpec = NO_LEASE_SPEC
    old: LeaseSpec = NO_LEASE_SPEC
    new_renew_time: int | str | None = None
    old_renew_time: int | str | None = None
    new_holder: str = ""
    old_holder: str = ""

    @classmethod
    def of(
        cls, request: AdmissionRequest, now: int, limits: Limits = DEFAULT_LIMITS, binding: Binding | None = None
    ) -> Self:
        """The change that a request makes."""
        created, stored = request.new, request.old
        new = created.spec if isinstance(created, Lease) else NO_LEASE_SPEC
        old = stored.spec if isinstance(stored, Lease) else NO_LEASE_SPEC
        return cls(
            request,
            now,
            limits,
            binding,
            NO_METADATA if created is None else created.metadata,
            NO_METADATA if stored is None else stored.metadata,
            new,
            old,
            fold(new.renew_time),
            fold(old.renew_time),
            new.holder_identity or "",
            old.holder_identity or "",
        )

    @fact
    def event(self) -> Event:
        """What the write does."""
        if self.request.operation is not Operation.UPDATE:
            return Event.CREATE if self.is_create else Event.DELETE
        if self.new_holder == self.old_holder:
            renewed = self.new_renew_time != self.old_renew_time
            if not renewed and is_lease_untouched(self.old, self.new):
                return Event.UNTOUCHED
            kept = self.new_renew_time is not None or self.old_renew_time is None
            return Event.RENEWAL if kept and is_renewal(self.old, self.new) else Event.EDIT
        if not self.new_holder:
            return Event.RELEASE
        if not self.old_holder:
            return Event.CLAIM
        return Event.TAKEOVER if self.expiry.expired else Event.STEAL

    @fact
    def expiry(self) -> Expiry:
        """Whether the old lease had run out at this write."""
        if self.new_holder != self.old_holder and self.new.holder_identity is not None:
            written_at = stamp_of_write(self.new_entries, HOLDER, self.now)
        else:
            # A removed field has no owner, so whoever claims to own it was invented.
            written_at = whole_seconds(self.now)
        return expiry_of(
            held=bool(self.old_holder),
            duration_seconds=self.old.lease_duration_seconds,
            renew_time=instant(self.old_renew_time),
            entries=self.old_entries,
            written_at=written_at,
            now=self.now,
        )


class CandidateChange(Change, frozen=True, dict=True):
    """A write to a LeaseCandidate: both specs (empty where there is no object), and renewTime, folded."""

    new: LeaseCandidateSpec = NO_CANDIDATE_SPEC
    old: LeaseCandidateSpec = NO_CANDIDATE_SPEC
    new_renew_time: int | str | None = None
    old_renew_time: int | str | None = None

    @classmethod
    def of(
        cls, request: AdmissionRequest, now: int, limits: Limits = DEFAULT_LIMITS, binding: Binding | None = None
    ) -> Self:
        """The change that a request makes."""
        created, stored = request.new, request.old
        new = created.spec if isinstance(created, LeaseCandidate) else NO_CANDIDATE_SPEC
        old = stored.spec if isinstance(stored, LeaseCandidate) else NO_CANDIDATE_SPEC
        return cls(
            request,
            now,
            limits,
            binding,
            NO_METADATA if created is None else created.metadata,
            NO_METADATA if stored is None else stored.metadata,
            new,
            old,
            fold(new.renew_time),
            fold(old.renew_time),
        )

    @fact
    def event(self) -> Event:
        """What the write does."""
        if self.request.operation is not Operation.UPDATE:
            return Event.CREATE if self.is_create else Event.DELETE
        return Event.UNTOUCHED if is_candidate_untouched(self.old, self.new) else Event.UPDATE


def change_made_by(
    request: AdmissionRequest, now: int, limits: Limits = DEFAULT_LIMITS, binding: Binding | None = None
) -> LeaseChange | CandidateChange:
    """The change that a request about a Lease or a LeaseCandidate makes."""
    kind = LeaseChange if request.resource == Resource.LEASES.value else CandidateChange
    return kind.of(request, now, limits, binding)


def _entries(metadata: ObjectMeta) -> Sequence[Entry]:
    return () if metadata.managed_fields is NO_ENTRIES else entries_of(metadata.managed_fields)
