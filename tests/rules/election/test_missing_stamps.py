"""A lease that changes hands without a stamp of its last renewal."""

import pytest

from tests.factories import NOW, Document, Tweak, drop, make_entry, make_lease, make_review, put
from tests.rules import dates_in_cel, wording
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
    ("review", "is_found"),
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
def test_a_claim_of_a_lease_needs_entries(review: Document, is_found: bool) -> None:
    assert said("lease-without-stamps", review, now=NOW) == ({(FORBIDDEN, ENTRIES, DENY)} if is_found else set())


def empty(*tweaks: Tweak) -> Document:
    """A CREATE of a lease with nothing but a name, and what the API server adds to it."""
    return make_review(new=make_lease(drop("spec"), drop(ENTRIES), *tweaks))


@pytest.mark.parametrize(
    ("review", "is_found"),
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
def test_a_lease_is_not_created_with_a_name_only(review: Document, is_found: bool) -> None:
    assert said("lease-created-empty", review) == ({(FORBIDDEN, ENTRIES, DENY)} if is_found else set())


def test_the_repair_is_named_if_stamps_are_missing() -> None:
    (finding,) = findings(update(take(RIVAL), old=[drop(ENTRIES)]), now=NOW + HOUR)["lease-without-stamps"]
    assert "kubectl apply --server-side" in finding.error.detail


WORDING = [
    pytest.param(
        "lease-without-stamps",
        update(take(RIVAL), old=[wording.STAMPLESS]),
        (
            "metadata.managedFields: Forbidden: the API server has no record of the last renewal of this "
            "lease, so its holder's own clock decides; `kubectl apply --server-side` of apiVersion, kind, "
            "name, namespace and a label brings a record back (it stamps now, so a takeover waits one duration)"
        ),
        "no API server record of the last renewal: the holder's own clock decided; repair: PAGE",
        id="a steal of a lease without stamps",
    ),
    pytest.param(
        "lease-without-stamps",
        update(take(RIVAL), old=[drop("metadata.managedFields"), put("spec.holderIdentity", "")]),
        (
            "metadata.managedFields: Forbidden: the API server keeps no record of this lease, so one write can take it "
            "from its new holder; `kubectl apply --server-side` of apiVersion, kind, name, namespace and a label "
            "brings a record back (it stamps now, so a takeover waits one duration)"
        ),
        "the API server keeps no record of this lease: one write can take it; fix: PAGE",
        id="a claim of a lease without stamps",
    ),
    pytest.param(
        "lease-created-empty",
        make_review(new=make_lease(drop("metadata.managedFields"), put("spec", {}), put("metadata.labels", {}))),
        (
            "metadata.managedFields: Forbidden: the API server keeps no record of the renewals of a lease that is "
            "created empty, so one write could take it from a live holder; create it with a label"
        ),
        "a lease was created empty: no renewal of it will have an API server's stamp; fix: PAGE",
        id="a lease that is created empty",
    ),
]

WRITES_IT_SPEAKS_OF = {
    "lease-created-empty": [make_review(new=make_lease(drop("metadata.managedFields"), drop("spec")))]
}


def is_beyond_cel(request: Document, _field: str) -> bool:
    new, old = dates_in_cel.find_objects(request)
    owners = dates_in_cel.find_owners(new, "holderIdentity") + dates_in_cel.find_owners(old, "renewTime")
    are_usual = all(dates_in_cel.is_usual_time(one.get("time")) for one in owners)
    is_stamped = any(
        one.get("manager") == "lease-webhook-stamp" for one in old.get("metadata", {}).get("managedFields", ())
    )
    return dates_in_cel.has_many_entries(new, old) or not are_usual or is_stamped


WHERE_CEL_DIFFERS = {"lease-without-stamps": is_beyond_cel}
