"""Times that no client can decode: refused when written, never when already there."""

import pytest

from tests.factories import (
    Document,
    drop,
    make_entry,
    make_lease,
    make_review,
    put,
)
from tests.rules.findings import DENY, INVALID, candidate_updated, said, update, written

AFTER_9999 = "10000-01-01T00:59:59.999999Z"
BEFORE_0 = "-0001-12-31T23:00:00.000000Z"
RENEW, ACQUIRE, PING = "spec.renewTime", "spec.acquireTime", "spec.pingTime"
ENTRY = "metadata.managedFields[0].time"


@pytest.mark.parametrize(
    ("review", "field"),
    [
        pytest.param(update(put(ACQUIRE, AFTER_9999)), ACQUIRE, id="acquireTime in year 10000"),
        pytest.param(update(put(RENEW, BEFORE_0)), RENEW, id="renewTime before year 0"),
        pytest.param(make_review(new=make_lease(put(RENEW, AFTER_9999))), RENEW, id="renewTime on CREATE"),
        pytest.param(update(put(RENEW, "yesterday")), RENEW, id="renewTime that is no time"),
        pytest.param(update(put(RENEW, "2025-11-20T12:00:00Z")), RENEW, id="renewTime without a fraction"),
        pytest.param(candidate_updated(put(PING, AFTER_9999)), PING, id="pingTime of a candidate"),
        pytest.param(candidate_updated(put(RENEW, BEFORE_0)), RENEW, id="renewTime of a candidate"),
        pytest.param(
            update(put(RENEW, AFTER_9999), old=[put(RENEW, BEFORE_0)]), RENEW, id="one unreadable time for another"
        ),
        pytest.param(
            update(put(ENTRY, "10000-01-01T00:59:59Z")), ENTRY, id="an entry time, in a write that changes nothing else"
        ),
        pytest.param(
            candidate_updated(
                lambda new: new["metadata"]["managedFields"].append(make_entry(time="-0001-12-31T23:00:00Z"))
            ),
            "metadata.managedFields[1].time",
            id="a bogus entry's time",
        ),
    ],
)
def test_unreadable(review: Document, field: str) -> None:
    assert said("time-unreadable", review) == {(INVALID, field, DENY)}


@pytest.mark.parametrize(
    "review",
    [
        pytest.param(
            update(written(put(RENEW, "2025-11-20T12:00:02.000000Z"), at="2025-11-20T12:00:02Z")), id="a renewal"
        ),
        pytest.param(update(put(RENEW, "9999-12-31T23:59:59.999999Z")), id="the last readable time"),
        pytest.param(update(put(RENEW, "0000-01-01T00:00:00.000000Z")), id="the first readable time"),
        pytest.param(
            update(put("metadata.labels.a", "1"), old=[put(ACQUIRE, AFTER_9999)]), id="one that was there, untouched"
        ),
        pytest.param(
            update(
                written(put(RENEW, "2025-11-20T12:00:02.000000Z"), at="2025-11-20T12:00:02Z"),
                old=[put(ACQUIRE, AFTER_9999)],
            ),
            id="one that was there, in a renewal",
        ),
        pytest.param(
            update(put(ACQUIRE, "2025-11-20T12:00:00.000000Z"), old=[put(ACQUIRE, AFTER_9999)]), id="the repair"
        ),
        pytest.param(update(drop(ACQUIRE), old=[put(ACQUIRE, AFTER_9999)]), id="the removal"),
        pytest.param(
            update(
                put("metadata.managedFields[0].manager", "ancient-changes"), old=[put(ENTRY, "10000-01-01T00:59:59Z")]
            ),
            id="an entry that was there, renamed",
        ),
        pytest.param(update(put(ENTRY, "noise")), id="an entry's time that is no time at all"),
        pytest.param(candidate_updated(put(PING, None)), id="no pingTime"),
    ],
)
def test_silent(review: Document) -> None:
    assert said("time-unreadable", review) == set()


ENTRIES = "metadata.managedFields"


TIME = f"{ENTRIES}[0].time"


LABEL = put("metadata.labels.tier", "1")


def test_an_entry_time_that_is_unreadable() -> None:
    review = update(LABEL, put(TIME, "10000-01-01T00:00:00Z"))
    assert said("time-unreadable", review) == {(INVALID, TIME, DENY)}
