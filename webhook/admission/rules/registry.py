"""The rules, listed by hand: on what each is evaluated, and its modes in the presets."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Final

from webhook.admission.rules.change import Condition, Conditions, Event
from webhook.admission.rules.election import coordinated, numbers, renewal_stamp, takeover, times, writers
from webhook.admission.rules.parity import metadata, spec
from webhook.admission.rules.rule import ALL_EVENTS, NOT_A_RENEWAL, Check, Mode, Rule
from webhook.kubernetes.request import Operation, Resource

OFF, AUDIT, WARN = Mode.OFF, Mode.AUDIT, Mode.WARN
LEASES: Final = frozenset({Resource.LEASES})
CANDIDATES: Final = frozenset({Resource.LEASECANDIDATES})
BOTH: Final = LEASES | CANDIDATES
CREATE: Final = frozenset({Operation.CREATE})
UPDATE: Final = frozenset({Operation.UPDATE})
DELETE: Final = frozenset({Operation.DELETE})
WRITES: Final = CREATE | UPDATE
ANY_OPERATION: Final = WRITES | DELETE
TOUCHED: Final = ALL_EVENTS - {Event.UNTOUCHED}
NEW_HOLDER: Final = frozenset({Event.CREATE, Event.CLAIM, Event.TAKEOVER, Event.STEAL})
SAME_HOLDER: Final = TOUCHED - NEW_HOLDER - {Event.RELEASE}


_parity = partial(Rule, parity=True)
_of_writer = partial(Rule, about_writer=True)
_restorable = partial(_of_writer, attack_at_any_mode=False, attack_on_create=False)
"""A backup may create what these rules are about; only written into an object that exists it looks like an attack."""

TYPES: Final = _parity(metadata.object_types, BOTH, ANY_OPERATION)
"""Evaluated alone, on a request: the document does not decode, so no other rule could run."""
OBJECT_TYPES: Final = TYPES.id

Occasion = tuple[str, Operation, Event]


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
        # It has an entry for each set of conditions that a write has met, which are few.
        self._known: dict[tuple[str, Operation, Event, Conditions], Sequence[tuple[Check, Rule]]] = {}

    def on(self, resource: str, operation: Operation, event: Event) -> Sequence[Rule]:
        """Return the rules that are evaluated on such a write, whatever conditions it meets."""
        return self._by_occasion[resource, operation, event]

    def of(
        self, resource: str, operation: Operation, event: Event, conditions: Conditions
    ) -> Sequence[tuple[Check, Rule]]:
        """Return the checks that may find something in a write that meets these conditions, with their rules."""
        key = resource, operation, event, conditions
        checks = self._known.get(key)
        if checks is None:
            rules = self._by_occasion[resource, operation, event]
            checks = self._known[key] = tuple(
                (rule.check, rule) for rule in rules if rule.only_if is None or conditions[rule.only_if]
            )
        return checks


LISTED: Final = (
    _parity(metadata.object_name, BOTH, CREATE),
    _parity(metadata.metadata_immutable, BOTH, UPDATE),
    _parity(metadata.object_metadata, BOTH, WRITES),
    _parity(spec.lease_duration, LEASES, WRITES),
    _parity(spec.lease_transitions, LEASES, WRITES),
    _parity(spec.lease_strategy, LEASES, WRITES, only_if=Condition.COORDINATED),
    _parity(spec.lease_preferred_holder, LEASES, WRITES, only_if=Condition.COORDINATED),
    _parity(spec.candidate_lease_name, CANDIDATES, WRITES),
    _parity(spec.candidate_lease_name_immutable, CANDIDATES, UPDATE),
    _parity(spec.candidate_lease_name_format, CANDIDATES, WRITES),
    _parity(spec.candidate_strategy, CANDIDATES, WRITES),
    _parity(spec.candidate_preferred_strategies, CANDIDATES, WRITES),
    _parity(spec.candidate_strategies_unique, CANDIDATES, WRITES),
    _parity(spec.candidate_binary_version, CANDIDATES, WRITES),
    _parity(spec.candidate_emulation_version, CANDIDATES, WRITES),
    _parity(spec.candidate_version_order, CANDIDATES, WRITES),
    _parity(spec.candidate_versions_required, CANDIDATES, WRITES),
    _parity(metadata.request_options, BOTH, ANY_OPERATION, only_if=Condition.WITH_OPTIONS),
    Rule(times.time_unreadable, BOTH, WRITES, never_exempt=True),
    Rule(renewal_stamp.renewal_stamp_tampered, LEASES, WRITES),
    Rule(renewal_stamp.lease_too_large, LEASES, WRITES),
    Rule(takeover.lease_without_stamps, LEASES, UPDATE, NEW_HOLDER, standard=AUDIT, strict=WARN),
    Rule(takeover.lease_created_empty, LEASES, CREATE, standard=WARN),
    Rule(takeover.takeover_before_expiry, LEASES, UPDATE, {Event.STEAL}, standard=WARN),
    _of_writer(takeover.foreign_writer, LEASES, UPDATE | DELETE, standard=WARN, only_if=Condition.STAMPED),
    _of_writer(takeover.takeover_by_node, LEASES, UPDATE, {Event.STEAL}),
    _of_writer(takeover.takeover_across_namespaces, LEASES, UPDATE, {Event.STEAL}),
    Rule(times.renew_time_in_future, LEASES, WRITES, TOUCHED, attack_at_any_mode=False),
    Rule(times.renew_time_backwards, LEASES, UPDATE, SAME_HOLDER, standard=AUDIT, strict=WARN),
    Rule(numbers.duration_too_long, LEASES, WRITES, TOUCHED, attack_at_any_mode=False),
    Rule(takeover.duration_shortened, LEASES, UPDATE, SAME_HOLDER, standard=WARN),
    Rule(numbers.transitions_jump, LEASES, WRITES, NOT_A_RENEWAL, attack_at_any_mode=False),
    Rule(numbers.transitions_decrease, LEASES, UPDATE, NOT_A_RENEWAL, standard=AUDIT, strict=WARN),
    Rule(numbers.transitions_mismatch, LEASES, UPDATE, NOT_A_RENEWAL, standard=OFF, strict=AUDIT),
    Rule(times.acquire_time_changed, LEASES, UPDATE, SAME_HOLDER - {Event.RENEWAL}, standard=OFF, strict=AUDIT),
    _restorable(coordinated.preferred_holder_writer, LEASES, WRITES, NOT_A_RENEWAL, only_if=Condition.COORDINATED),
    _restorable(coordinated.strategy_writer, LEASES, WRITES, NOT_A_RENEWAL, only_if=Condition.COORDINATED),
    _of_writer(takeover.foreign_release, LEASES, UPDATE, {Event.RELEASE}, standard=AUDIT),
    _of_writer(takeover.foreign_release_across_namespaces, LEASES, UPDATE, {Event.RELEASE}, standard=WARN),
    Rule(writers.holder_identity_shape, LEASES, WRITES, NEW_HOLDER | {Event.DELETE}),
    _of_writer(writers.holder_identity_mismatch, LEASES, WRITES, NEW_HOLDER, standard=AUDIT, strict=WARN),
    _of_writer(writers.identity_binding, BOTH, ANY_OPERATION, attack_at_any_mode=False, only_if=Condition.BOUND),
    _of_writer(writers.node_lease_holder, LEASES, UPDATE, NOT_A_RENEWAL, only_if=Condition.NODE_LEASE),
    _of_writer(
        writers.node_lease_writer,
        LEASES,
        WRITES,
        NOT_A_RENEWAL,
        standard=OFF,
        strict=WARN,
        only_if=Condition.NODE_LEASE,
    ),
    _of_writer(writers.apiserver_lease_writer, LEASES, UPDATE, only_if=Condition.SYSTEM_LEASE),
    _of_writer(takeover.live_lease_deleted, LEASES, DELETE | UPDATE, {Event.DELETE}, standard=AUDIT),
    _of_writer(takeover.owner_reference_added, LEASES, UPDATE, standard=WARN, only_if=Condition.OWNED),
    _of_writer(takeover.owner_reference_removed, LEASES, UPDATE, standard=WARN, only_if=Condition.OWNED),
    _restorable(coordinated.ping_time_writer, CANDIDATES, WRITES, TOUCHED),
    _of_writer(coordinated.candidate_across_namespaces, CANDIDATES, WRITES, TOUCHED, standard=AUDIT, strict=WARN),
    Rule(times.candidate_renew_time_in_future, CANDIDATES, WRITES, TOUCHED, attack_at_any_mode=False),
    Rule(times.candidate_renew_time_backwards, CANDIDATES, UPDATE, TOUCHED, standard=OFF, strict=AUDIT),
    Rule(coordinated.candidate_changed, CANDIDATES, UPDATE, TOUCHED, standard=WARN),
)
"""In the order of their findings in a verdict: of several about one fact the last one supplies the text."""

RULES: Final = {rule.id: rule for rule in LISTED}

CHECKS: Final = Checks(RULES.values())
