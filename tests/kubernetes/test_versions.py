"""Semantic versions: what is one, and their order."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semver import Version

from webhook.kubernetes.versions import parse_version

LARGEST = 2**64 - 1

IN_ORDER = [
    "0.0.0-0",
    "0.0.0-a",
    "0.0.0",
    "0.0.1",
    "1.0.0-0",
    "1.0.0-1",
    "1.0.0-1.0",
    "1.0.0-2",
    "1.0.0-10",
    f"1.0.0-{LARGEST}",
    "1.0.0--",
    "1.0.0-0a",
    "1.0.0-A",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0",
    f"{LARGEST}.0.0",
    f"{LARGEST}.0.{LARGEST}",
]


def version(text: str) -> Version:
    version = parse_version(text)
    assert version is not None
    return version


def test_any_two_of_the_sorted_list_are_in_order() -> None:
    for one, other in combinations(map(version, IN_ORDER), 2):
        assert one < other
        assert not other < one
        assert one != other


def test_build_metadata_does_not_count() -> None:
    for text in IN_ORDER:
        builds = [parse_version(f"{text}{build}") for build in ("", "+1", "+2.a", "+-", f"+00{LARGEST}0")]
        assert all(one == other for one, other in product(builds, builds)), text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("v1.2.3", id="a leading v"),
        pytest.param("1.2", id="two numbers"),
        pytest.param("1.2.3.4", id="four numbers"),
        pytest.param("01.2.3", id="a leading zero"),
        pytest.param("+1.2.3", id="a sign"),
        pytest.param(" 1.2.3", id="a blank"),
        pytest.param("1.2.3\n", id="a line end"),
        pytest.param("1.2.3-", id="an empty pre-release"),
        pytest.param("1.2.3-01", id="a leading zero in a pre-release"),
        pytest.param("1.2.3-a..b", id="an empty identifier"),
        pytest.param("1.2.3+", id="an empty build"),
        pytest.param("1.2.3+a+b", id="two builds"),
        pytest.param("1\N{ARABIC-INDIC DIGIT TWO}.0.0", id="a digit that is not ASCII"),
        pytest.param(f"{LARGEST + 1}.0.0", id="a major number of 65 bits"),
        pytest.param(f"1.{LARGEST + 1}.0", id="a minor number of 65 bits"),
        pytest.param(f"1.0.{LARGEST + 1}", id="a patch number of 65 bits"),
        pytest.param(f"1.0.0-a.{LARGEST + 1}", id="a pre-release number of 65 bits"),
        pytest.param(f"{'9' * 5000}.0.0", id="a number of 5000 digits"),
        pytest.param(f"1.0.0-{'9' * 5000}", id="a pre-release number of 5000 digits"),
    ],
)
def test_a_text_that_is_not_a_version_is_refused(text: str) -> None:
    assert parse_version(text) is None


def test_a_long_version_is_read() -> None:
    prerelease = "a.1." * 15_000
    lower, higher = version(f"1.0.0-{prerelease}a"), version(f"1.0.0-{prerelease}b+01")
    assert lower < higher
    for wrong in (
        f"{prerelease}",
        f"{prerelease}01",
        f"{prerelease}{LARGEST + 1}",
        f"{'1' * 60_000}",
        f"{prerelease}!",
    ):
        assert parse_version(f"1.0.0-{wrong}") is None


@given(st.text(alphabet="0123456789.-+av \n", max_size=20))
def test_any_text_is_a_version_or_refused(text: str) -> None:
    version = parse_version(text)
    assert version is None or str(version) == text


def test_a_version_longer_than_the_limit_is_refused() -> None:
    longest = "1.0.0-" + "a" * (64 * 1024 - 6)
    assert version(longest) == version(longest)
    assert parse_version(longest + "a") is None
