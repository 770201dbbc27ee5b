"""leaseTransitions: how the count of holders may move."""

from collections.abc import Iterable
from typing import Final

from webhook.api.field import invalid
from webhook.api.verdict import Mode
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.rule import LEASES, NOT_A_RENEWAL, NOTHING, UPDATE, WRITES, Finding, Rule

_FIELD: Final = "spec.leaseTransitions"
_TAKEN: Final = frozenset({Event.TAKEOVER, Event.STEAL})


def transitions_do_not_jump(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must not rise by more than 1 to an absurd number.

    client-go writes int32(count + 1): after 2147483647 every takeover is refused for ever.
    """
    new = change.new.lease_transitions
    if new is None:
        return NOTHING
    old = change.old.lease_transitions or 0
    limits = change.limits.transitions_jump
    if new <= old + 1:
        return NOTHING
    if new >= limits.deny_from:
        return (
            Finding(
                invalid(_FIELD, new, f"must not jump to {limits.deny_from} or more; write the old value {old} plus 1")
            ),
        )
    if change.is_create or new <= old + limits.warn_jump_above:
        return NOTHING
    return (Finding(invalid(_FIELD, new, f"must not rise by more than 1 from {old}"), tier=Mode.WARN),)


def transitions_do_not_fall(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must not fall or be removed."""
    new, old = change.new.lease_transitions, change.old.lease_transitions
    if old is None or (new is not None and new >= old):
        return NOTHING
    return (Finding(invalid(_FIELD, new, f"must not be less than the old value {old}")),)


def transitions_count_holders(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must rise by 1 with each new holder, and only then."""
    rise = (change.new.lease_transitions or 0) - (change.old.lease_transitions or 0)
    if change.event in _TAKEN:
        if rise == 1:
            return NOTHING
        return (Finding(invalid(_FIELD, change.new.lease_transitions, "must rise by 1 with a new holder")),)
    if rise == 1 and change.event is not Event.CLAIM:
        return (Finding(invalid(_FIELD, change.new.lease_transitions, "must not rise without a new holder")),)
    return NOTHING


RULES = (
    Rule(
        id="transitions-jump",
        check=transitions_do_not_jump,
        resources=LEASES,
        operations=WRITES,
        events=NOT_A_RENEWAL,
        source="ours: a real counter cannot get there; client-go's MultiLock jumps by small numbers",
    ),
    Rule(
        id="transitions-decrease",
        check=transitions_do_not_fall,
        resources=LEASES,
        operations=UPDATE,
        events=NOT_A_RENEWAL,
        source="ours: fabric8 up to 6.0, kubert and Pekko do it, so never a denial by default",
    ),
    Rule(
        id="transitions-mismatch",
        check=transitions_count_holders,
        resources=LEASES,
        operations=UPDATE,
        events=NOT_A_RENEWAL,
        source="ours: the coordinated election and every release leave the count alone, so only audited",
    ),
)
