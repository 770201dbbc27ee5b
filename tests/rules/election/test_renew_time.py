"""renewTime of a Lease: ahead of the clock, and back."""

import pytest

from tests.factories import (
    NOW,
    Document,
    changed,
    drop,
    make_lease,
    make_review,
    put,
)
from tests.rules import dates_in_cel, wording
from tests.rules.findings import (
    DAY,
    DENY,
    HOUR,
    INVALID,
    RIVAL,
    SECOND,
    WARN,
    at,
    created,
    findings,
    in_namespace,
    said,
    take,
    update,
    written,
)

RENEW = "spec.renewTime"

COUNT = "spec.leaseTransitions"

TOMORROW = "2025-11-21T12:00:00Z"


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(update(put(RENEW, at(DAY))), None, id="a renewal a day ahead"),
        pytest.param(update(put(RENEW, at(DAY + 1))), DENY, id="a renewal more than a day ahead"),
        pytest.param(
            update(put(RENEW, at(61 * SECOND))), None, id="a renewal a minute ahead: only the deny tier speaks"
        ),
        pytest.param(update(put(RENEW, at(60 * SECOND)), take(RIVAL)), None, id="a steal 60 s ahead"),
        pytest.param(update(put(RENEW, at(60 * SECOND + 1)), take(RIVAL)), WARN, id="a steal more than 60 s ahead"),
        pytest.param(update(put(RENEW, at(14 * HOUR)), take(RIVAL)), WARN, id="a takeover east of Greenwich"),
        pytest.param(created(put(RENEW, at(60 * SECOND + 1))), WARN, id="CREATE more than 60 s ahead"),
        pytest.param(created(put(RENEW, at(DAY + 1))), DENY, id="CREATE more than a day ahead"),
        pytest.param(created(put(RENEW, at(-HOUR))), None, id="CREATE in the past"),
        pytest.param(
            update(put(RENEW, at(3 * DAY)), old=[put(RENEW, at(2 * DAY))]), None, id="a day ahead of the old value"
        ),
        pytest.param(
            update(put(RENEW, at(3 * DAY + 1)), old=[put(RENEW, at(2 * DAY))]),
            DENY,
            id="more than a day ahead of the old value",
        ),
        pytest.param(
            update(take(RIVAL), put(RENEW, at(2 * DAY + 61 * SECOND)), old=[put(RENEW, at(2 * DAY))]),
            WARN,
            id="a steal 61 s ahead of an old value in the future",
        ),
        pytest.param(
            update(put(COUNT, 7), old=[put(RENEW, at(9 * DAY))]), None, id="an old value in the future, unchanged"
        ),
        pytest.param(update(put(RENEW, at(HOUR)), old=[put(RENEW, at(9 * DAY))]), None, id="lowered from the future"),
        pytest.param(
            update(put(RENEW, at(61 * SECOND)), put(COUNT, 7), old=[drop(RENEW)]), WARN, id="set if there was none"
        ),
        pytest.param(update(put(RENEW, "10000-01-01T00:00:00.000000Z")), None, id="unreadable: another rule speaks"),
        pytest.param(
            changed(update(put(RENEW, at(DAY + 1))), in_namespace("kube-node-lease", "n1")),
            WARN,
            id="a heartbeat more than a day ahead",
        ),
        pytest.param(
            update(written(put(RENEW, at(2 * DAY)), at=TOMORROW)),
            None,
            id="measured from the stamp if that is later than our clock",
        ),
    ],
)
def test_renew_time_in_future(review: Document, tier: object) -> None:
    assert said("renew-time-in-future", review) == ({(INVALID, RENEW, tier)} if tier else set())


def test_renew_time_is_measured_by_our_clock_if_that_is_later_than_the_stamp() -> None:
    assert said("renew-time-in-future", update(put(RENEW, at(2 * DAY))), now=NOW + DAY) == set()


def test_renew_time_is_measured_by_our_clock_without_a_stamp() -> None:
    review = created(put(RENEW, at(2 * DAY)), drop("metadata.managedFields"))
    assert said("renew-time-in-future", review) == {(INVALID, RENEW, DENY)}


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(put(RENEW, at(-HOUR))), False, id="an hour back"),
        pytest.param(update(put(RENEW, at(-HOUR - 1))), True, id="more than an hour back, in a renewal"),
        pytest.param(update(put(RENEW, at(-DAY)), take(RIVAL)), False, id="by a new holder with a slower clock"),
        pytest.param(update(drop(RENEW)), False, id="removed"),
        pytest.param(
            update(put(RENEW, at(0)), old=[put(RENEW, "10000-01-01T00:00:00.000000Z")]),
            False,
            id="the repair of year 10000",
        ),
        pytest.param(
            update(put(RENEW, at(0)), old=[put(RENEW, "9999-12-31T23:59:59.999999-01:00")]),
            False,
            id="from an offset into year 10000",
        ),
        pytest.param(update(put(RENEW, "-0001-12-31T23:00:00.000000Z")), False, id="unreadable: another rule speaks"),
        pytest.param(update(put(RENEW, "0000-01-01T00:30:00.000000+01:00")), False, id="of year -0001 in UTC"),
    ],
)
def test_renew_time_backwards(review: Document, speaks: bool) -> None:
    assert said("renew-time-backwards", review) == ({(INVALID, RENEW, DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("time", "limit"),
    [
        pytest.param("2025-11-20T12:01:00.000000Z", None, id="a minute ahead"),
        pytest.param("2025-11-20T12:01:00.000001Z", 60, id="more than a minute ahead"),
        pytest.param("2025-11-21T12:00:00.000000Z", 60, id="a day ahead"),
        pytest.param("2025-11-21T12:00:00.000001Z", 86400, id="more than a day ahead"),
    ],
)
def test_renew_time_ahead(time: str, limit: int | None) -> None:
    review = make_review(new=make_lease(put(RENEW, time)))
    details = [one.error.detail for one in findings(review).get("renew-time-in-future", ())]
    assert [detail.startswith(f"must not be more than {limit} s ahead of ") for detail in details] == [True] * bool(
        limit
    )


WORDING = [
    pytest.param(
        "renew-time-in-future",
        created(put("spec.renewTime", "2025-11-20T21:00:03.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T21:00:03.000000Z": must not be more than 60 s ahead '
            "of the API server (12:00:04Z), is 9 h 0 min ahead; whole hours: the client writes local time as "
            "UTC"
        ),
        "renewTime is 9 h 0 min ahead of the API server (12:00:04Z): the client writes local time as UTC",
        id="nine hours ahead",
    ),
    pytest.param(
        "renew-time-in-future",
        created(put("spec.renewTime", "2025-11-20T12:01:34.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T12:01:34.000000Z": must not be more than 60 s ahead '
            "of the API server (12:00:04Z), is 1 min 30 s ahead; write the current time, or set the client's "
            "clock"
        ),
        "renewTime is 1 min 30 s ahead of the API server (12:00:04Z): set the client's clock",
        id="90 seconds ahead",
    ),
    pytest.param(
        "renew-time-in-future",
        update(put("spec.renewTime", "2035-11-20T12:00:00.000000Z")),
        (
            'spec.renewTime: Invalid value: "2035-11-20T12:00:00.000000Z": must not be more than 86400 s '
            "ahead of the API server (12:00:04Z), is 3652 d 0 h ahead; write the current time, or set the "
            "client's clock"
        ),
        "renewTime is 3652 d 0 h ahead of the API server (12:00:04Z): set the client's clock",
        id="ten years ahead",
    ),
    pytest.param(
        "renew-time-backwards",
        update(put("spec.renewTime", "2025-11-20T10:00:00.000000Z")),
        (
            'spec.renewTime: Invalid value: "2025-11-20T10:00:00.000000Z": must not be more than 3600 s '
            "before the old value; check the holder's clock"
        ),
        "renewTime moved back by 2 h 0 min: the lease may be taken too early; check the holder's clock",
        id="renewTime two hours back",
    ),
]

WRITES_IT_SPEAKS_OF = {"renew-time-backwards": [update(put("spec.renewTime", at(-7200 * SECOND)), wording.EDIT)]}


def is_without_clock(request: Document, _field: str) -> bool:
    owners = dates_in_cel.find_owners(dates_in_cel.find_objects(request)[0], "renewTime")
    return len(owners) != 1 or not dates_in_cel.is_clock(owners[0]) or is_of_fractions(request)


def is_of_fractions(request: Document, _field: str = "") -> bool:
    return dates_in_cel.has_year_0(request) or dates_in_cel.is_fraction(request)


WHERE_CEL_DIFFERS = {
    "renew-time-in-future": is_without_clock,
    "renew-time-backwards": is_of_fractions,
    "candidate-renew-time-in-future": is_without_clock,
    "candidate-renew-time-backwards": is_of_fractions,
}
_CLOCK_AND_SPAN = r" \(\d\d:\d\d:\d\dZ\)|, is .* ahead; .*"
TEXT_DIFFERS_IN_CEL = dict.fromkeys(("renew-time-in-future", "candidate-renew-time-in-future"), _CLOCK_AND_SPAN)
