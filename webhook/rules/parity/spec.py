"""The specs of a Lease and of a LeaseCandidate, as Kubernetes validates them. One bad version is one finding.

Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateLeaseSpec and ValidateLeaseCandidateSpec;
v1alpha1 as of 1.31.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from semver import Version

from webhook.api import formats, semver
from webhook.api.field import FieldError, each_invalid, forbidden, immutable, invalid, not_supported, required
from webhook.rules.change import FIRST_CANDIDATE_VERSION, CandidateChange, LeaseChange
from webhook.rules.rule import (
    CANDIDATES,
    CORRECT_IT,
    LEASES,
    NO_CLIENT,
    NO_FINDINGS,
    REFUSED_BY_API_SERVER,
    UPDATE,
    WRITES,
    Finding,
    Rule,
    first_findings,
)

OLDEST_EMULATION_VERSION: Final = "OldestEmulationVersion"


def wrong_strategy(field: str, strategy: str) -> Iterator[FieldError]:
    """What is wrong with a strategy: it is a known one, or a qualified name with a slash.

    Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateCoordinatedLeaseStrategy, which appends
    `.strategy` to a path that ends so already; here the path is that of the field.
    """
    if strategy == OLDEST_EMULATION_VERSION:
        return
    if "/" not in strategy:
        yield not_supported(field, strategy, (OLDEST_EMULATION_VERSION,))
    for message in formats.qualified_name(strategy) if "/" in strategy else ():
        yield invalid(field, strategy, message)


def duration_is_positive(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseDurationSeconds must be greater than 0 when set."""
    seconds = change.new_spec.lease_duration_seconds
    if seconds is None or seconds > 0:
        return NO_FINDINGS
    return (Finding(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")),)


def transitions_are_not_negative(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must be greater than or equal to 0 when set."""
    transitions = change.new_spec.lease_transitions
    if transitions is None or transitions >= 0:
        return NO_FINDINGS
    return (Finding(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")),)


def lease_strategy_is_known(change: LeaseChange) -> Iterable[Finding]:
    """spec.strategy must be OldestEmulationVersion or a qualified name with a slash when set."""
    strategy = change.new_spec.strategy
    if strategy is None:
        return NO_FINDINGS
    return tuple(Finding(error) for error in wrong_strategy("spec.strategy", strategy))


def preferred_holder_has_a_strategy(change: LeaseChange) -> Iterable[Finding]:
    """spec.preferredHolder may be set only together with spec.strategy."""
    if not change.new_spec.preferred_holder or change.new_spec.strategy:
        return NO_FINDINGS
    return (Finding(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")),)


_lease_rule = partial(
    Rule,
    resources=LEASES,
    operations=WRITES,
    source="kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseSpec",
    parity=True,
    stored=CORRECT_IT,
)
_LEASE_RULES: Final = (
    _lease_rule(
        "lease-duration",
        duration_is_positive,
        why=REFUSED_BY_API_SERVER,
        who="Electors configured with less than one second, which client-go writes as 0.",
        fix="Configure a lease duration of whole seconds; 15 is the default of client-go.",
    ),
    _lease_rule(
        "lease-transitions",
        transitions_are_not_negative,
        why=REFUSED_BY_API_SERVER
        + " A counter at 2147483647 makes client-go write -2147483648, which is always refused.",
        who="Electors of a lease whose counter was raised to the maximum.",
        fix="Set `leaseTransitions` back to a small number, once, by hand: `kubectl edit lease`.",
    ),
    _lease_rule(
        "lease-strategy",
        lease_strategy_is_known,
        why=REFUSED_BY_API_SERVER,
        who=NO_CLIENT,
        fix="Leave `strategy` out, or write `OldestEmulationVersion` or a name of your own such as `example.com/mine`.",
    ),
    _lease_rule(
        "lease-preferred-holder",
        preferred_holder_has_a_strategy,
        why=REFUSED_BY_API_SERVER,
        who=NO_CLIENT,
        fix="Leave `preferredHolder` out; only the coordinated election sets it, together with `strategy`.",
    ),
)


LEASE_NAME: Final = "spec.leaseName"
STRATEGY: Final = "spec.strategy"
PREFERRED_STRATEGIES: Final = "spec.preferredStrategies"


def lease_name_is_set(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be set."""
    return NO_FINDINGS if change.new_spec.lease_name else (Finding(required(LEASE_NAME)),)


def lease_name_is_kept(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName may not change."""
    name = change.new_spec.lease_name or ""
    return NO_FINDINGS if name == (change.old_spec.lease_name or "") else (Finding(immutable(LEASE_NAME, name)),)


def lease_name_is_valid(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be a valid name of a Lease when it is set or changed."""
    name = change.new_spec.lease_name
    if not name or name == change.old_spec.lease_name:
        return NO_FINDINGS
    wrong = formats.dns_subdomain(name)
    return tuple(Finding(error) for error in each_invalid(LEASE_NAME, name, wrong)) if wrong else NO_FINDINGS


def strategy_is_known(change: CandidateChange) -> Iterable[Finding]:
    """spec.strategy must be OldestEmulationVersion or a qualified name with a slash; v1alpha1 has none."""
    if change.request.version == FIRST_CANDIDATE_VERSION:
        return NO_FINDINGS
    strategy = change.new_spec.strategy
    if not strategy:
        return (Finding(required(STRATEGY)),)
    return tuple(Finding(error) for error in wrong_strategy(STRATEGY, strategy))


def preferred_strategies_are_known(change: CandidateChange) -> Iterable[Finding]:
    """spec.preferredStrategies of v1alpha1 must name at least one strategy, and known or qualified ones only."""
    if change.request.version != FIRST_CANDIDATE_VERSION:
        return NO_FINDINGS
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
        return NO_FINDINGS
    seen: dict[str | None, int] = {}
    return first_findings(
        invalid(f"{PREFERRED_STRATEGIES}[{index}]", strategy or "", "must not name a strategy twice")
        for index, strategy in enumerate(strategies)
        if seen.setdefault(strategy, index) != index
    )


_candidate_rule = partial(
    Rule,
    resources=CANDIDATES,
    operations=WRITES,
    source="kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseCandidateSpec",
    parity=True,
    stored=CORRECT_IT,
)
_REFERENCE: Final = "API reference of LeaseCandidate"

_CANDIDATE_RULES: Final = (
    _candidate_rule(
        "candidate-lease-name",
        lease_name_is_set,
        why=REFUSED_BY_API_SERVER,
        who=NO_CLIENT,
        fix="Set `spec.leaseName`.",
    ),
    _candidate_rule(
        "candidate-lease-name-immutable",
        lease_name_is_kept,
        operations=UPDATE,
        why=REFUSED_BY_API_SERVER,
        who="Components that were configured with another lease name under the same candidate name.",
        fix="Delete the LeaseCandidate and let the component create it again.",
    ),
    _candidate_rule(
        "candidate-lease-name-format",
        lease_name_is_valid,
        source=f"{_REFERENCE}: leaseName names a Lease",
        why="The API server stores any text. The election then fails to create a Lease of that name, and no leader "
        "is elected.",
        who=NO_CLIENT,
        fix="Use the name of the Lease: lowercase letters, digits, `-` and `.`.",
    ),
    _candidate_rule(
        "candidate-strategy",
        strategy_is_known,
        why=REFUSED_BY_API_SERVER,
        who="Manifests for v1alpha1, which has `preferredStrategies`, sent as v1alpha2 or v1beta1.",
        fix="Write `strategy: OldestEmulationVersion`, or a name of your own such as `example.com/mine`.",
    ),
    _candidate_rule(
        "candidate-preferred-strategies",
        preferred_strategies_are_known,
        why="The API reference of v1alpha1 requires the list; the code of 1.31 does not check it, and the election "
        "cannot choose.",
        who=NO_CLIENT,
        fix="Write `preferredStrategies: [OldestEmulationVersion]`.",
    ),
    _candidate_rule(
        "candidate-strategies-unique",
        preferred_strategies_are_unique,
        source=f"{_REFERENCE}: a cycle stops the election",
        why="Kubernetes 1.31 orders the strategies of all candidates; one that follows itself is a cycle, and the "
        "election stops.",
        who=NO_CLIENT,
        fix="Name each strategy once.",
    ),
)


BINARY_VERSION: Final = "spec.binaryVersion"
EMULATION_VERSION: Final = "spec.emulationVersion"


def binary_version_is_a_version(change: CandidateChange) -> Iterable[Finding]:
    """spec.binaryVersion must be a semantic version without a leading v; v1alpha1 may leave it out."""
    text = change.new_spec.binary_version
    if text:
        return _not_a_version(BINARY_VERSION, text)
    return NO_FINDINGS if change.request.version == FIRST_CANDIDATE_VERSION else (Finding(required(BINARY_VERSION)),)


def emulation_version_is_a_version(change: CandidateChange) -> Iterable[Finding]:
    """spec.emulationVersion must be a semantic version without a leading v when set."""
    text = change.new_spec.emulation_version
    return _not_a_version(EMULATION_VERSION, text) if text else NO_FINDINGS


def emulation_is_not_above_binary(change: CandidateChange) -> Iterable[Finding]:
    """spec.binaryVersion must be greater than or equal to spec.emulationVersion, by semver precedence."""
    texts = change.new_spec.binary_version, change.new_spec.emulation_version
    if None in texts or texts[0] == texts[1]:
        return NO_FINDINGS
    binary, emulation = map(_read, texts)
    if binary is None or emulation is None or binary >= emulation:
        return NO_FINDINGS
    detail = "must be greater than or equal to `emulationVersion`"
    return (Finding(invalid(BINARY_VERSION, change.new_spec.binary_version, detail)),)


def oldest_emulation_version_has_versions(change: CandidateChange) -> Iterable[Finding]:
    """spec.emulationVersion must be set with OldestEmulationVersion (v1alpha1: both), and not to 0.0.0."""
    fields = [(EMULATION_VERSION, change.new_spec.emulation_version)]
    strategies: list[str | None] = [change.new_spec.strategy]
    if change.request.version == FIRST_CANDIDATE_VERSION:
        fields.append((BINARY_VERSION, change.new_spec.binary_version))
        strategies = change.new_spec.preferred_strategies or []
    if OLDEST_EMULATION_VERSION not in strategies:
        return NO_FINDINGS
    detail = f"must be specified when `strategy` is '{OLDEST_EMULATION_VERSION}'"
    return tuple(Finding(required(field, detail)) for field, text in fields if not text or _is_zero(text))


def _not_a_version(field: str, text: str) -> Iterable[Finding]:
    if _read(text) is not None:
        return NO_FINDINGS
    return (Finding(invalid(field, text, "must be a valid semantic version")),)


def _is_zero(text: str) -> bool:
    version = _read(text)
    return version is not None and version == semver.ZERO


def _read(text: str | None) -> Version | None:
    return semver.parse(text) if text else None


RULES: Final = (
    *_LEASE_RULES,
    *_CANDIDATE_RULES,
    _candidate_rule(
        "candidate-binary-version",
        binary_version_is_a_version,
        why=REFUSED_BY_API_SERVER,
        who="Versions copied from an image tag: `v1.36.3` instead of `1.36.3`, or `1.36` instead of `1.36.0`.",
        fix="Write three numbers without a leading v.",
    ),
    _candidate_rule(
        "candidate-emulation-version",
        emulation_version_is_a_version,
        why=REFUSED_BY_API_SERVER,
        who="Versions copied from an image tag: `v1.36.0` instead of `1.36.0`, or `1.36` instead of `1.36.0`.",
        fix="Write three numbers without a leading v.",
    ),
    _candidate_rule(
        "candidate-version-order",
        emulation_is_not_above_binary,
        why=REFUSED_BY_API_SERVER,
        who="Manifests with the two versions swapped.",
        fix="`emulationVersion` may be at most `binaryVersion`.",
    ),
    _candidate_rule(
        "candidate-versions-required",
        oldest_emulation_version_has_versions,
        why=REFUSED_BY_API_SERVER,
        who="Manifests with the strategy OldestEmulationVersion and no `emulationVersion`.",
        fix="Set `emulationVersion`, and in v1alpha1 `binaryVersion` as well.",
    ),
)
