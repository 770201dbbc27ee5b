"""The rules, listed by hand: on what each is evaluated, and its modes in the presets."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Final

from webhook.admission.rules.change import Condition, Conditions, Event
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
from webhook.admission.rules.parity import metadata, spec
from webhook.admission.rules.rule import ALL_EVENTS, NOT_A_RENEWAL, Check, Mode, Rule
from webhook.kubernetes.request import Operation, Resource

OFF, AUDIT, WARN, DENY = Mode.OFF, Mode.AUDIT, Mode.WARN, Mode.DENY
LEASES: Final = frozenset({Resource.LEASES})
CANDIDATES: Final = frozenset({Resource.LEASECANDIDATES})
BOTH: Final = LEASES | CANDIDATES
CREATE: Final = frozenset({Operation.CREATE})
UPDATE: Final = frozenset({Operation.UPDATE})
DELETE: Final = frozenset({Operation.DELETE})
WRITES: Final = CREATE | UPDATE
ANY_OPERATION: Final = WRITES | DELETE
SPEC_EVENTS: Final = ALL_EVENTS - {Event.UNTOUCHED}
"""Every event but a write that leaves spec as it is."""
NEW_HOLDER: Final = frozenset({Event.CREATE, Event.CLAIM, Event.TAKEOVER, Event.STEAL})
SAME_HOLDER: Final = SPEC_EVENTS - NEW_HOLDER - {Event.RELEASE}


_parity_rule = partial(Rule, parity=True)
_writer_rule = partial(Rule, about_writer=True)
_restorable_rule = partial(_writer_rule, attack_at_any_mode=False, attack_on_create=False)
"""A backup may create what these rules are about; only written into an object that exists it looks like an attack."""

OBJECT_TYPES_RULE: Final = _parity_rule(metadata.object_types, BOTH, ANY_OPERATION)
"""Evaluated alone, on a request: the document does not decode, so no other rule could run."""
OBJECT_TYPES_ID: Final = OBJECT_TYPES_RULE.id

Occasion = tuple[str, Operation, Event]
NO_RULES: Final[frozenset[str]] = frozenset()


class Checks:
    """The checks of some rules, by what they are evaluated on."""

    def __init__(self, rules: Collection[Rule]) -> None:
        self._by_occasion: Mapping[Occasion, Sequence[Rule]] = {
            (resource.value, operation, event): [
                rule
                for rule in rules
                if resource in rule.resources and operation in rule.operations and event in rule.events
            ]
            for resource, operation, event in product(Resource, Operation, Event)
        }
        # It has an entry for each set of conditions that a write has met, which are few, with exemptions from all and
        # from none. Of other sets of exempt rules a policy may have very many, of which a client chooses one by a name.
        self._checks: dict[tuple[str, Operation, Event, Conditions, frozenset[str]], Sequence[tuple[Check, Rule]]] = {}

    def find_rules(self, resource: str, operation: Operation, event: Event) -> Sequence[Rule]:
        """Return the rules for such a write, before their conditions are checked."""
        return self._by_occasion[resource, operation, event]

    def find_checks(
        self,
        resource: str,
        operation: Operation,
        event: Event,
        conditions: Conditions,
        exempt: frozenset[str] = NO_RULES,
    ) -> Sequence[tuple[Check, Rule]]:
        """Return the checks that may find something in a write that meets these conditions, with their rules.

        Those of the rules that the writer is exempt from are left out.
        """
        if exempt and exempt != EXEMPTIBLE:
            checks = self.find_checks(resource, operation, event, conditions)
            return tuple(one for one in checks if one[1].id not in exempt)
        key = resource, operation, event, conditions, exempt
        known = self._checks.get(key)
        if known is None:
            rules = self._by_occasion[resource, operation, event]
            known = self._checks[key] = tuple(
                (rule.check, rule)
                for rule in rules
                if (rule.only_if is None or conditions[rule.only_if]) and rule.id not in exempt
            )
        return known


RULES_IN_ORDER: Final = (
    _parity_rule(metadata.object_name, BOTH, CREATE),
    _parity_rule(metadata.metadata_immutable, BOTH, UPDATE),
    _parity_rule(metadata.object_metadata, BOTH, WRITES),
    _parity_rule(spec.lease_duration, LEASES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.lease_transitions, LEASES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.lease_strategy, LEASES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.lease_preferred_holder, LEASES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_lease_name, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_lease_name_immutable, CANDIDATES, UPDATE),
    _parity_rule(spec.candidate_lease_name_format, CANDIDATES, WRITES),
    _parity_rule(spec.candidate_strategy, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_preferred_strategies, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_strategies_unique, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_binary_version, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_emulation_version, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_version_order, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(spec.candidate_versions_required, CANDIDATES, WRITES, only_if=Condition.UNUSUAL_SPEC),
    _parity_rule(metadata.request_options, BOTH, ANY_OPERATION, only_if=Condition.WITH_OPTIONS),
    Rule(unreadable_time.time_unreadable, BOTH, WRITES, never_exempt=True),
    Rule(renewal_stamp.renewal_stamp_tampered, LEASES, WRITES),
    Rule(renewal_stamp.lease_too_large, LEASES, WRITES),
    Rule(missing_stamps.lease_without_stamps, LEASES, UPDATE, NEW_HOLDER, standard=AUDIT, strict=WARN),
    Rule(missing_stamps.lease_created_empty, LEASES, CREATE, standard=WARN),
    Rule(takeover.takeover_before_expiry, LEASES, UPDATE, {Event.STEAL}, standard=WARN),
    _writer_rule(foreign_writer.foreign_writer, LEASES, UPDATE | DELETE, standard=WARN, only_if=Condition.STAMPED),
    _writer_rule(takeover.takeover_by_node, LEASES, UPDATE, {Event.STEAL}),
    _writer_rule(takeover.takeover_across_namespaces, LEASES, UPDATE, {Event.STEAL}),
    Rule(
        renew_time.renew_time_in_future,
        LEASES,
        WRITES,
        SPEC_EVENTS,
        without_effect="a deny_above_seconds below 86400",
        attack_at_any_mode=False,
    ),
    Rule(
        renew_time.renew_time_backwards,
        LEASES,
        UPDATE,
        SAME_HOLDER,
        standard=AUDIT,
        strict=WARN,
        without_effect="mode deny",
    ),
    Rule(duration.duration_too_long, LEASES, WRITES, SPEC_EVENTS, attack_at_any_mode=False),
    Rule(duration.duration_shortened, LEASES, UPDATE, SAME_HOLDER, standard=WARN),
    Rule(transitions.transitions_jump, LEASES, WRITES, NOT_A_RENEWAL, attack_at_any_mode=False),
    Rule(transitions.transitions_decrease, LEASES, UPDATE, NOT_A_RENEWAL, standard=AUDIT, strict=WARN),
    Rule(transitions.transitions_mismatch, LEASES, UPDATE, NOT_A_RENEWAL, standard=OFF, strict=AUDIT),
    Rule(acquire_time.acquire_time_changed, LEASES, UPDATE, SAME_HOLDER - {Event.RENEWAL}, standard=OFF, strict=AUDIT),
    _restorable_rule(
        coordinated.preferred_holder_writer, LEASES, WRITES, NOT_A_RENEWAL, only_if=Condition.UNUSUAL_SPEC
    ),
    _restorable_rule(coordinated.strategy_writer, LEASES, WRITES, NOT_A_RENEWAL, only_if=Condition.UNUSUAL_SPEC),
    _writer_rule(release.foreign_release, LEASES, UPDATE, {Event.RELEASE}, standard=AUDIT),
    _writer_rule(release.foreign_release_across_namespaces, LEASES, UPDATE, {Event.RELEASE}, standard=WARN),
    Rule(holder_identity.holder_identity_shape, LEASES, WRITES, NEW_HOLDER | {Event.DELETE}),
    _writer_rule(holder_identity.holder_identity_mismatch, LEASES, WRITES, NEW_HOLDER, standard=AUDIT, strict=WARN),
    _writer_rule(
        identity_binding.identity_binding, BOTH, ANY_OPERATION, attack_at_any_mode=False, only_if=Condition.BOUND
    ),
    _writer_rule(node_lease.node_lease_holder, LEASES, UPDATE, NOT_A_RENEWAL, only_if=Condition.NODE_LEASE),
    _writer_rule(
        node_lease.node_lease_writer,
        LEASES,
        WRITES,
        NOT_A_RENEWAL,
        standard=OFF,
        strict=WARN,
        only_if=Condition.NODE_LEASE,
    ),
    _writer_rule(apiserver_lease.apiserver_lease_writer, LEASES, UPDATE, only_if=Condition.SYSTEM_LEASE),
    _writer_rule(deletion.live_lease_deleted, LEASES, DELETE | UPDATE, {Event.DELETE}, standard=AUDIT),
    # An owner that does not exist would have the bound lease deleted.
    _writer_rule(
        owner_references.owner_reference_added, LEASES, UPDATE, standard=WARN, bound=DENY, only_if=Condition.OWNED
    ),
    _writer_rule(owner_references.owner_reference_removed, LEASES, UPDATE, standard=WARN, only_if=Condition.OWNED),
    _restorable_rule(coordinated.ping_time_writer, CANDIDATES, WRITES, SPEC_EVENTS),
    _writer_rule(coordinated.candidate_across_namespaces, CANDIDATES, WRITES, SPEC_EVENTS, standard=AUDIT, strict=WARN),
    Rule(renew_time.candidate_renew_time_in_future, CANDIDATES, WRITES, SPEC_EVENTS, attack_at_any_mode=False),
    Rule(renew_time.candidate_renew_time_backwards, CANDIDATES, UPDATE, SPEC_EVENTS, standard=OFF, strict=AUDIT),
    Rule(coordinated.candidate_changed, CANDIDATES, UPDATE, SPEC_EVENTS, standard=WARN),
)
"""The order of findings in a verdict; when several state one fact, the last supplies the text."""

RULES: Final = {rule.id: rule for rule in RULES_IN_ORDER}
ALL_RULES: Final = {**RULES, OBJECT_TYPES_ID: OBJECT_TYPES_RULE}
"""Every rule that a verdict or a report may name."""

EXEMPTIBLE: Final = frozenset(rule.id for rule in RULES_IN_ORDER if not rule.parity and not rule.never_exempt)
"""The rules that an exemption applies to, and may name."""

CHECKS: Final = Checks(RULES.values())
