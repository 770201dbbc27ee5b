"""The event of a write: a pure classification of the old spec and the new one.

Absent and empty are one value for a holder, a strategy and a preferred holder; absent, null and zero for a time.
"""

from enum import StrEnum

from webhook.api.objects import LeaseCandidateSpec, LeaseSpec
from webhook.rules.times import normalized


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


def same_time(one: str | None, other: str | None) -> bool:
    """Whether two times are one value."""
    return one == other or normalized(one) == normalized(other)


def is_lease_untouched(old: LeaseSpec, new: LeaseSpec) -> bool:
    """Whether a write with the same holder and renewTime leaves the rest of the spec of a Lease as it is, too."""
    return (
        new.lease_duration_seconds == old.lease_duration_seconds
        and new.lease_transitions == old.lease_transitions
        and (new.strategy or "") == (old.strategy or "")
        and (new.preferred_holder or "") == (old.preferred_holder or "")
        and same_time(new.acquire_time, old.acquire_time)
    )


def is_renewal(old: LeaseSpec, new: LeaseSpec) -> bool:
    """Whether a changed spec with the same holder is what a holder writes to stay: times and duration, nothing else.

    The caller has seen that renewTime is not removed.
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
    """Whether a write leaves the spec of a LeaseCandidate as it is."""
    return (
        (new.lease_name or "") == (old.lease_name or "")
        and (new.binary_version or "") == (old.binary_version or "")
        and (new.emulation_version or "") == (old.emulation_version or "")
        and (new.strategy or "") == (old.strategy or "")
        and (new.preferred_strategies or []) == (old.preferred_strategies or [])
        and same_time(new.renew_time, old.renew_time)
        and same_time(new.ping_time, old.ping_time)
    )
