"""The name and the strategies of a LeaseCandidate.

Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateLeaseCandidateSpec; v1alpha1 as of 1.31.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from webhook.api import formats
from webhook.api.field import each_invalid, immutable, invalid, required
from webhook.rules.change import CandidateChange
from webhook.rules.finding import NOTHING, Finding, first_findings
from webhook.rules.rule import CANDIDATES, UPDATE, WRITES, Rule
from webhook.rules.strategy_name import wrong_strategy
from webhook.rules.well_known import FIRST_CANDIDATE_VERSION

LEASE_NAME: Final = "spec.leaseName"
STRATEGY: Final = "spec.strategy"
PREFERRED_STRATEGIES: Final = "spec.preferredStrategies"


def lease_name_is_set(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be set."""
    return NOTHING if change.new_spec.lease_name else (Finding(required(LEASE_NAME)),)


def lease_name_is_kept(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName may not change."""
    name = change.new_spec.lease_name or ""
    return NOTHING if name == (change.old_spec.lease_name or "") else (Finding(immutable(LEASE_NAME, name)),)


def lease_name_is_legal(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be a legal name of a Lease when it is set or changed."""
    name = change.new_spec.lease_name
    if not name or name == change.old_spec.lease_name:
        return NOTHING
    return tuple(Finding(error) for error in each_invalid(LEASE_NAME, name, formats.dns_subdomain(name)))


def strategy_is_known(change: CandidateChange) -> Iterable[Finding]:
    """spec.strategy must be OldestEmulationVersion or a qualified name with a slash; v1alpha1 has none."""
    if change.request.version == FIRST_CANDIDATE_VERSION:
        return NOTHING
    strategy = change.new_spec.strategy
    if not strategy:
        return (Finding(required(STRATEGY)),)
    return tuple(Finding(error) for error in wrong_strategy(STRATEGY, strategy))


def preferred_strategies_are_known(change: CandidateChange) -> Iterable[Finding]:
    """spec.preferredStrategies of v1alpha1 must name at least one strategy, and known or qualified ones only."""
    if change.request.version != FIRST_CANDIDATE_VERSION:
        return NOTHING
    strategies = change.new_spec.preferred_strategies
    if not strategies:
        return (Finding(required(PREFERRED_STRATEGIES, "must contain at least one strategy")),)
    return first_findings(
        error
        for index, strategy in enumerate(strategies)
        for error in wrong_strategy(f"{PREFERRED_STRATEGIES}[{index}]", strategy or "")
    )


def preferred_strategies_are_unique(change: CandidateChange) -> Iterable[Finding]:
    """spec.preferredStrategies of v1alpha1 may not name a strategy twice when it is set or changed."""
    strategies, before = change.new_spec.preferred_strategies, change.old_spec.preferred_strategies
    if change.request.version != FIRST_CANDIDATE_VERSION or not strategies or strategies == before:
        return NOTHING
    seen: dict[str | None, int] = {}
    return first_findings(
        invalid(f"{PREFERRED_STRATEGIES}[{index}]", strategy or "", "must not name a strategy twice")
        for index, strategy in enumerate(strategies)
        if seen.setdefault(strategy, index) != index
    )


_rule = partial(
    Rule,
    resources=CANDIDATES,
    operations=WRITES,
    source="kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseCandidateSpec",
    parity=True,
)
_REFERENCE: Final = "API reference of LeaseCandidate"

RULES: Final = (
    _rule("candidate-lease-name", lease_name_is_set),
    _rule("candidate-lease-name-immutable", lease_name_is_kept, operations=UPDATE),
    _rule("candidate-lease-name-format", lease_name_is_legal, source=f"{_REFERENCE}: leaseName names a Lease"),
    _rule("candidate-strategy", strategy_is_known),
    _rule("candidate-preferred-strategies", preferred_strategies_are_known),
    _rule(
        "candidate-strategies-unique",
        preferred_strategies_are_unique,
        source=f"{_REFERENCE}: a cycle stops the election",
    ),
)
