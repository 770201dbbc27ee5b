"""The fields of a Lease, each by itself, as ValidateLeaseSpec of Kubernetes validates them."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from webhook.api.field import forbidden, invalid
from webhook.rules.change import LeaseChange
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.rule import LEASES, WRITES, Rule
from webhook.rules.strategy_name import wrong_strategy


def duration_is_positive(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseDurationSeconds must be greater than 0 when set."""
    seconds = change.new_spec.lease_duration_seconds
    if seconds is None or seconds > 0:
        return NOTHING
    return (Finding(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")),)


def transitions_are_not_negative(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must be greater than or equal to 0 when set."""
    transitions = change.new_spec.lease_transitions
    if transitions is None or transitions >= 0:
        return NOTHING
    return (Finding(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")),)


def strategy_is_known(change: LeaseChange) -> Iterable[Finding]:
    """spec.strategy must be OldestEmulationVersion or a qualified name with a slash when set."""
    strategy = change.new_spec.strategy
    if strategy is None:
        return NOTHING
    return tuple(Finding(error) for error in wrong_strategy("spec.strategy", strategy))


def preferred_holder_has_a_strategy(change: LeaseChange) -> Iterable[Finding]:
    """spec.preferredHolder may be set only together with spec.strategy."""
    if not change.new_spec.preferred_holder or change.new_spec.strategy:
        return NOTHING
    return (Finding(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")),)


_rule = partial(
    Rule,
    resources=LEASES,
    operations=WRITES,
    source="kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseSpec",
    parity=True,
)
RULES: Final = (
    _rule("lease-duration", duration_is_positive),
    _rule("lease-transitions", transitions_are_not_negative),
    _rule("lease-strategy", strategy_is_known),
    _rule("lease-preferred-holder", preferred_holder_has_a_strategy),
)
