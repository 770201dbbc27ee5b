"""What timelines, tables and metrics show of histories with known truth is true, and false statements are noticed."""

from pathlib import Path
from typing import Final

import pytest

from tests.truth.evaluation import SHOWING, evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.plans import from_json
from tests.truth.play import play
from webhook.analysis.claims.registry import KINDS

STORED: Final = sorted((Path(__file__).parents[1] / "data" / "histories").glob("*.json"))
STILL_FALSE: Final[dict[str, set[str]]] = {
    "GitOps-applies-a-holder-and-leaves-renewTime": {"timeline-held", "timeline-renewal"},
    "a-chosen-holder-that-another-one-renews-first": {"json-last-renewal", "row-renewed"},
    "a-chosen-holder-that-releases-before-it-has-renewed": {
        "json-last-renewal",
        "row-changes",
        "row-renewed",
        "timeline-gap",
        "timeline-handovers",
        "timeline-silent",
    },
    "a-gap-of-a-record-before-a-holder-whose-clock-is-behind": {"timeline-unrecorded"},
    "a-gap-of-a-record-that-begins-in-the-second-of-a-renewal": {"timeline-gap", "timeline-leaderless"},
    "a-holder-is-asked-to-step-down-long-after-it-was-late": {"timeline-held"},
    "a-holder-is-wiped-with-the-fields-that-were-stamped-last": {"json-holder", "row-holder", "timeline-never-held"},
    "a-holder-removed-in-the-second-of-its-renewal": {"timeline-gap"},
    "a-holder-that-GitOps-wrote-in-before-the-log-begins": {"timeline-held", "timeline-renewal"},
    "a-holder-that-GitOps-wrote-in-in-the-gap-of-a-record": {"timeline-held", "timeline-renewal"},
    "a-holder-that-stops-just-before-a-webhook-stops-all-writes": {"timeline-unrecorded"},
    "a-holder-that-was-removed-right-after-it-renewed-an-expired-lease": {"timeline-unrecorded"},
    "a-holder-written-into-a-lease-that-stays-released": {"timeline-held"},
    "a-lease-that-was-created-again-in-the-gap-of-a-record": {"timeline-gap", "timeline-leaderless"},
    "a-list-evaluated-just-before-the-lease-expires": {"timeline-unrecorded"},
    "a-patch-logged-without-its-object-before-the-renewal-that-came-first": {"json-holder", "row-holder"},
    "a-restored-holder-whose-duration-another-one-shortens": {"timeline-held"},
    "a-slow-holder-before-one-whose-clock-is-behind": {"json-state", "row-state"},
    "a-stamp-forged-ahead-in-the-gap-of-a-record": {"json-last-renewal", "metric-renewal-age-seconds", "row-renewed"},
    "a-stamp-forged-to-fit-a-clock-that-is-ahead": {
        "json-last-renewal",
        "metric-renewal-age-seconds",
        "row-renewed",
        "timeline-renewal",
    },
    "a-stranger-renews-a-holder-written-in-before-the-input-begins": {"timeline-held"},
    "a-theft-logged-without-its-object-by-a-clock-that-is-behind": {"json-holder", "row-holder"},
    "a-wipe-that-nothing-dates-after-the-lease-had-expired": {
        "json-holder",
        "json-last-renewal",
        "row-holder",
        "row-renewed",
        "timeline-leaderless",
        "timeline-never-held",
    },
    "an-API-server-asks-a-holder-to-step-down-after-a-hole-in-the-log": {"timeline-held"},
    "an-attacker-renewed-a-chosen-holder-before-two-writes-of-one-second": {"json-last-renewal", "row-renewed"},
    "an-attacker-writes-an-identity-in-before-its-process-takes-the-lease": {"timeline-takeover-by-expiry"},
    "an-edit-that-renews-beside-an-attacker": {"timeline-gap"},
    "an-edit-under-the-field-manager-of-the-holder": {
        "json-last-renewal",
        "metric-renewal-age-seconds",
        "row-renewed",
        "timeline-renewal",
    },
    "another-one-held-it-in-the-gap-of-a-record-and-it-was-deleted": {"timeline-gap", "timeline-leaderless"},
    "another-writer-goes-on-after-a-hole-in-the-log": {
        "json-last-renewal",
        "row-renewed",
        "timeline-gap",
        "timeline-held",
        "timeline-overdue",
    },
    "one-of-two-of-an-identity-stops-in-a-hole-of-the-log": {"json-last-renewal", "row-renewed"},
    "one-of-two-with-a-wrong-clock-before-a-hole-in-the-log": {"json-last-renewal", "row-renewed", "timeline-held"},
    "renewals-dated-back-before-the-watch-begins": {"timeline-gap", "timeline-overdue"},
    "renewals-dated-back-by-an-hour-in-the-gap-of-a-record": {"timeline-gap"},
    "renewals-dated-back-in-the-gap-of-a-record": {
        "json-takeable",
        "row-takeable",
        "timeline-gap",
        "timeline-overdue",
        "timeline-silent",
    },
    "stamps-dated-back-after-an-old-copy-replaced-a-lease-that-expires": {
        "json-last-renewal",
        "json-takeable",
        "metric-renewal-age-seconds",
        "row-renewed",
        "timeline-held",
        "timeline-overdue",
        "timeline-takeover",
    },
    "stamps-forged-after-an-old-copy-replaced-the-lease": {
        "json-last-renewal",
        "json-takeable",
        "metric-renewal-age-seconds",
        "row-renewed",
        "row-takeable",
        "timeline-held",
        "timeline-overdue",
        "timeline-takeover",
        "timeline-unrecorded",
    },
    "stamps-forged-on-a-holder-that-was-written-in-in-the-gap-of-a-record": {
        "json-tenure-leaderless",
        "timeline-held",
        "timeline-renewal",
    },
    "the-last-write-of-a-watch-comes-long-after-the-others": {"timeline-gap", "timeline-silent"},
    "two-of-one-identity-write-different-durations": {"timeline-held"},
}
"""What timelines, tables and metrics show of them that is false. What becomes true leaves the list."""


@pytest.mark.parametrize("path", STORED, ids=[path.stem.replace("-", " ") for path in STORED])
def test_what_is_shown_of_a_stored_history_is_true(path: Path) -> None:
    history = play(from_json(path.read_bytes()))
    inputs = [given for kind in Kind if (given := input_of(history, kind))]
    found = [one for given in inputs for one in evaluate(history, given, SHOWING)]
    assert {one.id for one in found if one.is_true is not True} == STILL_FALSE.get(path.stem, set())
    assert len(found) > 300


def test_no_claim_is_known_to_be_false() -> None:
    assert not KINDS.keys() & {id_ for ids in STILL_FALSE.values() for id_ in ids}
