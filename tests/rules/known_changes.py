"""Every write that the tests know, as the rules see it: what the corpora have, and what the rules' own tests add."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

from tests.corpus import corpus
from tests.factories import make_review, put, to_bytes
from tests.review_rows import WHEN
from tests.rules import wording
from tests.rules.findings import candidate_created, update
from tests.rules.pinned_writes import pinned_writes
from webhook.admission.rules.change import (
    CandidateChange,
    LeaseChange,
    has_only_renewal_changes,
    is_spec_untouched,
    make_change,
)
from webhook.admission.rules.registry import CHECKS
from webhook.admission.rules.rule import Rule
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import AdmissionRequest, Operation
from webhook.kubernetes.review import decode

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
"""Specs of candidates that break one rule each; the last one breaks none."""


def bodies() -> Iterator[bytes]:
    """Yield the corpora, the writes whose wording is pinned, and what both lack: writes that parity rules refuse."""
    yield from (body for _, body in corpus())
    yield from (to_bytes(review) for _, review in pinned_writes())
    yield to_bytes(update(put("spec.strategy", "misspelled")))
    yield to_bytes(update(put("spec.preferredHolder", "checkout-1")))
    yield to_bytes(update(put("spec.leaseTransitions", -1)))
    yield to_bytes(make_review(put("request.options", {"dryRun": ["Some"]})))
    for version, spec in product(("v1alpha1", "v1beta1"), CANDIDATES):
        tweaks = [put(f"spec.{name}", value) for name, value in spec.items()]
        yield to_bytes(candidate_created(*tweaks, version=version))


def find_requests() -> Iterator[AdmissionRequest]:
    """Yield those that rules evaluate."""
    for body in bodies():
        try:
            request = decode(body)
        except ReviewError:
            continue
        if request.is_ours and not request.contradiction and not request.object_errors and not request.sub_resource:
            yield request


@cache
def known_changes() -> Sequence[LeaseChange | CandidateChange]:
    """Return each of them under a policy with and without a binding and stamps."""
    return [
        make_change(request, WHEN, binding=binding, stamps=stamps)
        for request in find_requests()
        for binding in (None, wording.BOUND)
        for stamps in (None, wording.STAMPS)
    ]


@cache
def known_renewals() -> Sequence[LeaseChange]:
    """Return those that change of the spec what a holder changes to stay, and anything else.

    One that also removes the last finalizer of a deleted lease is among them: its event is another.
    """
    return [change for change in known_changes() if isinstance(change, LeaseChange) and _is_renewal(change)]


def _is_renewal(change: LeaseChange) -> bool:
    old, new = change.old_spec, change.new_spec
    is_removed = change.old_renew_time is not None and change.new_renew_time is None
    return (
        change.request.operation is Operation.UPDATE
        and change.old_holder == change.new_holder
        and not is_removed
        and not is_spec_untouched(old, new)
        and has_only_renewal_changes(old, new)
    )


def is_evaluated(rule: Rule, change: LeaseChange | CandidateChange) -> bool:
    """Return whether a rule is evaluated on such a write, before its condition is checked."""
    return rule in CHECKS.find_rules(change.request.resource, change.request.operation, change.event)
