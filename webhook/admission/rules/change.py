"""One write as the rules see it: the request, both objects, the event, what it set, and what the stamps prove."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import Struct

from webhook.admission.rules.expiry import Expiry, date_write_by_field, find_expiry, truncate_to_seconds
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.limits import DEFAULT_LIMITS, Limits, find_numbers
from webhook.admission.rules.stamps import Stamp, Stamps, find_stamp, is_writer
from webhook.cached_property import cached_property
from webhook.kubernetes.managed_fields import HOLDER, RENEW_TIME, Entry, list_entries
from webhook.kubernetes.objects import (
    NO_CANDIDATE_SPEC,
    NO_LEASE_SPEC,
    NO_METADATA,
    OLDEST_EMULATION_VERSION,
    Lease,
    LeaseCandidateSpec,
    LeaseSpec,
    ObjectMeta,
    OwnerReference,
)
from webhook.kubernetes.request import NO_OPTIONS, AdmissionRequest, Operation, Resource, UserInfo
from webhook.kubernetes.times import get_instant_or_latest, normalize
from webhook.kubernetes.versions import parse_version

NODE_LEASES: Final = "kube-node-lease"
"""The namespace in which each kubelet renews a lease that is named after its node."""

KUBE_SYSTEM: Final = "kube-system"
"""The namespace of the control plane."""

IDENTITY_LABEL: Final = "apiserver.kubernetes.io/identity"
"""A label of the leases in kube-system by which API servers show that they run."""

NODES: Final = "system:nodes"
"""The group of all kubelets."""

GARBAGE_COLLECTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"
NAMESPACE_CONTROLLER: Final = "system:serviceaccount:kube-system:namespace-controller"
CLEANUP_CONTROLLERS: Final = frozenset({GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER, "system:kube-controller-manager"})
"""Users that delete objects because their namespace or owner is deleted."""


class Event(StrEnum):
    """Exactly one of these fits any write; TAKEOVER is of an expired lease, STEAL of a live one.

    DELETE is also an UPDATE that removes the last finalizer of a deleted lease.
    """

    CREATE = "create"
    DELETE = "delete"
    UNTOUCHED = "untouched"
    UPDATE = "update"
    RENEWAL = "renewal"
    RELEASE = "release"
    CLAIM = "claim"
    TAKEOVER = "takeover"
    STEAL = "steal"
    EDIT = "edit"


class Condition(IntEnum):
    """A property of few writes, without which some checks find nothing; the value is its place in `conditions`."""

    BOUND = 0
    """The policy file binds the lease."""
    STAMPED = 1
    """The policy file lists the namespace under `stamps`."""
    WITH_OPTIONS = 2
    """The options of the write are not those that every client sends."""
    OWNED = 3
    """The object has an ownerReference, before the write or after it."""
    UNUSUAL_SPEC = 4
    """The write leaves in the spec what few specs have, see `has_unusual_spec`."""
    NODE_LEASE = 5
    """The object is in kube-node-lease."""
    SYSTEM_LEASE = 6
    """The object is in kube-system."""


Conditions = tuple[bool, ...]
"""For each member of Condition, whether it holds."""


def is_same_time(first: str | None, second: str | None) -> bool:
    """True if two times are one value."""
    return first == second or normalize(first) == normalize(second)


def is_rest_of_spec_untouched(old: LeaseSpec, new: LeaseSpec) -> bool:
    """True if a write with the same holder and renewTime also leaves the rest of the spec of a Lease as it is."""
    return (
        new.lease_duration_seconds == old.lease_duration_seconds
        and new.lease_transitions == old.lease_transitions
        and (new.strategy or "") == (old.strategy or "")
        and (new.preferred_holder or "") == (old.preferred_holder or "")
        and is_same_time(new.acquire_time, old.acquire_time)
    )


def is_spec_untouched(old: LeaseSpec, new: LeaseSpec) -> bool:
    """True if a write leaves the spec of a Lease as it is."""
    return (
        (old.holder_identity or "") == (new.holder_identity or "")
        and is_same_time(old.renew_time, new.renew_time)
        and is_rest_of_spec_untouched(old, new)
    )


def has_only_renewal_changes(old: LeaseSpec, new: LeaseSpec) -> bool:
    """True if only fields that a renewal changes differ: times and the duration.

    The caller has seen that the spec has the same holder, and that renewTime is not removed.
    Clearing strategy and preferredHolder belongs to it, because client-go rebuilds the whole spec.
    """
    return (
        (
            new.lease_transitions == old.lease_transitions
            or (old.lease_transitions is None and new.lease_transitions == 0)
        )
        and (not new.strategy or new.strategy == old.strategy)
        and (not new.preferred_holder or new.preferred_holder == old.preferred_holder)
        and (new.lease_duration_seconds is not None or old.lease_duration_seconds is None)
    )


def is_candidate_untouched(old: LeaseCandidateSpec, new: LeaseCandidateSpec) -> bool:
    """True if a write leaves the spec of a LeaseCandidate as it is."""
    return (
        (new.lease_name or "") == (old.lease_name or "")
        and (new.binary_version or "") == (old.binary_version or "")
        and (new.emulation_version or "") == (old.emulation_version or "")
        and new.strategies == old.strategies
        and is_same_time(new.renew_time, old.renew_time)
        and is_same_time(new.ping_time, old.ping_time)
    )


_NOTHING: Final[frozenset[str]] = frozenset()


class SetFields(Struct, frozen=True):
    """Fields that a write set; names are as managedFields spells them, with `f:`, finalizers and uids are bare."""

    spec: frozenset[str] = _NOTHING
    metadata: frozenset[str] = _NOTHING
    labels: frozenset[str] = _NOTHING
    annotations: frozenset[str] = _NOTHING
    finalizers: frozenset[str] = _NOTHING
    owners: frozenset[str] = _NOTHING

    def __bool__(self) -> bool:
        return any((self.spec, self.metadata, self.labels, self.annotations, self.finalizers, self.owners))

    def find_owners(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries that own something that this write set: its writer's, or a fold."""
        return [entry for entry in entries if self.is_owned_in_part_by(entry)]

    def is_owned_in_part_by(self, entry: Entry) -> bool:
        """True if an entry owns something that this write set; the work is linear in the entry's size."""
        owned = entry.owned
        if not self.spec.isdisjoint(owned.spec):
            return True
        # Most writes set fields of spec only, and a list may have many entries: each test for emptiness saves a walk.
        return bool(
            (self.labels and not self.labels.isdisjoint(owned.labels))
            or (self.annotations and not self.annotations.isdisjoint(owned.annotations))
            or (self.metadata and not self.metadata.isdisjoint(owned.metadata))
            or (self.finalizers and not self.finalizers.isdisjoint(owned.finalizers))
            or (self.owners and not self.owners.isdisjoint(owned.owners))
        )


def find_set_fields(spec: frozenset[str], new: ObjectMeta, old: ObjectMeta) -> SetFields:
    """Return what a write set; `spec` are fields of spec, as managedFields spells them."""
    if not (new.labels or new.annotations or new.owner_references or new.finalizers or new.generate_name is not None):
        return SetFields(spec)
    is_renamed = new.generate_name is not None and new.generate_name != old.generate_name
    return SetFields(
        spec,
        frozenset({"f:generateName"}) if is_renamed else _NOTHING,
        _find_set_names(new.labels, old.labels) if new.labels else _NOTHING,
        _find_set_names(new.annotations, old.annotations) if new.annotations else _NOTHING,
        frozenset(_texts(new.finalizers)) - frozenset(_texts(old.finalizers)) if new.finalizers else _NOTHING,
        _NOTHING if new.owner_references == old.owner_references else frozenset(_find_changed_owners(new, old)),
    )


def _find_set_names(new: Mapping[str, object], old: Mapping[str, object] | None) -> frozenset[str]:
    if new == old:
        return _NOTHING
    old = old or {}
    return frozenset([f"f:{name}" for name, value in new.items() if name not in old or old[name] != value])


def _find_changed_owners(new: ObjectMeta, old: ObjectMeta) -> Iterator[str]:
    """Return uids whose references are not exactly those of before: an item is atomic, and several may bear one uid."""
    before, after = _group_by_uid(old.owner_references), _group_by_uid(new.owner_references)
    return (uid for uid, references in after.items() if references != before.get(uid))


def _group_by_uid(references: Iterable[OwnerReference | None] | None) -> dict[str, list[OwnerReference]]:
    by_uid: dict[str, list[OwnerReference]] = {}
    for reference in references or ():
        if reference is not None:
            by_uid.setdefault(reference.uid or "", []).append(reference)
    return by_uid


def _texts(items: Iterable[str | None] | None) -> Iterator[str]:
    return (item or "" for item in items or ())


_Numbers = TypeVar("_Numbers", bound=Struct)
UNKNOWN_USER = UserInfo()
_CREATE, _UPDATE = Operation.CREATE, Operation.UPDATE
_LEASES: Final = Resource.LEASES.value


_SPEC_FIELDS: Final = tuple(
    zip(LeaseSpec.__struct_fields__, [f"f:{name}" for name in LeaseSpec.__struct_encode_fields__], strict=True)
)


class Change(Struct, frozen=True, dict=True):
    """Everything that a rule may look at; `now` is in microseconds since 1970; metadata is empty if there is no object.

    `user` is the writer, empty if the review names none.
    `dict=True` keeps what several rules need, which is computed once, on first use.
    """

    request: AdmissionRequest
    now: int
    limits: Limits = DEFAULT_LIMITS
    binding: Binding | None = None
    stamps: Stamps | None = None
    user: UserInfo = UNKNOWN_USER
    new_metadata: ObjectMeta = NO_METADATA
    old_metadata: ObjectMeta = NO_METADATA
    new_renew_time: int | str | None = None
    old_renew_time: int | str | None = None
    new_entries: Sequence[Entry] = ()
    old_entries: Sequence[Entry] = ()

    def find_limits(self, numbers: type[_Numbers]) -> _Numbers:
        """Return the numbers of a rule that count for the lease, by their type."""
        return find_numbers(self.limits, numbers)

    @property
    def is_create(self) -> bool:
        """True if the object comes into being."""
        return self.request.operation is _CREATE

    @property
    def is_by_listed_writer(self) -> bool:
        """True if a binding of the lease lists the writer."""
        return self.binding is not None and self.binding.lists(self.user)

    if TYPE_CHECKING:

        @property
        def has_unusual_spec(self) -> bool:
            """True if the write leaves in the spec what few specs have."""

    @property
    def conditions(self) -> Conditions:
        """Whether each condition holds, in the order of Condition."""
        request = self.request
        return (
            self.binding is not None,
            self.stamps is not None,
            request.options is not NO_OPTIONS,
            bool(self.new_metadata.owner_references or self.old_metadata.owner_references),
            self.has_unusual_spec,
            request.namespace == NODE_LEASES,
            request.namespace == KUBE_SYSTEM,
        )

    @cached_property
    def renew_time_written_at(self) -> int:
        """The stamp of this write or of spec.renewTime, else `now`: what a written renewTime is measured against."""
        if self.stamps is not None and (stamp := self.new_stamp) is not None and stamp.written is not None:
            return stamp.written
        return date_write_by_field(self.new_entries, self.old_entries, RENEW_TIME, self.now)

    @cached_property
    def old_stamp(self) -> Stamp | None:
        """Return what the API server recorded of the last writer, where the policy file names stamps."""
        assert self.stamps is not None
        return find_stamp(self.stamps, self.old_metadata.annotations, self.old_entries)

    @cached_property
    def new_stamp(self) -> Stamp | None:
        """Return what it recorded of this write."""
        assert self.stamps is not None
        return find_stamp(self.stamps, self.new_metadata.annotations, self.new_entries)

    @cached_property
    def set_fields(self) -> SetFields:
        """Return what this write added or changed."""
        return find_set_fields(self._set_in_spec, self.new_metadata, self.old_metadata)

    @property
    def _set_in_spec(self) -> frozenset[str]:
        return self.request.set_in_spec


class LeaseChange(Change, frozen=True, dict=True):
    """A write to a Lease: both specs (empty if there is no object), and what most rules compare, normalized."""

    new_spec: LeaseSpec = NO_LEASE_SPEC
    old_spec: LeaseSpec = NO_LEASE_SPEC
    new_holder: str = ""
    old_holder: str = ""

    @cached_property
    def event(self) -> Event:
        """Return what the write does."""
        if self.request.operation is not _UPDATE:
            return Event.CREATE if self.is_create else Event.DELETE
        if self.old_metadata.deletion_timestamp is not None and self._completes_deletion:
            return Event.DELETE
        if self.new_holder == self.old_holder:
            is_renewed = self.new_renew_time != self.old_renew_time
            if not is_renewed and is_rest_of_spec_untouched(self.old_spec, self.new_spec):
                return Event.UNTOUCHED
            is_renew_time_kept = self.new_renew_time is not None or self.old_renew_time is None
            return (
                Event.RENEWAL
                if is_renew_time_kept and has_only_renewal_changes(self.old_spec, self.new_spec)
                else Event.EDIT
            )
        if not self.new_holder:
            return Event.RELEASE
        if not self.old_holder:
            return Event.CLAIM
        return Event.TAKEOVER if self.expiry.is_expired else Event.STEAL

    @property
    def has_unusual_spec(self) -> bool:
        """True if the spec has a strategy, a preferredHolder, a duration below 1 or a count below 0."""
        new = self.new_spec
        duration, transitions = new.lease_duration_seconds, new.lease_transitions
        if new.strategy is not None or new.preferred_holder is not None:
            return True
        return (duration is not None and duration < 1) or (transitions is not None and transitions < 0)

    @property
    def _set_in_spec(self) -> frozenset[str]:
        if self.request.body:
            return self.request.set_in_spec
        # Without a review, only known fields can be compared.
        new, old = self.new_spec, self.old_spec
        values = ((name, getattr(new, field), getattr(old, field)) for field, name in _SPEC_FIELDS)
        return frozenset([name for name, value, before in values if value is not None and value != before])

    @property
    def renews(self) -> bool:
        """True if the write sets renewTime to another value."""
        return self.new_spec.renew_time is not None and self.new_spec.renew_time != self.old_spec.renew_time

    @property
    def is_of_an_elector(self) -> bool:
        """True if the write sets another renewTime, acquireTime or holder, as every write of an elector does.

        Pekko's heartbeats set acquireTime, and neither renewTime nor a duration.
        """
        if (self.renews and self.new_renew_time is not None) or self.new_holder != self.old_holder:
            return True
        acquired = normalize(self.new_spec.acquire_time)
        return acquired is not None and acquired != normalize(self.old_spec.acquire_time)

    @property
    def is_by_stamped_writer(self) -> bool:
        """True if the lease is held, and the API server's stamp on it names this writer: then the holder is known."""
        stamps = self.stamps
        if stamps is None or not self.old_holder or (stamp := self.old_stamp) is None:
            return False
        return is_writer(self.user, stamp, stamps)

    @property
    def _completes_deletion(self) -> bool:
        """True if an UPDATE of a lease that was deleted before removes its last finalizer.

        The API server then deletes it without a review of a DELETE (ShouldDeleteDuringUpdate in
        `pkg/registry/generic/registry/store.go` of apiserver); its holder may have changed since the DELETE.
        """
        return bool(self.old_metadata.finalizers) and not self.new_metadata.finalizers

    @cached_property
    def expiry(self) -> Expiry:
        """Return whether the old lease had expired at this write, and by which evidence."""
        if self.new_holder != self.old_holder and self.new_spec.holder_identity is not None:
            written_at = date_write_by_field(self.new_entries, self.old_entries, HOLDER, self.now)
        else:
            # A removed field has no owner, so whoever claims to own it was invented.
            written_at = truncate_to_seconds(self.now)
        new, old = (None, None) if self.stamps is None else (self.new_stamp, self.old_stamp)
        # The time of a stamp is that of the last dated write of its writer, so a new writer's is of this write.
        if new is not None and new.written is not None and (old is None or new.writer != old.writer):
            written_at = new.written
        return find_expiry(
            self.old_holder,
            self.old_spec.lease_duration_seconds,
            get_instant_or_latest(self.old_renew_time),
            self.old_entries,
            written_at,
            self.now,
            None if old is None else old.written,
        )


_USUAL_STRATEGIES: Final = (OLDEST_EMULATION_VERSION,)


class CandidateChange(Change, frozen=True, dict=True):
    """A write to a LeaseCandidate: both specs (empty if there is no object), and renewTime, normalized."""

    new_spec: LeaseCandidateSpec = NO_CANDIDATE_SPEC
    old_spec: LeaseCandidateSpec = NO_CANDIDATE_SPEC

    @property
    def has_unusual_spec(self) -> bool:
        """True unless the spec names a lease, the one known strategy, and one and the same version twice."""
        new = self.new_spec
        version = new.binary_version
        if not new.lease_name or not version or version != new.emulation_version or version.startswith("0.0.0"):
            return True
        return new.strategies != _USUAL_STRATEGIES or parse_version(version) is None

    @cached_property
    def event(self) -> Event:
        """Return what the write does."""
        if self.request.operation is not _UPDATE:
            return Event.CREATE if self.is_create else Event.DELETE
        return Event.UNTOUCHED if is_candidate_untouched(self.old_spec, self.new_spec) else Event.UPDATE


def make_change(
    request: AdmissionRequest,
    now: int,
    limits: Limits = DEFAULT_LIMITS,
    binding: Binding | None = None,
    stamps: Stamps | None = None,
) -> LeaseChange | CandidateChange:
    """Return the change that a request about a Lease or a LeaseCandidate makes."""
    new, old = request.new, request.old
    is_lease = request.resource == _LEASES
    none = NO_LEASE_SPEC if is_lease else NO_CANDIDATE_SPEC
    new_metadata = new.metadata if new else NO_METADATA
    old_metadata = old.metadata if old else NO_METADATA
    new_spec: Any = new.spec if new else none
    old_spec: Any = old.spec if old else none
    user = request.user or UNKNOWN_USER
    new_renew_time, old_renew_time = normalize(new_spec.renew_time), normalize(old_spec.renew_time)
    new_entries, old_entries = list_entries(new_metadata.managed_fields), list_entries(old_metadata.managed_fields)
    if not is_lease:
        return CandidateChange(
            request=request,
            now=now,
            limits=limits,
            binding=binding,
            user=user,
            new_metadata=new_metadata,
            old_metadata=old_metadata,
            new_renew_time=new_renew_time,
            old_renew_time=old_renew_time,
            new_entries=new_entries,
            old_entries=old_entries,
            new_spec=new_spec,
            old_spec=old_spec,
        )
    return LeaseChange(
        request=request,
        now=now,
        limits=limits,
        binding=binding,
        stamps=stamps,
        user=user,
        new_metadata=new_metadata,
        old_metadata=old_metadata,
        new_renew_time=new_renew_time,
        old_renew_time=old_renew_time,
        new_entries=new_entries,
        old_entries=old_entries,
        new_spec=new_spec,
        old_spec=old_spec,
        new_holder=new_spec.holder_identity or "",
        old_holder=old_spec.holder_identity or "",
    )


def make_change_between(old: Lease | None, new: Lease, now: int) -> LeaseChange:
    """Return the change between two states of a Lease that were seen, outside of a review; its writer is not known."""
    operation = Operation.CREATE if old is None else Operation.UPDATE
    return cast("LeaseChange", make_change(AdmissionRequest("", operation, "leases", new=new, old=old), now))
