"""The specs of a Lease and of a LeaseCandidate, as Kubernetes validates them. One bad version is one finding.

Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateLeaseSpec and ValidateLeaseCandidateSpec;
for LeaseCandidate v1alpha1 as of 1.31.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.admission.rules.change import CandidateChange, Condition, LeaseChange
from webhook.admission.rules.finding import NO_FINDINGS, Finding, take_first_findings
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.occasions import CANDIDATES, LEASES, UPDATE, WRITES
from webhook.admission.rules.rule import make_parity_rule
from webhook.admission.rules.texts import Texts
from webhook.kubernetes import formats
from webhook.kubernetes.field import FieldError, each_invalid, forbidden, immutable, invalid, not_supported, required
from webhook.kubernetes.objects import OLDEST_EMULATION_VERSION, LeaseCandidateSpec
from webhook.kubernetes.versions import parse_version

_LEASE_SPEC: Final = "kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseSpec"
_CANDIDATE_SPEC: Final = "kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseCandidateSpec"


def list_strategy_errors(field: str, strategy: str) -> Iterator[FieldError]:
    """Yield what is wrong with a strategy: it is a known one, or a qualified name with a slash.

    Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateCoordinatedLeaseStrategy, which appends
    `.strategy` to a path that ends so already; here the path is that of the field.
    """
    if strategy == OLDEST_EMULATION_VERSION:
        return
    if "/" in strategy:
        yield from each_invalid(field, strategy, formats.qualified_name(strategy))
    else:
        yield not_supported(field, strategy, (OLDEST_EMULATION_VERSION,))


def lease_duration(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseDurationSeconds must be greater than 0 when set."""
    seconds = change.new_spec.lease_duration_seconds
    if seconds is None or seconds > 0:
        return NO_FINDINGS
    return (Finding(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")),)


LEASE_DURATION: Final = make_parity_rule(
    check=lease_duration,
    resources=LEASES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_LEASE_SPEC,
        why="Others wait for so long after the last renewal before they take over. With 0 or less the holder has the "
        "lease for no time at all, so any replica may take it at any moment, and two lead.",
        who="Electors configured with less than one second, which client-go writes as 0.",
        fix="Configure a lease duration of whole seconds; 15 is the default of client-go.",
    ),
    reads=("spec.leaseDurationSeconds",),
)


def lease_transitions(change: LeaseChange) -> Iterable[Finding]:
    """spec.leaseTransitions must be greater than or equal to 0 when set."""
    transitions = change.new_spec.lease_transitions
    if transitions is None or transitions >= 0:
        return NO_FINDINGS
    return (Finding(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")),)


LEASE_TRANSITIONS: Final = make_parity_rule(
    check=lease_transitions,
    resources=LEASES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_LEASE_SPEC,
        why="The count grows by 1 with each holder. At 2147483647 client-go writes -2147483648 as the next one, which "
        "is refused, so no takeover succeeds again.",
        who="Electors of a lease whose counter was raised to the maximum.",
        fix="Set `leaseTransitions` back to a small number, once, by hand: `kubectl edit lease`.",
    ),
    reads=("spec.leaseTransitions",),
)


def lease_strategy(change: LeaseChange) -> Iterable[Finding]:
    """spec.strategy must be OldestEmulationVersion or a qualified name with a slash when set."""
    strategy = change.new_spec.strategy
    if strategy is None:
        return NO_FINDINGS
    return tuple(Finding(error) for error in list_strategy_errors("spec.strategy", strategy))


LEASE_STRATEGY: Final = make_parity_rule(
    check=lease_strategy,
    resources=LEASES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_LEASE_SPEC,
        why="The strategy says which controller chooses the holder. With one that no controller knows, no one does, "
        "and the lease stays without a leader.",
        fix="Leave `strategy` out, or write `OldestEmulationVersion` or a name of your own such as `example.com/mine`.",
    ),
    reads=("spec.strategy",),
)


def lease_preferred_holder(change: LeaseChange) -> Iterable[Finding]:
    """spec.preferredHolder may be set only together with spec.strategy."""
    if not change.new_spec.preferred_holder or change.new_spec.strategy:
        return NO_FINDINGS
    return (Finding(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")),)


LEASE_PREFERRED_HOLDER: Final = make_parity_rule(
    check=lease_preferred_holder,
    resources=LEASES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_LEASE_SPEC,
        why="`preferredHolder` asks the holder to make way for a better candidate, which only a coordinated election "
        "knows. No other election reads it.",
        fix="Leave `preferredHolder` out; only the coordinated election sets it, together with `strategy`.",
    ),
    reads=("spec.strategy", "spec.preferredHolder"),
)


LEASE_NAME: Final = "spec.leaseName"


def candidate_lease_name(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be set."""
    return NO_FINDINGS if change.new_spec.lease_name else (Finding(required(LEASE_NAME)),)


CANDIDATE_LEASE_NAME: Final = make_parity_rule(
    check=candidate_lease_name,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="A candidate without a lease takes part in no election, so its replica never leads, and nothing says why.",
        fix="Set `spec.leaseName`.",
    ),
    reads=("spec.leaseName",),
)


def candidate_lease_name_immutable(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName may not change."""
    name = change.new_spec.lease_name or ""
    return NO_FINDINGS if name == (change.old_spec.lease_name or "") else (Finding(immutable(LEASE_NAME, name)),)


CANDIDATE_LEASE_NAME_IMMUTABLE: Final = make_parity_rule(
    check=candidate_lease_name_immutable,
    resources=CANDIDATES,
    operations=UPDATE,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="The API server elects by lease. A candidate that changed its lease during an election could be made the "
        "leader of one that it no longer contends for.",
        who="Components that were configured with another lease name under the same candidate name.",
        fix="Delete the LeaseCandidate and let the component create it again.",
    ),
    reads=("spec.leaseName",),
)


def candidate_lease_name_format(change: CandidateChange) -> Iterable[Finding]:
    """spec.leaseName must be a valid name of a Lease when it is set or changed."""
    name = change.new_spec.lease_name
    if not name or name == change.old_spec.lease_name:
        return NO_FINDINGS
    wrong = formats.dns_subdomain(name)
    return tuple(Finding(error) for error in each_invalid(LEASE_NAME, name, wrong)) if wrong else NO_FINDINGS


CANDIDATE_LEASE_NAME_FORMAT: Final = make_parity_rule(
    check=candidate_lease_name_format,
    resources=CANDIDATES,
    operations=WRITES,
    texts=Texts(
        source="API reference of LeaseCandidate: leaseName names a Lease",
        why="The API server stores any text. The election then fails to create a Lease of that name, and no leader is "
        "elected.",
        fix="Use the name of the Lease: lowercase letters, digits, `-` and `.`.",
        upstream="no: it stores a `leaseName` that no Lease can have (1.36.3, 1.31.14)",
    ),
    reads=("spec.leaseName",),
    in_cel=RuleInCel(
        broken="""
        variables.leaseName != '' && variables.leaseName != variables.oldSpec.?leaseName.orValue('') &&
        (size(variables.leaseName) > 253 ||
        !variables.leaseName.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))
        """,
        message="spec.leaseName: Invalid value: {!variables.leaseName}: must be a valid name of a Lease",
        lacks="The text does not say what a valid name is.",
    ),
)


def candidate_strategy(change: CandidateChange) -> Iterable[Finding]:
    """spec.strategy must be OldestEmulationVersion or a qualified name with a slash; v1alpha1 has none."""
    spec = change.new_spec
    if spec.schema.is_list:
        return NO_FINDINGS
    return _check_strategies(spec) if spec.strategies else (Finding(required(spec.schema.make_path_of_strategy(0))),)


CANDIDATE_STRATEGY: Final = make_parity_rule(
    check=candidate_strategy,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="The strategy of the candidates with the highest binaryVersion counts for all of the lease. Without one, "
        "or with one that no controller handles, no one is elected.",
        who="Manifests for v1alpha1 (Kubernetes 1.31), which has `preferredStrategies`, sent as v1alpha2 or v1beta1.",
        fix="Write `strategy: OldestEmulationVersion`, or a name of your own such as `example.com/mine`.",
    ),
    reads=("spec.strategy",),
)


def candidate_preferred_strategies(change: CandidateChange) -> Iterable[Finding]:
    """spec.preferredStrategies of v1alpha1 must name at least one strategy, and known or qualified ones only."""
    spec = change.new_spec
    if not spec.schema.is_list:
        return NO_FINDINGS
    if spec.strategies:
        return _check_strategies(spec)
    return (Finding(required(f"spec.{spec.schema.strategies}", "must contain at least one strategy")),)


CANDIDATE_PREFERRED_STRATEGIES: Final = make_parity_rule(
    check=candidate_preferred_strategies,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="The API reference of v1alpha1 requires the list, and the code of 1.31 does not check it. With the "
        "feature gate CoordinatedLeaderElection, the election reads the last element of the empty list, and "
        "kube-apiserver 1.31 ends with a panic, again after each start, until the candidate is deleted from etcd.",
        fix="Write `preferredStrategies: [OldestEmulationVersion]`.",
        upstream="in part: 1.31.14 refuses an unknown strategy but stores an empty list",
    ),
    reads=("spec.preferredStrategies",),
    in_cel=RuleInCel(
        broken="""
        request.operation != "DELETE" && request.kind.version == "v1alpha1" && size(variables.strategies) == 0
        """,
        message="spec.preferredStrategies: Required value: must contain at least one strategy",
        lacks="The API server validates each strategy before it evaluates a policy.",
    ),
)


MAX_STRATEGIES: Final = 10_000
"""Strategies of one candidate that are looked at; an API server has looked at all of them before it calls us."""


def _check_strategies(spec: LeaseCandidateSpec) -> Iterable[Finding]:
    return take_first_findings(
        error
        for index, strategy in enumerate(spec.strategies[:MAX_STRATEGIES])
        for error in list_strategy_errors(spec.schema.make_path_of_strategy(index), strategy)
    )


def candidate_strategies_unique(change: CandidateChange) -> Iterable[Finding]:
    """spec.preferredStrategies of v1alpha1 may not name a strategy twice when it is set or changed."""
    spec = change.new_spec
    if len(spec.strategies) < 2 or spec.strategies == change.old_spec.strategies:
        return NO_FINDINGS
    first: dict[str, int] = {}
    return take_first_findings(
        invalid(spec.schema.make_path_of_strategy(index), strategy, "must not name a strategy twice")
        for index, strategy in enumerate(spec.strategies)
        if first.setdefault(strategy, index) != index
    )


CANDIDATE_STRATEGIES_UNIQUE: Final = make_parity_rule(
    check=candidate_strategies_unique,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source="API reference of LeaseCandidate v1alpha1: strategies that precede each other stop the election",
        why="Kubernetes 1.31 orders the strategies of all candidates of a lease. A strategy that precedes itself has "
        "no order, and no leader is elected until the list is corrected.",
        fix="Name each strategy once.",
        upstream="no: 1.31.14 stores a list that names a strategy twice",
    ),
    reads=("spec.preferredStrategies",),
    in_cel=RuleInCel(
        broken="size(variables.repeated) > 0",
        message="spec.preferredStrategies: Invalid value: {!variables.repeated[0]}: must not name a strategy twice",
        lacks="A list of more than 50 strategies is not looked at.",
        variables={
            "repeated": """
            size(variables.strategies) < 2 || size(variables.strategies) > 50
            || variables.strategies == variables.oldSpec.?preferredStrategies.orValue([]) ? []
            : variables.strategies.filter(s, variables.strategies.filter(t, t == s).size() > 1)
            """,
        },
    ),
)


BINARY_VERSION: Final = "spec.binaryVersion"
EMULATION_VERSION: Final = "spec.emulationVersion"


def candidate_binary_version(change: CandidateChange) -> Iterable[Finding]:
    """spec.binaryVersion must be a semantic version without a leading v; v1alpha1 may leave it out."""
    spec = change.new_spec
    if spec.binary_version:
        return _check_version(BINARY_VERSION, spec.binary_version)
    return (Finding(required(BINARY_VERSION)),) if spec.schema.needs_binary_version else NO_FINDINGS


CANDIDATE_BINARY_VERSION: Final = make_parity_rule(
    check=candidate_binary_version,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="The candidates with the highest binaryVersion decide on the strategy, and among equal emulation versions "
        "the lowest binaryVersion leads. What is not a version counts as 0.0.0.",
        who="Versions copied from an image tag: `v1.36.3` instead of `1.36.3`, or `1.36` instead of `1.36.0`.",
        fix="Write three numbers without a leading v.",
    ),
    reads=("spec.binaryVersion",),
)


def candidate_emulation_version(change: CandidateChange) -> Iterable[Finding]:
    """spec.emulationVersion must be a semantic version without a leading v when set."""
    text = change.new_spec.emulation_version
    return _check_version(EMULATION_VERSION, text) if text else NO_FINDINGS


CANDIDATE_EMULATION_VERSION: Final = make_parity_rule(
    check=candidate_emulation_version,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="OldestEmulationVersion elects the candidate with the lowest emulationVersion, so that during an upgrade "
        "the leader does nothing that an old replica could not continue. A candidate whose version cannot be read is "
        "never elected.",
        who="Versions copied from an image tag: `v1.36.0` instead of `1.36.0`, or `1.36` instead of `1.36.0`.",
        fix="Write three numbers without a leading v.",
    ),
    reads=("spec.emulationVersion",),
)


def candidate_version_order(change: CandidateChange) -> Iterable[Finding]:
    """spec.binaryVersion must be greater than or equal to spec.emulationVersion, by semver precedence."""
    binary = parse_version(change.new_spec.binary_version or "")
    emulation = parse_version(change.new_spec.emulation_version or "")
    if binary is None or emulation is None or binary >= emulation:
        return NO_FINDINGS
    detail = "must be greater than or equal to `emulationVersion`"
    return (Finding(invalid(BINARY_VERSION, change.new_spec.binary_version, detail)),)


CANDIDATE_VERSION_ORDER: Final = make_parity_rule(
    check=candidate_version_order,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="A program cannot behave as a version that is newer than itself. With the two swapped, the wrong replica "
        "is elected.",
        who="Manifests with the two versions swapped.",
        fix="`emulationVersion` may be at most `binaryVersion`.",
    ),
    reads=("spec.binaryVersion", "spec.emulationVersion"),
)


def candidate_versions_required(change: CandidateChange) -> Iterable[Finding]:
    """spec.emulationVersion must be set with OldestEmulationVersion (v1alpha1: both), and not to 0.0.0."""
    spec = change.new_spec
    if OLDEST_EMULATION_VERSION not in spec.strategies:
        return NO_FINDINGS
    versions = [(EMULATION_VERSION, spec.emulation_version)]
    if not spec.schema.needs_binary_version:
        # In later versions another rule requires binaryVersion, whatever the strategy is.
        versions.append((BINARY_VERSION, spec.binary_version))
    detail = f"must be specified when `strategy` is '{OLDEST_EMULATION_VERSION}'"
    return tuple(Finding(required(field, detail)) for field, text in versions if not text or _is_zero(text))


CANDIDATE_VERSIONS_REQUIRED: Final = make_parity_rule(
    check=candidate_versions_required,
    resources=CANDIDATES,
    operations=WRITES,
    only_if=Condition.UNUSUAL_SPEC,
    texts=Texts(
        source=_CANDIDATE_SPEC,
        why="OldestEmulationVersion compares these versions. A candidate that lacks one is never elected, however "
        "healthy it is.",
        who="Manifests with the strategy OldestEmulationVersion and no `emulationVersion`.",
        fix="Set `emulationVersion`, and in v1alpha1 `binaryVersion` as well.",
    ),
    reads=("spec.preferredStrategies", "spec.strategy", "spec.binaryVersion", "spec.emulationVersion"),
)


def _check_version(field: str, text: str) -> Iterable[Finding]:
    if parse_version(text) is not None:
        return NO_FINDINGS
    return (Finding(invalid(field, text, "must be a valid semantic version")),)


def _is_zero(text: str) -> bool:
    # A number has no leading zeros.
    version = parse_version(text) if text.startswith("0.0.0") else None
    return version is not None and not version.prerelease
