"""The rules, listed by hand in the order in which a verdict has their findings; each stands beside its check."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from webhook.admission.rules.checks import Checks
from webhook.admission.rules.election import (
    acquire_time,
    apiserver_lease,
    coordinated,
    deletion,
    duration,
    foreign_writer,
    holder_identity,
    identity_binding,
    missing_stamps,
    node_lease,
    owner_references,
    release,
    renew_time,
    renewal_stamp,
    takeover,
    transitions,
    unreadable_time,
)
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.parity import metadata, spec
from webhook.admission.rules.rule import Rule


def index_rules(rules: Iterable[Rule]) -> dict[str, Rule]:
    """Return rules by their ids; raises ValueError if two of them have one id, or one type of numbers."""
    by_id: dict[str, Rule] = {}
    by_limits: dict[type[Struct], Rule] = {}
    for rule in rules:
        if rule.id in by_id:
            raise ValueError(
                f"{_name_check(by_id[rule.id])} and {_name_check(rule)} would both be {rule.id}: list each once, or "
                "rename a check"
            )
        by_id[rule.id] = rule
        if rule.limits in by_limits:
            raise ValueError(
                f"{by_limits[rule.limits].id} and {rule.id} have the same numbers {rule.limits.__name__}: a policy "
                "sets numbers by their type, so derive a type for each"
            )
        if rule.limits:
            by_limits[rule.limits] = rule
    return by_id


def _name_check(rule: Rule) -> str:
    return f"{rule.check.__module__}.{rule.check.__name__}"


RULES_IN_ORDER: Final = (
    metadata.OBJECT_NAME,
    metadata.METADATA_IMMUTABLE,
    metadata.OBJECT_METADATA,
    spec.LEASE_DURATION,
    spec.LEASE_TRANSITIONS,
    spec.LEASE_STRATEGY,
    spec.LEASE_PREFERRED_HOLDER,
    spec.CANDIDATE_LEASE_NAME,
    spec.CANDIDATE_LEASE_NAME_IMMUTABLE,
    spec.CANDIDATE_LEASE_NAME_FORMAT,
    spec.CANDIDATE_STRATEGY,
    spec.CANDIDATE_PREFERRED_STRATEGIES,
    spec.CANDIDATE_STRATEGIES_UNIQUE,
    spec.CANDIDATE_BINARY_VERSION,
    spec.CANDIDATE_EMULATION_VERSION,
    spec.CANDIDATE_VERSION_ORDER,
    spec.CANDIDATE_VERSIONS_REQUIRED,
    metadata.REQUEST_OPTIONS,
    unreadable_time.TIME_UNREADABLE,
    renewal_stamp.RENEWAL_STAMP_TAMPERED,
    renewal_stamp.LEASE_TOO_LARGE,
    missing_stamps.LEASE_WITHOUT_STAMPS,
    missing_stamps.LEASE_CREATED_EMPTY,
    takeover.TAKEOVER_BEFORE_EXPIRY,
    foreign_writer.FOREIGN_WRITER,
    takeover.TAKEOVER_BY_NODE,
    takeover.TAKEOVER_ACROSS_NAMESPACES,
    renew_time.RENEW_TIME_IN_FUTURE,
    renew_time.RENEW_TIME_BACKWARDS,
    duration.DURATION_TOO_LONG,
    duration.DURATION_SHORTENED,
    transitions.TRANSITIONS_JUMP,
    transitions.TRANSITIONS_DECREASE,
    transitions.TRANSITIONS_MISMATCH,
    acquire_time.ACQUIRE_TIME_CHANGED,
    coordinated.PREFERRED_HOLDER_WRITER,
    coordinated.STRATEGY_WRITER,
    release.FOREIGN_RELEASE,
    release.FOREIGN_RELEASE_ACROSS_NAMESPACES,
    holder_identity.HOLDER_IDENTITY_SHAPE,
    holder_identity.HOLDER_IDENTITY_MISMATCH,
    identity_binding.IDENTITY_BINDING,
    node_lease.NODE_LEASE_HOLDER,
    node_lease.NODE_LEASE_WRITER,
    apiserver_lease.APISERVER_LEASE_WRITER,
    deletion.LIVE_LEASE_DELETED,
    owner_references.OWNER_REFERENCE_ADDED,
    owner_references.OWNER_REFERENCE_REMOVED,
    coordinated.PING_TIME_WRITER,
    coordinated.CANDIDATE_ACROSS_NAMESPACES,
    renew_time.CANDIDATE_RENEW_TIME_IN_FUTURE,
    renew_time.CANDIDATE_RENEW_TIME_BACKWARDS,
    coordinated.CANDIDATE_CHANGED,
)
"""The order of findings in a verdict; when several state one fact, the last supplies the text."""

OBJECT_TYPES_RULE: Final = metadata.OBJECT_TYPES
"""Evaluated alone, on a request: the document does not decode, so no other rule could run."""
OBJECT_TYPES_ID: Final = OBJECT_TYPES_RULE.id

ALL_RULES: Final = index_rules((*RULES_IN_ORDER, OBJECT_TYPES_RULE))
"""Every rule that a verdict or a report may name."""
RULES: Final = {rule.id: rule for rule in RULES_IN_ORDER}

EXEMPTIBLE: Final = frozenset(rule.id for rule in RULES_IN_ORDER if rule.is_exemptible)
"""The rules that an exemption applies to, and may name."""

CHECKS: Final = Checks(RULES_IN_ORDER)
"""What a Lease or LeaseCandidate write must satisfy: pure functions of one change that return findings."""


def find_denying_rules(preset: str) -> frozenset[str]:
    """Return the ids of the rules that a preset denies by, before its cap."""
    return frozenset(rule.id for rule in RULES.values() if getattr(rule, preset) is Mode.DENY)
