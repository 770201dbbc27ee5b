"""Versions of a LeaseCandidate: well-formed, in order, and present if the strategy needs them."""

import pytest

from tests.factories import Tweak, drop, put
from tests.rules.findings import INVALID, REQUIRED, candidate_created, candidate_updated, field_errors, printed
from webhook.kubernetes.field import ErrorType

BINARY, EMULATION = "spec.binaryVersion", "spec.emulationVersion"
STRATEGY, LIST = "spec.strategy", "spec.preferredStrategies"
VERSIONS = ("v1alpha1", "v1alpha2", "v1beta1")
LATER = VERSIONS[1:]


def versions(binary: str, emulation: str) -> tuple[Tweak, Tweak]:
    return put(BINARY, binary), put(EMULATION, emulation)


def without_oldest(version: str) -> Tweak:
    """A strategy that needs no versions."""
    return put(LIST, ["example.com/any"]) if version == "v1alpha1" else put(STRATEGY, "example.com/any")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("binary", "emulation"),
    [
        pytest.param("1.36.3", "1.36.3", id="equal"),
        pytest.param("1.36.3+a", "1.36.3+b", id="equal but for the build"),
        pytest.param("1.36.3", "1.36.3-rc.1", id="emulation before the release"),
        pytest.param("1.100.0", "1.99.0", id="numbers, not texts"),
        pytest.param("18446744073709551615.0.0", "0.0.1", id="the largest number"),
    ],
)
def test_versions_in_order_are_left_alone(binary: str, emulation: str, version: str) -> None:
    assert field_errors(candidate_created(*versions(binary, emulation), version=version)) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("binary", "emulation"),
    [
        pytest.param("1.36.2", "1.36.3", id="emulation above binary"),
        pytest.param("1.36.3-rc.1", "1.36.3", id="binary before the release"),
        pytest.param("1.36.3-rc.2", "1.36.3-rc.10", id="numbers in pre-releases"),
    ],
)
def test_an_emulation_above_the_binary_is_named(binary: str, emulation: str, version: str) -> None:
    expected = [("candidate-version-order", INVALID, BINARY)]
    assert field_errors(candidate_created(*versions(binary, emulation), version=version)) == expected
    assert field_errors(candidate_updated(old=versions(binary, emulation), version=version)) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", ["v1.36.0", "1.36", "1.36.0.0", " 1.36.0", "18446744073709551616.0.0", "1.02.3"])
def test_one_bad_version_is_one_finding(text: str, version: str) -> None:
    assert field_errors(candidate_created(put(BINARY, text), version=version)) == [
        ("candidate-binary-version", INVALID, BINARY)
    ]
    assert field_errors(candidate_created(put(EMULATION, text), version=version)) == [
        ("candidate-emulation-version", INVALID, EMULATION)
    ]


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize("tweak", [drop(BINARY), put(BINARY, "")], ids=["absent", "empty"])
def test_later_versions_require_a_binary_version(tweak: Tweak, version: str) -> None:
    assert field_errors(candidate_created(tweak, version=version)) == [("candidate-binary-version", REQUIRED, BINARY)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "tweak",
    [drop(EMULATION), put(EMULATION, ""), put(EMULATION, "0.0.0"), put(EMULATION, "0.0.0+build")],
    ids=["absent", "empty", "0.0.0", "0.0.0 with a build"],
)
def test_oldest_emulation_version_needs_an_emulation_version(tweak: Tweak, version: str) -> None:
    expected: list[tuple[str, ErrorType, str]] = [("candidate-versions-required", REQUIRED, EMULATION)]
    assert field_errors(candidate_created(tweak, version=version)) == expected
    assert field_errors(candidate_created(tweak, without_oldest(version), version=version)) == []


def test_a_pre_release_of_zero_is_a_version() -> None:
    assert field_errors(candidate_created(put(EMULATION, "0.0.0-a"))) == []


def test_the_first_version_needs_both_versions_for_oldest_emulation_version() -> None:
    assert field_errors(candidate_created(drop(BINARY), version="v1alpha1")) == [
        ("candidate-versions-required", REQUIRED, BINARY)
    ]
    assert field_errors(candidate_created(drop(BINARY), without_oldest("v1alpha1"), version="v1alpha1")) == []


def test_the_words_are_those_of_the_api_server() -> None:
    assert printed(candidate_created(put(BINARY, "v1"), put(EMULATION, "v1"))) == [
        'spec.binaryVersion: Invalid value: "v1": must be a valid semantic version',
        'spec.emulationVersion: Invalid value: "v1": must be a valid semantic version',
    ]
    assert printed(candidate_created(*versions("1.29.0", "1.30.0"))) == [
        'spec.binaryVersion: Invalid value: "1.29.0": must be greater than or equal to `emulationVersion`'
    ]
    assert printed(candidate_created(drop(EMULATION))) == [
        "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'"
    ]
    assert printed(candidate_created(drop(BINARY))) == ["spec.binaryVersion: Required value"]
