"""A rule with a condition finds nothing in a write that does not meet it, so that its check need not be called."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest

from tests.corpus import corpus
from tests.factories import make_review, put, to_bytes
from tests.review_rows import WHEN
from tests.rules import wording
from tests.rules.election import test_foreign_writer as foreign_writer
from tests.rules.election import test_node_lease as node_lease
from tests.rules.election import test_owner_references as owners
from tests.rules.findings import candidate_created, update
from webhook.admission.rules.change import CandidateChange, Condition, LeaseChange, change_made_by
from webhook.admission.rules.registry import CHECKS, RULES_IN_ORDER
from webhook.admission.rules.rule import Rule
from webhook.kubernetes.request import AdmissionRequest
from webhook.kubernetes.review import ReviewError, decode

CANDIDATES: tuple[dict[str, Any], ...] = (
    {"leaseName": ""},
    {"strategy": "misspelled"},
    {"preferredStrategies": []},
    {"preferredStrategies": ["example.com/a", "example.com/a"]},
    {"emulationVersion": None},
    {"emulationVersion": "1"},
    {"emulationVersion": "1.37.0"},
    *({"binaryVersion": version, "emulationVersion": version} for version in ("0.0.0", "v1.36.0", "1.36.0")),
)
"""What breaks one of the rules about the spec of a candidate, and at the end what breaks none."""
CONDITIONAL = [rule for rule in RULES_IN_ORDER if rule.only_if is not None]


def bodies() -> Iterator[bytes]:
    """The corpora, and what they lack: a write that each of the rules refuses."""
    yield from (body for _, body in corpus())
    yield from (to_bytes(case.values[1]) for module in (foreign_writer, node_lease, owners) for case in module.WORDING)
    yield to_bytes(update(put("spec.strategy", "misspelled")))
    yield to_bytes(update(put("spec.preferredHolder", "checkout-1")))
    yield to_bytes(update(put("spec.leaseTransitions", -1)))
    yield to_bytes(make_review(put("request.options", {"dryRun": ["Some"]})))
    for version, spec in product(("v1alpha1", "v1beta1"), CANDIDATES):
        tweaks = [put(f"spec.{name}", value) for name, value in spec.items()]
        yield to_bytes(candidate_created(*tweaks, version=version))


@cache
def requests() -> list[AdmissionRequest]:
    """Those that rules evaluate."""
    decoded = []
    for body in bodies():
        try:
            request = decode(body)
        except ReviewError:
            continue
        if request.is_ours and not request.contradiction and not request.object_errors and not request.sub_resource:
            decoded.append(request)
    return decoded


@cache
def changes() -> list[LeaseChange | CandidateChange]:
    """Each of them under a policy with and without a binding and stamps."""
    return [
        change_made_by(request, WHEN, binding=binding, stamps=stamps)
        for request in requests()
        for binding in (None, wording.BOUND)
        for stamps in (None, wording.STAMPS)
    ]


def evaluated(rule: Rule) -> list[LeaseChange | CandidateChange]:
    return [
        change
        for change in changes()
        if rule in CHECKS.find_rules(change.request.resource, change.request.operation, change.event)
    ]


@pytest.mark.parametrize("rule", CONDITIONAL, ids=lambda rule: rule.id)
def test_a_rule_finds_nothing_in_a_write_that_does_not_meet_its_condition(rule: Rule) -> None:
    assert rule.only_if is not None
    found_in = [change for change in evaluated(rule) if rule.check(change)]
    assert found_in
    assert all(change.conditions[rule.only_if] for change in found_in)


@pytest.mark.parametrize("rule", CONDITIONAL, ids=lambda rule: rule.id)
def test_its_check_is_called_for_a_write_that_meets_it(rule: Rule) -> None:
    assert rule.only_if is not None
    conditions = tuple(condition is rule.only_if for condition in Condition)
    (resource, *_), (operation, *_), (event, *_) = rule.resources, rule.operations, rule.events
    assert (rule.check, rule) in CHECKS.find_checks(resource.value, operation, event, conditions)
    unmet = tuple(condition is not rule.only_if for condition in Condition)
    assert (rule.check, rule) not in CHECKS.find_checks(resource.value, operation, event, unmet)
