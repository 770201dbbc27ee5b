"""github.com/blang/semver/v4: every recorded pair is valid, invalid and ordered as there."""

from tests.conformance.corpus import cases
from webhook.kubernetes.versions import parse_version

CASES = cases("semver")


def test_every_pair_is_valid_and_ordered_as_upstream() -> None:
    assert len(CASES) == 3000
    assert [case["id"] for case in CASES if outcome(case["a"], case["b"]) != case["expected"]] == []


def outcome(a: str, b: str) -> dict[str, object]:
    """Return what we make of a pair, in the form of the recording."""
    one, other = parse_version(a), parse_version(b)
    compared = one.compare(other) if one is not None and other is not None else None
    return {"valid_a": one is not None, "valid_b": other is not None, "compare": compared}
