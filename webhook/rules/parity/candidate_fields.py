"""The name and the strategies of a LeaseCandidate.

Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateLeaseCandidateSpec; v1alpha1 as of 1.31.
"""

from collections.abc import Callable, Iterable
from typing import Final

from webhook.api import formats
from webhook.api.field import invalid, required
from webhook.rules.change import CandidateChange
from webhook.rules.finding import NOTHING, Finding, first_findings
from webhook.rules.parity.object_metadata import IMMUTABLE
from webhook.rules.parity.object_name import each_invalid
from webhook.rules.rule import CANDIDATES, UPDATE, WRITES, Rule
from webhook.rules.strategy_name import wrong_strategy

LEASE_NAME: Final = "spec.leaseName"
STRATEGY: Final = "spec.strategy"
PREFERRED_STRATEGIES: Final = "spec.preferredStrategies"

FIRST_VERSION: Final = "v1alpha1"
"""The version of Kubernetes 1.31: a list of strategies, and binaryVersion need not be given."""


def lease_name_is_given(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be given."""
    return NOTHING if change.new.lease_name else (Finding(required(LEASE_NAME)),)


def lease_name_is_kept(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName may not change."""
    name = change.new.lease_name or ""
    return NOTHING if name == (change.old.lease_name or "") else (Finding(invalid(LEASE_NAME, name, IMMUTABLE)),)


def lease_name_is_legal(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be a legal name of a Lease when it is set or changed."""
    name = change.new.lease_name
    if not name or name == change.old.lease_name:
        return NOTHING
    return tuple(Finding(error) for error in each_invalid(LEASE_NAME, name, formats.dns_subdomain(name)))


def strategy_is_known(change: CandidateChange) -> Iterable[Finding]:
    """spec.strategy must be OldestEmulationVersion or a qualified name with a slash; v1alpha1 has none."""
    if change.request.version == FIRST_VERSION:
        return NOTHING
    strategy = change.new.strategy
    if not strategy:
        return (Finding(required(STRATEGY)),)
    return tuple(Finding(error) for error in wrong_strategy(STRATEGY, strategy))


def preferred_strategies_are_known(change: CandidateChange) -> Iterable[Finding]:
    """spec.preferredStrategies of v1alpha1 must name at least one strategy, and known or qualified ones only."""
    if change.request.version != FIRST_VERSION:
        return NOTHING
    strategies = change.new.preferred_strategies
    if not strategies:
        return (Finding(required(PREFERRED_STRATEGIES, "must contain at least one strategy")),)
    return first_findings(
        error
        for index, strategy in enumerate(strategies)
        for error in wrong_strategy(f"{PREFERRED_STRATEGIES}[{index}]", strategy or "")
    )


def preferred_strategies_are_unique(change: CandidateChange) -> Iterable[Finding]:
    """spec.preferredStrategies of v1alpha1 may not name a strategy twice when it is set or changed."""
    strategies = change.new.preferred_strategies
    if change.request.version != FIRST_VERSION or not strategies or strategies == change.old.preferred_strategies:
        return NOTHING
    seen: dict[str | None, int] = {}
    return first_findings(
        invalid(f"{PREFERRED_STRATEGIES}[{index}]", strategy or "", "must not name a strategy twice")
        for index, strategy in enumerate(strategies)
        if seen.setdefault(strategy, index) != index
    )


def candidate_rule(
    name: str,
    check: Callable[[CandidateChange], Iterable[Finding]],
    source: str = "kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseCandidateSpec",
) -> Rule:
    """A field rule of LeaseCandidates."""
    return Rule(
        id=name,
        check=check,
        resources=CANDIDATES,
        operations=UPDATE if check is lease_name_is_kept else WRITES,
        source=source,
        parity=True,
    )


_REFERENCE: Final = "API reference of LeaseCandidate"

RULES: Final = (
    candidate_rule("candidate-lease-name", lease_name_is_given),
    candidate_rule("candidate-lease-name-immutable", lease_name_is_kept),
    candidate_rule("candidate-lease-name-format", lease_name_is_legal, f"{_REFERENCE}: leaseName names a Lease"),
    candidate_rule("candidate-strategy", strategy_is_known),
    candidate_rule("candidate-preferred-strategies", preferred_strategies_are_known),
    candidate_rule(
        "candidate-strategies-unique", preferred_strategies_are_unique, f"{_REFERENCE}: a cycle stops the election"
    ),
)
