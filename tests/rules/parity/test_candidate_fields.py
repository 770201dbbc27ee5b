"""Name and strategies of a LeaseCandidate, in each of its versions."""

import pytest

from tests.factories import Document, Tweak, drop, put
from tests.rules.findings import (
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    candidate_created,
    candidate_updated,
    field_errors,
    printed,
)
from webhook.api.field import ErrorType

LEASE, STRATEGY = "spec.leaseName", "spec.strategy"
VERSIONS = ("v1alpha2", "v1beta1")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_legal_candidate_is_left_alone(version: str) -> None:
    assert field_errors(candidate_created(version=version)) == []
    assert field_errors(candidate_updated(put("spec.renewTime", "2025-11-20T12:00:05.000000Z"), version=version)) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tweak", [put(LEASE, ""), put(LEASE, None), drop(LEASE)], ids=["empty", "null", "absent"])
def test_a_lease_name_is_required(tweak: Tweak, version: str) -> None:
    assert field_errors(candidate_created(tweak, version=version)) == [("candidate-lease-name", REQUIRED, LEASE)]
    assert field_errors(candidate_updated(tweak, version=version)) == [
        ("candidate-lease-name", REQUIRED, LEASE),
        ("candidate-lease-name-immutable", INVALID, LEASE),
    ]


def test_a_lease_name_may_not_change() -> None:
    assert field_errors(candidate_updated(put(LEASE, "other"))) == [("candidate-lease-name-immutable", INVALID, LEASE)]


def test_a_lease_name_is_legal_when_set_or_changed() -> None:
    illegal = put(LEASE, "Not a name")
    assert field_errors(candidate_created(illegal)) == [("candidate-lease-name-format", INVALID, LEASE)]
    assert field_errors(candidate_updated(illegal)) == [
        ("candidate-lease-name-immutable", INVALID, LEASE),
        ("candidate-lease-name-format", INVALID, LEASE),
    ]
    assert field_errors(candidate_updated(old=(illegal,))) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("tweak", "error"),
    [
        pytest.param(drop(STRATEGY), REQUIRED, id="absent"),
        pytest.param(put(STRATEGY, ""), REQUIRED, id="empty"),
        pytest.param(put(STRATEGY, "Fastest"), NOT_SUPPORTED, id="unknown"),
        pytest.param(put(STRATEGY, "example.com/a b"), INVALID, id="a blank in a qualified name"),
    ],
)
def test_a_strategy_is_known_or_qualified(tweak: Tweak, error: ErrorType, version: str) -> None:
    expected = [("candidate-strategy", error, STRATEGY)]
    assert field_errors(candidate_created(tweak, version=version)) == expected
    assert field_errors(candidate_updated(tweak, version=version)) == expected
    assert field_errors(candidate_updated(old=(tweak,), version=version)) == expected


@pytest.mark.parametrize(
    ("review", "text"),
    [
        pytest.param(candidate_created(drop(LEASE)), "spec.leaseName: Required value", id="candidate-lease-name"),
        pytest.param(
            candidate_updated(put(LEASE, "new")),
            'spec.leaseName: Invalid value: "new": field is immutable',
            id="candidate-lease-name-immutable",
        ),
        pytest.param(
            candidate_created(put(LEASE, "a" * 254)),
            f'spec.leaseName: Invalid value: "{"a" * 128}...": must be no more than 253 characters',
            id="candidate-lease-name-format",
        ),
        pytest.param(candidate_created(drop(STRATEGY)), "spec.strategy: Required value", id="candidate-strategy"),
    ],
)
def test_the_words_are_those_of_the_api_server(review: Document, text: str) -> None:
    assert printed(review) == [text]
