"""Duration, transitions, strategy and preferred holder of a Lease."""

import pytest

from tests.factories import Tweak, drop, put
from tests.rules.findings import FORBIDDEN, INVALID, NOT_SUPPORTED, created, field_errors, printed, update
from webhook.kubernetes.field import ErrorType

DURATION, TRANSITIONS = "spec.leaseDurationSeconds", "spec.leaseTransitions"
STRATEGY, PREFERRED = "spec.strategy", "spec.preferredHolder"


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put(DURATION, 1), id="leaseDurationSeconds: one, as a release writes it"),
        pytest.param(put(DURATION, 2**31 - 1), id="leaseDurationSeconds: the largest"),
        pytest.param(put(DURATION, None), id="leaseDurationSeconds: null"),
        pytest.param(drop(DURATION), id="leaseDurationSeconds: absent"),
        pytest.param(put(TRANSITIONS, 0), id="leaseTransitions: zero"),
        pytest.param(drop(TRANSITIONS), id="leaseTransitions: absent"),
        pytest.param(put(STRATEGY, "OldestEmulationVersion"), id="strategy: the known one"),
        pytest.param(put(STRATEGY, "example.com/Fastest"), id="strategy: a qualified name"),
        pytest.param(put(STRATEGY, None), id="strategy: null"),
        pytest.param(put(PREFERRED, ""), id="preferredHolder: empty without a strategy"),
        pytest.param(put("spec", {}), id="spec: empty"),
        pytest.param(put("spec", None), id="spec: null"),
    ],
)
def test_a_legal_lease_is_left_alone(tweak: Tweak) -> None:
    assert field_errors(created(tweak)) == []
    assert field_errors(update(tweak)) == []


def test_a_preferred_holder_beside_a_strategy_is_left_alone() -> None:
    assert field_errors(created(put(PREFERRED, "b_2"), put(STRATEGY, "example.com/fast"))) == []


@pytest.mark.parametrize(
    ("tweak", "rule", "error", "field"),
    [
        pytest.param(put(DURATION, 0), "lease-duration", INVALID, DURATION, id="leaseDurationSeconds: zero"),
        pytest.param(put(DURATION, -15), "lease-duration", INVALID, DURATION, id="leaseDurationSeconds: negative"),
        pytest.param(put(TRANSITIONS, -1), "lease-transitions", INVALID, TRANSITIONS, id="leaseTransitions: negative"),
        pytest.param(put(STRATEGY, "Fastest"), "lease-strategy", NOT_SUPPORTED, STRATEGY, id="strategy: unknown"),
        pytest.param(put(STRATEGY, ""), "lease-strategy", NOT_SUPPORTED, STRATEGY, id="strategy: empty"),
        pytest.param(put(STRATEGY, "a/b/c"), "lease-strategy", INVALID, STRATEGY, id="strategy: two slashes"),
        pytest.param(put(PREFERRED, "b_2"), "lease-preferred-holder", FORBIDDEN, PREFERRED, id="preferredHolder alone"),
    ],
)
def test_an_illegal_field_is_named(tweak: Tweak, rule: str, error: ErrorType, field: str) -> None:
    assert field_errors(created(tweak)) == [(rule, error, field)]
    assert field_errors(update(tweak)) == [(rule, error, field)]
    assert field_errors(update(old=(tweak,))) == [(rule, error, field)], "field rules do not ratchet"


def test_the_words_are_those_of_the_api_server() -> None:
    assert printed(created(put(DURATION, 0), put(TRANSITIONS, -1), put(STRATEGY, ""), put(PREFERRED, "b"))) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        'spec.strategy: Unsupported value: "": supported values: "OldestEmulationVersion"',
        "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
    ]
