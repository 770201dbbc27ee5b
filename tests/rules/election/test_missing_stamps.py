"""A lease that changes hands without a stamp of its last renewal."""

from tests.factories import NOW, drop
from tests.rules.findings import (
    HOUR,
    RIVAL,
    findings,
    said,
    take,
    update,
    written,
)


def test_a_takeover_over_a_stamp_is_no_lease_without_stamps() -> None:
    assert said("lease-without-stamps", update(written(take(RIVAL), at="2025-11-20T12:00:01Z"))) == set()


ENTRIES = "metadata.managedFields"


def test_the_repair_is_named_if_stamps_are_missing() -> None:
    (finding,) = findings(update(take(RIVAL), old=[drop(ENTRIES)]), now=NOW + HOUR)["lease-without-stamps"]
    assert "kubectl apply --server-side" in finding.error.detail
