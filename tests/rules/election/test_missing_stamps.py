"""A lease that changes hands without a stamp of its last renewal."""

import pytest

from tests.factories import NOW, Document, Tweak, drop, make_entry, make_lease, make_review, put
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    HOUR,
    RIVAL,
    findings,
    said,
    take,
    update,
    written,
)

ENTRIES = "metadata.managedFields"


def test_a_takeover_over_a_stamp_is_no_lease_without_stamps() -> None:
    assert said("lease-without-stamps", update(written(take(RIVAL), at="2025-11-20T12:00:01Z"))) == set()


HELD = put("spec.holderIdentity", "")


@pytest.mark.parametrize(
    ("review", "found"),
    [
        pytest.param(update(take(RIVAL), old=[drop(ENTRIES), HELD]), True, id="no entries"),
        pytest.param(update(written(take(RIVAL), at="2025-11-20T12:00:01Z"), old=[HELD]), False, id="entries"),
        pytest.param(
            update(take(RIVAL), put(ENTRIES, [make_entry()]), old=[drop(ENTRIES), HELD]),
            False,
            id="entries that this write brings",
        ),
    ],
)
def test_a_claim_of_a_lease_needs_entries(review: Document, found: bool) -> None:
    assert said("lease-without-stamps", review, now=NOW) == ({(FORBIDDEN, ENTRIES, DENY)} if found else set())


def empty(*tweaks: Tweak) -> Document:
    """A CREATE of a lease with nothing but a name, and what the API server adds to it."""
    return make_review(new=make_lease(drop("spec"), drop(ENTRIES), *tweaks))


@pytest.mark.parametrize(
    ("review", "found"),
    [
        pytest.param(empty(), True, id="a name only"),
        pytest.param(empty(put("spec", {})), True, id="an empty spec"),
        pytest.param(empty(put("metadata.labels", {}), put("metadata.annotations", {})), True, id="empty labels"),
        pytest.param(empty(put("metadata.labels", {"a": "b"})), False, id="a label"),
        pytest.param(empty(put("metadata.annotations", {"a": "b"})), False, id="an annotation"),
        pytest.param(empty(put("spec", {"leaseDurationSeconds": 15})), False, id="a duration"),
        pytest.param(empty(put(ENTRIES, [make_entry()])), False, id="entries of something"),
    ],
)
def test_a_lease_is_not_created_with_a_name_only(review: Document, found: bool) -> None:
    assert said("lease-created-empty", review) == ({(FORBIDDEN, ENTRIES, DENY)} if found else set())


def test_the_repair_is_named_if_stamps_are_missing() -> None:
    (finding,) = findings(update(take(RIVAL), old=[drop(ENTRIES)]), now=NOW + HOUR)["lease-without-stamps"]
    assert "kubectl apply --server-side" in finding.error.detail
