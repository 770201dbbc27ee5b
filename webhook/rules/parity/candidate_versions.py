"""The versions of a LeaseCandidate. One bad version is one finding: what would follow from it is left out.

Source: kubernetes `pkg/apis/coordination/validation/validation.go`, ValidateLeaseCandidateSpec; v1alpha1 as of 1.31.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from semver import Version

from webhook.api import semantic_version
from webhook.api.field import invalid, required
from webhook.rules.change import CandidateChange
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.rule import CANDIDATES, WRITES, Rule
from webhook.rules.strategy_name import OLDEST_EMULATION_VERSION
from webhook.rules.well_known import FIRST_CANDIDATE_VERSION

BINARY_VERSION: Final = "spec.binaryVersion"
EMULATION_VERSION: Final = "spec.emulationVersion"


def binary_version_is_a_version(change: CandidateChange) -> Iterable[Finding]:
    """spec.binaryVersion must be a semantic version without a leading v; v1alpha1 may leave it out."""
    text = change.new_spec.binary_version
    if text:
        return _not_a_version(BINARY_VERSION, text)
    return NOTHING if change.request.version == FIRST_CANDIDATE_VERSION else (Finding(required(BINARY_VERSION)),)


def emulation_version_is_a_version(change: CandidateChange) -> Iterable[Finding]:
    """spec.emulationVersion must be a semantic version without a leading v when set."""
    text = change.new_spec.emulation_version
    return _not_a_version(EMULATION_VERSION, text) if text else NOTHING


def emulation_is_not_above_binary(change: CandidateChange) -> Iterable[Finding]:
    """spec.binaryVersion must be greater than or equal to spec.emulationVersion, by semver precedence."""
    binary, emulation = _read(change.new_spec.binary_version), _read(change.new_spec.emulation_version)
    if binary is None or emulation is None or binary >= emulation:
        return NOTHING
    detail = "must be greater than or equal to `emulationVersion`"
    return (Finding(invalid(BINARY_VERSION, change.new_spec.binary_version, detail)),)


def oldest_emulation_version_has_versions(change: CandidateChange) -> Iterable[Finding]:
    """spec.emulationVersion must be set with OldestEmulationVersion (v1alpha1: both), and not to 0.0.0."""
    fields = [(EMULATION_VERSION, change.new_spec.emulation_version)]
    strategies = [change.new_spec.strategy]
    if change.request.version == FIRST_CANDIDATE_VERSION:
        fields.append((BINARY_VERSION, change.new_spec.binary_version))
        strategies = change.new_spec.preferred_strategies or []
    if OLDEST_EMULATION_VERSION not in strategies:
        return NOTHING
    detail = f"must be specified when `strategy` is '{OLDEST_EMULATION_VERSION}'"
    return tuple(Finding(required(field, detail)) for field, text in fields if not text or _is_zero(text))


def _not_a_version(field: str, text: str) -> Iterable[Finding]:
    if _read(text) is not None:
        return NOTHING
    return (Finding(invalid(field, text, "must be a valid semantic version")),)


def _is_zero(text: str) -> bool:
    version = _read(text)
    return version is not None and version == semantic_version.ZERO


def _read(text: str | None) -> Version | None:
    try:
        return semantic_version.parse(text) if text else None
    except ValueError:
        return None


_rule = partial(
    Rule,
    resources=CANDIDATES,
    operations=WRITES,
    source="kubernetes pkg/apis/coordination/validation/validation.go, ValidateLeaseCandidateSpec",
    parity=True,
)
RULES: Final = (
    _rule("candidate-binary-version", binary_version_is_a_version),
    _rule("candidate-emulation-version", emulation_version_is_a_version),
    _rule("candidate-version-order", emulation_is_not_above_binary),
    _rule("candidate-versions-required", oldest_emulation_version_has_versions),
)
