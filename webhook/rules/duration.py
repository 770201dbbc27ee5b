"""leaseDurationSeconds: absurd lengths, and shortening as the first step of a steal."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden, invalid
from webhook.api.verdict import Mode
from webhook.rules.change import LeaseChange
from webhook.rules.rule import LEASES, NOTHING, TOUCHED, UPDATE, WRITES, Finding, Rule

_FIELD: Final = "spec.leaseDurationSeconds"


def duration_is_not_too_long(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseDurationSeconds must not be longer than a year.

    A dead holder would keep the lease for as long: 2147483647 seconds are 68 years.
    """
    new = change.new.lease_duration_seconds
    limits = change.limits.duration_too_long
    if new is None or new <= limits.warn_above_seconds or new == change.old.lease_duration_seconds:
        return NOTHING
    denied = new > limits.deny_above_seconds
    limit = limits.deny_above_seconds if denied else limits.warn_above_seconds
    error = invalid(_FIELD, new, f"must not be greater than {limit}; a dead holder would keep the lease for as long")
    return (Finding(error, tier=Mode.DENY if denied else Mode.WARN),)


def held_lease_is_not_shortened(change: LeaseChange) -> Iterable[Finding]:
    """The duration or renewTime of a held lease may not be cut without renewing it.

    The lease would count as expired at once. A renewal that lowers the duration is legal.
    """
    if not change.old_holder or change.new_holder != change.old_holder:
        return NOTHING
    new, old = change.new.lease_duration_seconds, change.old.lease_duration_seconds
    if old is not None and new is None:
        what = "leaseDurationSeconds may not be removed"
    elif change.new_renew_time is None and change.old_renew_time is not None:
        what = "renewTime may not be removed"
    elif old is not None and new is not None and new < old and change.new_renew_time == change.old_renew_time:
        what = f"leaseDurationSeconds may not be lowered from {old} to {new} without a new renewTime"
    else:
        return NOTHING
    return (
        Finding(forbidden(_FIELD, f"{what} while the lease is held; release it instead, or let the holder write it")),
    )


RULES = (
    Rule(
        id="duration-too-long",
        check=duration_is_not_too_long,
        resources=LEASES,
        operations=WRITES,
        events=TOUCHED,
        source="ours: the longest default of a known client is 3600 s",
    ),
    Rule(
        id="duration-shortened",
        check=held_lease_is_not_shortened,
        resources=LEASES,
        operations=UPDATE,
        events=TOUCHED,
        source="ours: no known client does it, and it makes a live lease count as expired",
    ),
)
