"""Times that no client can decode: refused when written, never when already there."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.factories import (
    Document,
    drop,
    make_entry,
    make_lease,
    make_review,
    put,
)
from tests.rules import wording
from tests.rules.findings import DENY, INVALID, candidate_updated, said, update, written
from webhook.kubernetes import times

AFTER_9999 = "10000-01-01T00:59:59.999999Z"
BEFORE_0 = "-0001-12-31T23:00:00.000000Z"
RENEW, ACQUIRE, PING = "spec.renewTime", "spec.acquireTime", "spec.pingTime"
YEAR_20000 = "20000-01-01T00:00:00Z"
ENTRY = "metadata.managedFields[0].time"


@pytest.mark.parametrize(
    ("review", "field"),
    [
        pytest.param(update(put(ACQUIRE, AFTER_9999)), ACQUIRE, id="acquireTime in year 10000"),
        pytest.param(update(put(RENEW, BEFORE_0)), RENEW, id="renewTime before year 0"),
        pytest.param(make_review(new=make_lease(put(RENEW, AFTER_9999))), RENEW, id="renewTime on CREATE"),
        pytest.param(update(put(RENEW, "yesterday")), RENEW, id="renewTime that is not a time"),
        pytest.param(update(put(RENEW, "2025-11-20T12:00:00Z")), RENEW, id="renewTime without a fraction"),
        pytest.param(candidate_updated(put(PING, AFTER_9999)), PING, id="pingTime of a candidate"),
        pytest.param(candidate_updated(put(RENEW, BEFORE_0)), RENEW, id="renewTime of a candidate"),
        pytest.param(
            update(put(RENEW, AFTER_9999), old=[put(RENEW, BEFORE_0)]), RENEW, id="one unreadable time for another"
        ),
        pytest.param(update(put(ENTRY, YEAR_20000)), ENTRY, id="an entry of year 20000"),
        pytest.param(make_review(new=make_lease(put(ENTRY, YEAR_20000))), ENTRY, id="an entry of year 20000 on CREATE"),
        pytest.param(candidate_updated(put(ENTRY, YEAR_20000)), ENTRY, id="an entry of year 20000 of a candidate"),
        pytest.param(update(put(ENTRY, "-0400-01-01T00:00:00Z")), ENTRY, id="an entry of year -400"),
        pytest.param(update(put(ENTRY, "9999-12-31T23:59:59-01:00")), ENTRY, id="an entry of year 10000 by its offset"),
        pytest.param(update(put(ENTRY, "noise")), ENTRY, id="an entry's time that is not a time at all"),
        pytest.param(update(put(ENTRY, "2025-11-20T12:00:0xZ")), ENTRY, id="noise as long as a time"),
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
def test_a_time_that_a_client_cannot_read_is_denied(review: Document, field: str) -> None:
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
        pytest.param(update(put(ENTRY, None)), id="an entry without a time"),
        pytest.param(update(put(ENTRY, "0001-01-01T00:00:00Z")), id="an entry with the zero time"),
        pytest.param(
            update(put("metadata.labels.a", "1"), old=[put(ENTRY, YEAR_20000)]),
            id="an entry of year 20000 that was there",
        ),
        pytest.param(candidate_updated(put(PING, None)), id="no pingTime"),
    ],
)
def test_a_time_that_each_client_reads_is_allowed(review: Document) -> None:
    assert said("time-unreadable", review) == set()


@given(st.integers(-(2**63), 2**63 - 1))
@example(0)
@example(-62_135_596_800)
@example(253_402_300_799)
@example(253_402_300_800)
@example(-62_167_219_200)
@example(-62_167_219_201)
@example(2**63 - 1)
@example(-(2**63))
def test_any_seconds_of_protobuf_are_readable_or_refused(seconds: int) -> None:
    """`time.Unix` of Go counts from year 1 in 64 bits, and goes round."""
    since_year_1 = (seconds + 62_135_596_800 + 2**63) % 2**64 - 2**63
    micros = (since_year_1 - 62_135_596_800) * 1_000_000
    is_readable = times.FIRST_READABLE <= micros < times.AFTER_LAST_READABLE
    for field, text in ((RENEW, times.format_micro_time(micros)), (ENTRY, times.format_time(micros))):
        written_by = (
            update(put(field, text)),
            candidate_updated(put(field, text)),
            make_review(new=make_lease(put(field, text))),
        )
        for review in written_by:
            assert bool(said("time-unreadable", review)) is not is_readable


WORDING = [
    pytest.param(
        "time-unreadable",
        update(put("spec.renewTime", wording.YEAR_10000)),
        (
            'spec.renewTime: Invalid value: "10000-01-01T00:59:59.999999Z": must be a time of the years 0000 to 9999 '
            'in UTC with six fraction digits, such as "2026-01-31T12:00:00.000000Z"; JSON clients cannot decode any '
            "other"
        ),
        "spec.renewTime is not a time of the years 0000 to 9999: JSON clients cannot decode it",
        id="a time that is year 10000 in UTC",
    ),
    pytest.param(
        "time-unreadable",
        update(put("metadata.managedFields[0].time", "20000-01-01T00:00:00Z")),
        (
            'metadata.managedFields[0].time: Invalid value: "20000-01-01T00:00:00Z": must be a time of the years 0000 '
            'to 9999 in UTC, such as "2026-01-31T12:00:00Z"; JSON clients cannot decode any other'
        ),
        "metadata.managedFields[0].time is not a time of the years 0000 to 9999: JSON clients cannot decode it",
        id="the time of an entry",
    ),
]


def is_of_an_entry(_request: Document, field: str) -> bool:
    return field.startswith("metadata.managedFields")


WHERE_CEL_DIFFERS = {"time-unreadable": is_of_an_entry}
