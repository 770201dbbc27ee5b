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
from webhook.admission.rules.parity.spec import MAX_STRATEGIES
from webhook.kubernetes.field import ErrorType

LEASE, STRATEGY, LIST = "spec.leaseName", "spec.strategy", "spec.preferredStrategies"
VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1")
LATER = VERSIONS[1:]
OLDEST = "OldestEmulationVersion"


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


@pytest.mark.parametrize("version", LATER)
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


@pytest.mark.parametrize("version", LATER)
def test_later_versions_have_no_list_of_strategies(version: str) -> None:
    assert field_errors(candidate_created(put(LIST, ["x", "x"]), version=version)) == []


def test_the_first_version_has_a_list_of_strategies_only() -> None:
    assert field_errors(candidate_created(put(STRATEGY, "x"), version="v1alpha1")) == []


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        pytest.param(None, [("candidate-preferred-strategies", REQUIRED, LIST)], id="null"),
        pytest.param([], [("candidate-preferred-strategies", REQUIRED, LIST)], id="empty"),
        pytest.param([None], [("candidate-preferred-strategies", NOT_SUPPORTED, f"{LIST}[0]")], id="null inside"),
        pytest.param([OLDEST, "x"], [("candidate-preferred-strategies", NOT_SUPPORTED, f"{LIST}[1]")], id="unknown"),
        pytest.param(["a b/c"], [("candidate-preferred-strategies", INVALID, f"{LIST}[0]")], id="a blank"),
        pytest.param([OLDEST, "a/b"], [], id="known and qualified"),
        pytest.param(["a/b", OLDEST, "a/b"], [("candidate-strategies-unique", INVALID, f"{LIST}[2]")], id="twice"),
    ],
)
def test_preferred_strategies_of_the_first_version(
    strategies: object, expected: list[tuple[str, ErrorType, str]]
) -> None:
    assert field_errors(candidate_created(put(LIST, strategies), version="v1alpha1")) == expected


def test_repeated_strategies_ratchet() -> None:
    twice = put(LIST, ["a/b", "a/b"])
    assert field_errors(candidate_updated(old=(twice,), version="v1alpha1")) == []
    assert field_errors(candidate_updated(twice, version="v1alpha1")) == [
        ("candidate-strategies-unique", INVALID, f"{LIST}[1]")
    ]


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
        pytest.param(
            candidate_created(put(LIST, []), version="v1alpha1"),
            "spec.preferredStrategies: Required value: must contain at least one strategy",
            id="candidate-preferred-strategies",
        ),
        pytest.param(
            candidate_created(put(LIST, ["a/b", "a/b"]), version="v1alpha1"),
            'spec.preferredStrategies[1]: Invalid value: "a/b": must not name a strategy twice',
            id="candidate-strategies-unique",
        ),
    ],
)
def test_the_words_are_those_of_the_api_server(review: Document, text: str) -> None:
    assert printed(review) == [text]


@pytest.mark.parametrize(("before", "is_found"), [(MAX_STRATEGIES - 1, True), (MAX_STRATEGIES, False)])
def test_a_list_of_any_length_costs_little(before: int, is_found: bool) -> None:
    strategies = [*(f"a/b{number}" for number in range(before)), "x"]
    errors = field_errors(candidate_created(put(LIST, strategies), version="v1alpha1"))
    assert errors == ([("candidate-preferred-strategies", NOT_SUPPORTED, f"{LIST}[{before}]")] if is_found else [])
