"""leaseDurationSeconds: extreme lengths, and shortening as the first step of a steal."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import forbidden, invalid
from webhook.api.text import quote
from webhook.api.times import SECOND, span
from webhook.rules.change import LeaseChange
from webhook.rules.rule import LEASES, NO_FINDINGS, TOUCHED, UPDATE, WRITES, Attack, Finding, Mode, Rule, Statement

_FIELD: Final = "spec.leaseDurationSeconds"


def duration_is_not_too_long(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseDurationSeconds must not be longer than a year.

    A dead holder would keep the lease for as long: 2147483647 seconds are 68 years.
    """
    new = change.new_spec.lease_duration_seconds
    limits = change.limits.duration_too_long
    # Of two overrides that meet on one lease, one may deny from lower on than the other warns.
    lowest = min(limits.warn_above_seconds, limits.deny_above_seconds)
    if new is None or new <= lowest or new == change.old_spec.lease_duration_seconds:
        return NO_FINDINGS
    denied = new > limits.deny_above_seconds
    limit = limits.deny_above_seconds if denied else limits.warn_above_seconds
    error = invalid(_FIELD, new, f"must not be greater than {limit}; a dead holder would keep the lease for as long")
    happened = Statement(f"leaseDurationSeconds is {new}: a dead holder keeps the lease for {span(new * SECOND)}")
    return (Finding(error, tier=Mode.DENY if denied else Mode.WARN, happened=happened),)


def held_lease_is_not_shortened(change: LeaseChange) -> Iterable[Finding]:
    """The duration or renewTime of a held lease may not be cut without renewing it.

    The lease would count as expired at once. A renewal that lowers the duration is allowed.
    """
    if not change.old_holder or change.new_holder != change.old_holder:
        return NO_FINDINGS
    new, old = change.new_spec.lease_duration_seconds, change.old_spec.lease_duration_seconds
    if old is not None and new is None:
        return (_shortened(change, "leaseDurationSeconds", "may not be removed", "was removed"),)
    if change.new_renew_time is None and change.old_renew_time is not None:
        return (_shortened(change, "renewTime", "may not be removed", "was removed"),)
    if old is not None and new is not None and new < old and change.new_renew_time == change.old_renew_time:
        return (
            _shortened(
                change,
                "leaseDurationSeconds",
                f"may not be decreased from {old} to {new} without a new renewTime",
                f"decreased from {old} to {new}",
            ),
        )
    return NO_FINDINGS


def _shortened(change: LeaseChange, name: str, may_not: str, was: str) -> Finding:
    left = change.expiry.seconds_left
    remaining = f" ({left} s left)" if left else ""
    return Finding(
        forbidden(
            f"spec.{name}",
            f"{may_not} while {quote(change.old_holder)} holds the lease{remaining}; renew or release instead",
        ),
        happened=Statement(f"{name} {was} while {{0}} holds the lease: there may be two leaders", (change.old_holder,)),
    )


RULES = (
    Rule(
        id="duration-too-long",
        check=duration_is_not_too_long,
        resources=LEASES,
        operations=WRITES,
        events=TOUCHED,
        source="ours: the longest default of a known client is 3600 s",
        why="A dead holder keeps the lease for the whole duration: 2147483647 s are 68 years.",
        who="Durations in milliseconds instead of seconds; leases used as locks without an end.",
        fix="Configure seconds. The longest default of a known client is 3600.",
        attack=Attack("set a duration after which no one else could take the lease", at_any_mode=False),
        stored='{kubectl} patch lease {name} --type=merge -p \'{"spec":{"leaseDurationSeconds":15}}\'',
    ),
    Rule(
        id="duration-shortened",
        check=held_lease_is_not_shortened,
        resources=LEASES,
        operations=UPDATE,
        events=TOUCHED,
        standard=Mode.WARN,
        source="ours: no known client does it, and it makes a live lease count as expired",
        why="Cutting the duration, or removing `renewTime`, makes a live lease count as expired, the first step of "
        "a steal.",
        who="People who repair a lease by hand. No known client.",
        fix="Renew in the same write (a renewal that lowers the duration is allowed), or release the lease instead.",
        attack=Attack("cut a lease that another held"),
    ),
)
